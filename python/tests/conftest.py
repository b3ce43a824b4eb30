from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fencepost

ROOT = Path(__file__).resolve().parents[2]
BACKINGS = ["mapped", "positional", "resident"]


def graphs(count: int, seed: int = 0) -> list[dict]:
    """Molecule-like graphs; number 3 has no edges, number 5 no nodes."""
    rng = np.random.default_rng(seed)
    out = []
    for index in range(count):
        nodes = 0 if index == 5 else int(rng.integers(1, 20))
        edges = 0 if index == 3 or nodes == 0 else int(rng.integers(0, 40))
        out.append(
            {
                "x": rng.standard_normal((nodes, 11)).astype(np.float32),
                "edge_index": rng.integers(0, max(nodes, 1), (2, edges)),
                "edge_attr": rng.standard_normal((edges, 4)).astype(np.float32),
                "y": rng.standard_normal((1, 19)),
                "mask": rng.random(nodes) < 0.5,
            }
        )
    return out


def write(path: Path, samples: list[dict], **options) -> Path:
    with fencepost.Writer(path, **options) as writer:
        assert writer.extend(samples) == len(writer)
    return path


@pytest.fixture
def samples() -> list[dict]:
    return graphs(50)


@pytest.fixture
def path(tmp_path, samples) -> Path:
    return write(tmp_path / "graphs.fence", samples)


@pytest.fixture(params=BACKINGS)
def dataset(request, path) -> fencepost.Dataset:
    return fencepost.open(path, request.param)


def same(found: dict, expected: dict) -> None:
    """Equal names in order, dtypes, shapes and bits."""
    assert list(found) == list(expected)
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            array = np.asarray(found[name])
            assert (array.dtype, array.shape, array.tobytes()) == (value.dtype, value.shape, value.tobytes()), name
        else:
            assert found[name] == value and type(found[name]) is type(value), name


def run(code: str, *arguments: object, timeout: float = 120, **options) -> subprocess.CompletedProcess:
    """Run code in an interpreter of its own, whose end by a signal is not the end of the tests."""
    command = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **options)
