"""Where ours is slower or larger, and why. The figures come from the records; a reason is written here once it is known, and a loss
without one says so."""

from __future__ import annotations

from ..cells import CELLS
from ..sets import SETS
from ..statistics import Spread, ratio, short
from .read import Record, Records, measured, others, title
from .table import HEADS, amount

#: Cell -> peer -> reason; the empty name is for every other peer.
WHY: dict[str, dict[str, str]] = {
    "get_data": {
        "pyg-inmemory-warm": "it returns an object that it made in an earlier epoch and keeps; ours makes one of the bytes each time. Its price is in the memory column",
        "": "its tensors are views of memory that must not be written to; ours are copies, which may be changed as PyG's may. With samples of this size the copy is what takes the time",
    },
    "batch_natural": {
        "": "its batch is a list of views: nothing is joined, and no byte is touched; ours is joined",
    },
    "get_natural": {
        "pyg-inmemory-warm": "it returns an object that it made earlier and keeps; ours makes arrays each time",
        "packed-pread": "one read of one record; ours makes an array for each attribute of the file's own places, and checks its offsets",
        "atompack": "its molecule is lazy: no array is made before an attribute is asked for",
    },
    "cold": {
        "packed-pread": "a record's attributes lie together: one read a sample, where ours has a place for each attribute. `rewrite` cannot change that; the layout pays when attributes are read alone and in batches of whole samples",
        "arrayrecord": "a record's attributes lie together: one read a sample",
        "bagz": "a record's attributes lie together, and its map is read ahead",
        "lance": "its file is smaller by compression: it is soon in the page cache as a whole",
        "": "its sample lies in one place, or is read ahead by the kernel; ours asks for the pages of each attribute and no others",
    },
    "limited": {
        "lance": "its file is smaller by compression, so that more of it stays in memory",
        "": "the disk bounds both: see the bytes that are read for a byte",
    },
    "open": {
        "bagz": "it reads the last eight bytes and maps the file; ours reads and checks a directory",
        "packed-pread": "a descriptor and one table",
        "": "ours reads and checks a directory, which is microseconds an attribute",
    },
    "write": {
        "numpy-sample": "plain files, without checks of dtype, shape and indices, without statistics, checksums and the publishing of a complete file by its name",
        "numpy-gather": "plain files, without checks of dtype, shape and indices, without statistics, checksums and the publishing of a complete file by its name",
        "packed-pread": "plain files, without checks, statistics and checksums",
        "bagz": "records are handed over as they are, without checks, statistics and checksums",
        "tensordict": "all of the set is held in memory and written in one piece; the memory column says at what price",
        "safetensors": "all of the set is held in memory and written in one piece; the memory column says at what price",
        "lance": "it writes fewer bytes",
        "": "ours checks dtype, shape and indices, keeps statistics and checksums, and publishes a complete file by its name",
    },
    "memory": {"": "tables and buffers of a process of its own"},
}


def lost(records: Records) -> list[tuple[str, str, Record]]:
    """Cell, set and record of every loss: the whole interval of the ratio is below 1."""
    out = []
    for cell in CELLS:
        if cell == "memory_file":
            continue  # shared by all processes: no loss and no gain
        for set_name in records:
            for record in others(records[set_name]).values():
                found = ratio(record, cell)
                if found and found.high < 1:
                    out.append((cell, set_name, record))
    return out


def given_up(records: Records) -> list[tuple[str, str, Record]]:
    """Cell, set and record where the other has figures and ours has none, because it failed."""
    return [
        (cell, set_name, record)
        for cell in CELLS
        for set_name in records
        for record in others(records[set_name]).values()
        if (told := record["cells"].get(cell)) and told["peer"] and not told["ours"] and "ours" in told["failed"]
    ]


def reason(cell: str, peer: str) -> str:
    told = WHY.get(cell, {})
    return told.get(peer) or told.get("") or "not looked into yet"


def losses_lines(records: Records) -> list[str]:
    found, failed = lost(records), given_up(records)
    if not found and not failed:
        return ["In no cell is the whole interval of the ratio below 1."]
    lines = ["| cell | set | against | ours / theirs | theirs | why |", "| --- | --- | --- | ---: | ---: | --- |"]
    for cell, set_name, record in found:
        theirs = amount(cell, Spread.of(record["cells"][cell]["peer"]).median)
        lines.append(
            f"| {HEADS[cell]} | {set_name} | {title(record)} | {ratio(record, cell)} | {theirs} | {reason(cell, record['peer'])} |"
        )
    for cell, set_name, record in failed:
        told = record["cells"][cell]
        theirs = amount(cell, Spread.of(told["peer"]).median)
        lines.append(f"| {HEADS[cell]} | {set_name} | {title(record)} | ours has no figure | {theirs} | {told['failed']['ours']} |")
    return lines


def sizes_lines(records: Records) -> list[str]:
    """Sizes against those that compress, whether they are measured or not."""
    columns = ("fencepost", "fencepost-narrow", "lance", "atompack", "atompack-zstd")
    lines = [
        "| set | data, MB | fencepost | fencepost, narrow | Lance | AtomPack | AtomPack, zstd | smallest of all |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for set_name, of_set in records.items():
        of_set = measured(of_set)
        if not of_set:
            continue
        some = next(iter(of_set.values()))
        sizes = {"fencepost": some["written"]["ours"]["file_bytes"]}
        sizes |= {peer: record["written"]["peer"]["file_bytes"] for peer, record in of_set.items()}
        data = some["set"]["bytes"]
        smallest = min(sizes, key=sizes.get)
        entries = [f"{sizes[peer] / 1e6:,.1f} MB, {sizes[peer] / data:.2f}" if peer in sizes else _missing(records, set_name, peer) for peer in columns]
        gain = f" ({short(sizes['fencepost'] / sizes[smallest])} times smaller than fencepost)" if smallest != "fencepost" else ""
        lines.append(f"| {set_name} | {data / 1e6:,.1f} | " + " | ".join(entries) + f" | {smallest}{gain} |")
    return lines


def _missing(records: Records, set_name: str, peer: str) -> str:
    record = records[set_name].get(peer)
    return "cannot store it" if record and "skipped" in record else "not measured"


def ties(records: Records) -> list[str]:
    """Cells in which neither is faster: the interval has 1 in it."""
    out = []
    for cell in CELLS:
        if cell in ("memory", "memory_file"):
            continue  # under the least that counts, they are always equal
        for set_name in records:
            for record in others(records[set_name]).values():
                found = ratio(record, cell)
                if found and found.low <= 1 <= found.high:
                    out.append(f"{HEADS[cell]}, {set_name}, {title(record)}: {found}")
    return out


def set_titles(records: Records) -> list[str]:
    return [f"`{name}`: {SETS[name].title}" for name in records]
