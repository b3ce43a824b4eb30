"""One dataset of a million samples written by one process and by four, shard by shard: the same files, and how long each takes.

    python benches/python/shards.py [FOLDER]

Each sample is made in Python from its index, as a preprocessing does it. Rounds are alternated; every file is compared once.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fencepost

SAMPLES, PER_SHARD, ROUNDS, WORKERS = 1_000_000, 50_000, 3, 4


def sample(index: int) -> dict[str, np.ndarray]:
    nodes = 9 + index % 19
    x = np.zeros((nodes, 4), np.float32)
    x[:, index % 4] = 1
    at = np.arange(nodes - 1)
    return {"x": x, "edge_index": np.stack([at, at + 1]), "id": np.int64(index)}


def write(path: Path, workers: int) -> float:
    shutil.rmtree(path, ignore_errors=True)
    start = time.perf_counter()
    dataset = fencepost.write_shards(path, range(SAMPLES), sample, items_per_shard=PER_SHARD, num_workers=workers, dataset="set")
    elapsed = time.perf_counter() - start
    assert len(dataset) == SAMPLES
    return elapsed


def main() -> None:
    home = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    try:
        one, four = home / "one", home / "four"
        seconds: dict[str, list[float]] = {"one": [], "four": []}
        for _ in range(ROUNDS):
            seconds["one"].append(write(one, 0))
            seconds["four"].append(write(four, WORKERS))
        names = sorted(os.listdir(one))
        same, different, failed = filecmp.cmpfiles(one, four, names, shallow=False)
        assert same == names == sorted(os.listdir(four)) and not different and not failed
        size = sum(os.path.getsize(one / name) for name in names)
        ratios = [a / b for a, b in zip(seconds["one"], seconds["four"], strict=True)]
        print(f"{SAMPLES:,} samples, {size / 1e6:,.0f} MB, {len(names)} shards, {os.cpu_count()} processors; medians of {ROUNDS} rounds")
        print(f"one process    {statistics.median(seconds['one']):6.1f} s")
        print(f"{WORKERS} processes    {statistics.median(seconds['four']):6.1f} s")
        print(f"ratio          {statistics.median(ratios):6.2f} (rounds {', '.join(f'{ratio:.2f}' for ratio in ratios)}); the same files, byte by byte")
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
