"""The cells of a comparison: what each is called, its unit, and whether more is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    name: str
    title: str
    unit: str
    more_is_better: bool = True
    headline: bool = False


CELLS = {
    cell.name: cell
    for cell in (
        Cell("get_natural", "random get, the system's own object", "samples/s", headline=True),
        Cell("get_data", "random get, PyG Data", "samples/s", headline=True),
        Cell("batch_natural", "random batch of 128, the system's own", "samples/s", headline=True),
        Cell("batch_pyg", "random batch of 128, PyG Batch", "samples/s", headline=True),
        Cell("epoch0", "shuffled epoch of PyG batches, no workers", "samples/s", headline=True),
        Cell("epoch2", "shuffled epoch of PyG batches, 2 workers", "samples/s"),
        Cell("open", "open and first sample, warm", "ms", more_is_better=False),
        Cell("cold", "random get, cold, all bytes touched, under a quarter of the data", "samples/s"),
        Cell("limited", "shuffled epoch under a quarter of the data", "samples/s"),
        Cell("write", "write a part, until it is on the disk", "bytes/s"),
        Cell("memory", "private (anonymous) memory of each of three processes", "bytes", more_is_better=False),
        Cell("memory_file", "its share of mapped files", "bytes", more_is_better=False),
    )
}
