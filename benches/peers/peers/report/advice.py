"""What to pick instead of ours, and when. Sentences that lean on a figure take it from the records; without the record they say so."""

from __future__ import annotations

from ..statistics import ratio, short
from .read import Records


def _ratio(records: Records, set_name: str, peer: str, cell: str) -> str:
    record = records.get(set_name, {}).get(peer)
    found = ratio(record, cell) if record and "skipped" not in record else None
    return f"ours is {found} times as fast on `{set_name}`" if found else f"not measured on `{set_name}`"


def _size(records: Records, set_name: str, peer: str) -> str:
    record = records.get(set_name, {}).get(peer)
    if not record or "skipped" in record:
        return f"not measured on `{set_name}`"
    theirs, ours = (record["written"][side]["file_bytes"] for side in ("peer", "ours"))
    return f"its file of `{set_name}` is {short(ours / theirs)} times smaller"


def advice_lines(records: Records) -> list[str]:
    return [
        "| you have or need | pick | because |",
        "| --- | --- | --- |",
        f"| a set of some thousand graphs that fits into memory many times, trained in one process | PyG `InMemoryDataset` | one file less to understand; a warm cache returns ready objects (`get` of a `Data`: {_ratio(records, 'qm9', 'pyg-inmemory-warm', 'get_data')}) |",
        f"| the smallest file, columns queried one by one, versions and appends | Lance | it compresses ({_size(records, 'connected9', 'lance')}; {_size(records, 'qm9', 'lance')}), and has transactions; batches cost more (`Batch`: {_ratio(records, 'qm9', 'lance', 'batch_pyg')}) |",
        f"| molecules with positions, forces and energies, in the shape that AtomPack knows | AtomPack | made for them, compressed on request, a hub of ready sets (`Batch`: {_ratio(records, 'qm9', 'atompack', 'batch_pyg')}) |",
        "| samples that are added, changed or deleted while others read | LMDB, or SQLite through PyG's `OnDiskDataset` | a file of ours is immutable |",
        f"| records of bytes that you decode yourself, one cold read each | ArrayRecord (checksums), bagz | a record lies in one place (cold get: {_ratio(records, 'meshes', 'arrayrecord', 'cold')}); no arrays, no batches |",
        "| data in an object store, streamed to many machines | MosaicML Streaming, LitData, WebDataset | ours reads local and mounted files only |",
        "| readers in other languages, tools of other trades | HDF5, Parquet, Arrow | ours has readers in Rust and Python, and a specification |",
        f"| one program, one schema, no checks | a hand-written gather over memory maps | no dependency (`Batch`: {_ratio(records, 'qm9', 'numpy-gather', 'batch_pyg')}; written: {_ratio(records, 'qm9', 'numpy-gather', 'write')}) |",
    ]
