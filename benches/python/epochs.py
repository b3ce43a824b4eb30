"""Shuffled epochs of QM9-like molecules as ready PyG batches, and single samples: fencepost against PyG's data sets and against a
vectorised numpy gather over memory maps.

    python benches/python/epochs.py [--rounds 7] [--folder FOLDER]

One process, systems take turns, medians of the rounds. Outputs are compared before anything is timed. PyG's sets have 20,000 graphs, so
that their caches can be warmed in reasonable time, and run over 6,400 of them a round; the others run over all 130,000.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from common import BATCH, alternate, molecules, ratio, report, same_batches, versions
from torch_geometric.data import Batch, Data, InMemoryDataset, OnDiskDataset
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader as PygLoader

import fencepost
import fencepost.pyg

B3DB = Path(__file__).resolve().parents[2] / "examples" / "data" / "B3DB"
LARGE, SMALL, PART = 130_000, 20_000, 6_400
SCHEMA = {
    "x": {"dtype": torch.float32, "size": (-1, 11)},
    "edge_index": {"dtype": torch.int64, "size": (2, -1)},
    "edge_attr": {"dtype": torch.float32, "size": (-1, 4)},
    "pos": {"dtype": torch.float32, "size": (-1, 3)},
    "y": {"dtype": torch.float32, "size": (1, 19)},
}


class InMemory(InMemoryDataset):
    def __init__(self, path):
        super().__init__()
        self.load(str(path))


class OnDisk(OnDiskDataset):
    def __init__(self, root, schema):
        super().__init__(str(root), schema=schema)

    def process(self):
        for start in range(0, SMALL, 1000):
            self.extend(list(itertools.islice(molecules(SMALL), start, start + 1000)))

    def serialize(self, data):
        return {name: data[name] for name in SCHEMA} if self.schema is not object else data

    def deserialize(self, row):
        return Data(**row) if self.schema is not object else row


class NumpyGather:
    """What somebody would write by hand: one array a attribute, offsets, and index arithmetic for a whole batch at once."""

    def __init__(self, folder: Path, dataset: fencepost.Dataset):
        self.arrays = {}
        for name in SCHEMA:
            np.save(folder / f"{name}.npy", dataset.arena(name))
            self.arrays[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
        self.nodes = dataset.offsets("nodes")
        self.edges = dataset.offsets("edges")

    @staticmethod
    def rows(offsets, indices):
        starts = offsets[indices]
        lengths = offsets[indices + 1] - starts
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        return np.repeat(starts - ptr[:-1], lengths) + np.arange(ptr[-1]), lengths, ptr

    def batch(self, indices):
        nodes, counts, ptr = self.rows(self.nodes, indices)
        edges, edge_counts, _ = self.rows(self.edges, indices)
        shift = np.repeat(ptr[:-1], edge_counts)
        # A graph's block of edge_index is [2, e]: its second row begins e elements behind the first.
        starts = np.repeat(self.edges[indices], edge_counts)
        first = edges + starts
        index = self.arrays["edge_index"]
        edge_index = np.stack([index[first] + shift, index[first + np.repeat(edge_counts, edge_counts)] + shift])
        wide = lambda name, columns, rows: self.arrays[name].reshape(-1, columns)[rows]  # noqa: E731
        out = {
            "x": wide("x", 11, nodes),
            "edge_index": edge_index,
            "edge_attr": wide("edge_attr", 4, edges),
            "pos": wide("pos", 3, nodes),
            "y": wide("y", 19, indices),
            "batch": np.repeat(np.arange(len(indices)), counts),
            "ptr": ptr,
        }
        return {name: torch.from_numpy(value) for name, value in out.items()}


class Lmdb:
    """A record of raw bytes a graph, read as numpy views: the least that a key-value store can do."""

    def __init__(self, path: Path, dataset: fencepost.Dataset, count: int):
        import lmdb

        self.environment = lmdb.open(str(path), map_size=1 << 32, readahead=False)
        with self.environment.begin(write=True) as transaction:
            for index in range(count):
                sample = dataset[index]
                head = np.array([len(sample["x"]), len(sample["edge_attr"])], "i8").tobytes()
                body = b"".join(sample[name].tobytes() for name in ("edge_index", "x", "edge_attr", "pos", "y"))
                transaction.put(index.to_bytes(8, "big"), head + body)
        self.transaction = self.environment.begin(buffers=True)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        record = self.transaction.get(index.to_bytes(8, "big"))
        nodes, edges = np.frombuffer(record, "i8", 2).tolist()
        at = 16 + 16 * edges
        out = {"edge_index": np.frombuffer(record, "i8", 2 * edges, 16).reshape(2, edges)}
        for name, columns, rows in (("x", 11, nodes), ("edge_attr", 4, edges), ("pos", 3, nodes), ("y", 19, 1)):
            out[name] = np.frombuffer(record, "f4", rows * columns, at).reshape(rows, columns)
            at += 4 * rows * columns
        return out


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--folder")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        run(folder, options.rounds)
    finally:
        shutil.rmtree(folder)


def run(folder: Path, rounds: int) -> None:
    print(versions())
    start = time.perf_counter()
    ours = fencepost.pyg.convert(molecules(LARGE), folder / "large.fence", progress=False)
    print(f"{LARGE:,} graphs written in {time.perf_counter() - start:.1f} s, {(folder / 'large.fence').stat().st_size / 1e6:.0f} MB")
    InMemoryDataset.save(list(molecules(SMALL)), str(folder / "small.pt"))
    pickled, columns = OnDisk(folder / "pickled", object), OnDisk(folder / "columns", SCHEMA)
    by_hand = NumpyGather(folder, fencepost.open(folder / "large.fence"))
    cold, warm = InMemory(folder / "small.pt"), InMemory(folder / "small.pt")
    list(PygLoader(warm, BATCH))

    # All systems give the same batch.
    indices = torch.randperm(SMALL)[:BATCH]
    expected = Batch.from_data_list([warm[int(i)] for i in indices])
    same_batches(next(iter(fencepost.pyg.DataLoader(ours.index_select(indices), BATCH))), expected)
    for other in (pickled, columns):
        same_batches(Batch.from_data_list(other.multi_get(indices.tolist())), expected)
    for name, value in by_hand.batch(indices.numpy()).items():
        assert torch.equal(value, expected[name]), name

    def epoch(loader, graphs):
        count = 0
        for batch in loader:
            count += batch.num_graphs
            if count >= graphs:
                break
        return count

    state = {}

    def fresh():
        state["cold"] = InMemory(folder / "small.pt")

    def gather():
        order = torch.randperm(LARGE).numpy()
        for at in range(0, LARGE, BATCH):
            by_hand.batch(order[at : at + BATCH])
        return LARGE

    loader = fencepost.pyg.DataLoader(ours, BATCH, shuffle=True)
    rates = alternate(
        rounds,
        {
            "fencepost.pyg": lambda: epoch(loader, LARGE),
            "numpy gather into a dict": gather,
            "InMemoryDataset, first epoch": lambda: epoch(PygLoader(state["cold"], BATCH, shuffle=True), PART),
            "InMemoryDataset, cache warm": lambda: epoch(PygLoader(warm, BATCH, shuffle=True), PART),
            "OnDiskDataset, pickle": lambda: epoch(PygLoader(pickled, BATCH, shuffle=True), PART),
            "OnDiskDataset, schema": lambda: epoch(PygLoader(columns, BATCH, shuffle=True), PART),
        },
        {"InMemoryDataset, first epoch": fresh},
    )
    print(f"\nShuffled epochs, batches of {BATCH}, {rounds} rounds\n")
    report(rates, "fencepost.pyg")

    # The molecules of the repository.
    shutil.copytree(B3DB, folder / "B3DB" / "raw")
    theirs = TUDataset(str(folder), "B3DB")
    mapped = fencepost.pyg.convert(theirs, folder / "b3db.fence", progress=False)
    same_batches(next(iter(fencepost.pyg.DataLoader(mapped, BATCH))), next(iter(PygLoader(theirs, BATCH))))

    def uncached():
        state["b3db"] = TUDataset(str(folder), "B3DB")

    rates = alternate(
        rounds,
        {
            "fencepost.pyg": lambda: sum(epoch(fencepost.pyg.DataLoader(mapped, BATCH, shuffle=True), 1000) for _ in range(20)),
            "TUDataset, first epoch": lambda: epoch(PygLoader(state["b3db"], BATCH, shuffle=True), 1000),
            "TUDataset, cache warm": lambda: epoch(PygLoader(theirs, BATCH, shuffle=True), 1000),
        },
        {"TUDataset, first epoch": uncached},
    )
    print("\nThe 1,000 molecules of B3DB, a loader made for each epoch\n")
    report(rates, "fencepost.pyg")

    # Single samples, in random order. Touched: a value of every tensor is read.
    file = fencepost.open(folder / "large.fence")
    some = torch.randperm(SMALL)[:2000].tolist()

    def get(dataset):
        def run():
            for index in some:
                dataset[index]
            return len(some)

        return run

    try:
        records = Lmdb(folder / "lmdb", file, SMALL)
    except ImportError:
        print("lmdb is not installed: left out")
        records = None
    else:
        for name, value in records[some[0]].items():
            assert np.array_equal(value, file[some[0]][name]), name
    rates = alternate(
        rounds,
        {
            "fencepost.pyg, ds[i]": get(ours),
            "fencepost, ds[i] as numpy views": get(file),
            **({"LMDB, raw bytes as numpy views": get(records)} if records else {}),
            "InMemoryDataset, not cached": lambda: get(state["cold"])(),
            "InMemoryDataset, cached": get(warm),
            "OnDiskDataset, schema": get(columns),
        },
        {"InMemoryDataset, not cached": fresh},
    )
    print("\nSingle samples, random order\n")
    report(rates, "fencepost.pyg, ds[i]")
    if records:
        print("numpy views against LMDB:",
              ratio(rates["fencepost, ds[i] as numpy views"], rates["LMDB, raw bytes as numpy views"]))
    print("numpy views against InMemoryDataset, not cached:",
          ratio(rates["fencepost, ds[i] as numpy views"], rates["InMemoryDataset, not cached"]))


if __name__ == "__main__":
    main()
