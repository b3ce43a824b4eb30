"""What the tests of importers and exporters share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fencepost


def refused(call: Callable[[Path], Any], folder: Path, error: type[BaseException], match: str) -> Any:
    """That a call that writes to a path fails, and leaves what was there, and nothing else. The exception."""
    folder = folder / "out"
    folder.mkdir(exist_ok=True)
    out = folder / "old.fence"
    out.write_bytes(b"what was here")
    with pytest.raises(error, match=match) as caught:
        call(out)
    assert out.read_bytes() == b"what was here"
    assert os.listdir(folder) == ["old.fence"]
    return caught.value


def equal(found: Any, expected: Any, where: str) -> None:
    """Equal dtype, shape and bits; strings and None as they are."""
    if expected is None or isinstance(expected, (str, bytes)):
        assert found == expected and type(found) is type(expected), where
    elif isinstance(expected, list):
        assert found == expected, where
    else:
        mine, its = np.asarray(found), np.asarray(expected)
        assert (mine.dtype, mine.shape) == (its.dtype.newbyteorder("<"), its.shape), f"{where}: {mine.dtype} {mine.shape}"
        assert mine.tobytes() == its.astype(its.dtype.newbyteorder("<")).tobytes(), f"{where}: {mine} is not {its}"


def holds(dataset: fencepost.Dataset, samples: Sequence[Mapping[str, Any]]) -> None:
    """That a data set has exactly these samples, whatever the order of names, and is whole."""
    assert len(dataset) == len(samples)
    for index, sample in enumerate(samples):
        found = dataset[index]
        assert set(found) >= set(sample), f"sample {index}"
        for name in found:
            equal(found[name], sample.get(name), f"sample {index}, {name}")
    assert dataset.verify().ok


def graphs(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Graphs with values of many dtypes; some without nodes, some without edges."""
    rng = np.random.default_rng(seed)
    out = []
    for index in range(count):
        nodes, edges = int(rng.integers(0, 6)), int(rng.integers(0, 9))
        out.append(
            {
                "x": rng.standard_normal((nodes, 3)).astype(np.float32),
                "edge_index": rng.integers(0, 9, (2, edges)),
                "edge_attr": rng.standard_normal(edges),
                "mask": rng.random(nodes) < 0.5,
                "z": rng.integers(0, 99, nodes).astype(np.uint8),
                "y": np.float64(rng.standard_normal()),
                "label": np.int16(index),
                "name": f"graph {index} é",
            }
        )
    return out
