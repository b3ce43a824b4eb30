"""The set that the benchmarks of the Python package share, and how they compare."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from intervals import ratio_interval
from torch_geometric.data import Data

BATCH = 128


def molecules(count: int, seed: int = 1) -> Iterator[Data]:
    """Graphs of the sizes of QM9: 18 ± 3 nodes, two directed edges a node, five attributes."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        nodes = int(9 + rng.integers(0, 7, 3).sum())
        yield Data(
            x=torch.from_numpy(rng.integers(0, 2, (nodes, 11)).astype(np.float32)),
            edge_index=torch.from_numpy(rng.integers(0, nodes, (2, 2 * nodes))),
            edge_attr=torch.from_numpy(rng.integers(0, 2, (2 * nodes, 4)).astype(np.float32)),
            pos=torch.from_numpy(rng.standard_normal((nodes, 3)).astype(np.float32)),
            y=torch.from_numpy(rng.standard_normal((1, 19)).astype(np.float32)),
        )


def alternate(rounds: int, systems: dict[str, Callable[[], int]], setup: dict[str, Callable[[], None]]) -> dict[str, list[float]]:
    """Graphs per second of each system in each round; the systems take turns, and the first round is not counted."""
    rates: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(rounds + 1):
        for name, run in systems.items():
            setup.get(name, lambda: None)()
            start = time.perf_counter()
            graphs = run()
            elapsed = time.perf_counter() - start
            if number:
                rates[name].append(graphs / elapsed)
    return rates


def ratio(ours: list[float], theirs: list[float]) -> str:
    """The median of the ratios round by round, and its 95 % bootstrap interval."""
    middle, low, high = ratio_interval(ours, theirs)
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"


def report(rates: dict[str, list[float]], ours: str) -> None:
    """A row for each system: median, spread, and how many times faster ours is."""
    print(f"| system | graphs/s (least, most) | {ours} is faster by |\n| --- | ---: | ---: |")
    for name, values in rates.items():
        against = "" if name == ours else ratio(rates[ours], values)
        print(f"| {name} | {statistics.median(values):,.0f} ({min(values):,.0f}, {max(values):,.0f}) | {against} |")


def versions() -> str:
    import sys

    import torch_geometric

    import fencepost

    return (
        f"Python {sys.version.split()[0]}, torch {torch.__version__}, torch_geometric {torch_geometric.__version__}, "
        f"numpy {np.__version__}, fencepost {fencepost.__version__}"
    )


def same_batches(ours: object, theirs: object) -> None:
    """Both are batches with the same keys, dtypes and values."""
    assert list(ours.keys()) == list(theirs.keys()), (ours, theirs)
    for key in theirs.keys():
        one, other = ours[key], theirs[key]
        assert one.dtype == other.dtype and torch.equal(one, other), key


def folder(path: str | Path) -> Path:
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    return path
