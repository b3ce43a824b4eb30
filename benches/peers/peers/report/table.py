"""Tables of cells: for a terminal, and for the page."""

from __future__ import annotations

from pathlib import Path

from ..cells import CELLS
from ..statistics import Spread, ratio, short
from .read import Record, measured, others, ours_values, read, title

SPEED = ("get_natural", "get_data", "batch_natural", "batch_pyg", "epoch0", "epoch2")
#: What stands in the second table as cells with rounds.
REST = ("open", "write", "cold", "limited", "memory")
HEADS = {
    "get_natural": "get, own object",
    "get_data": "get, `Data`",
    "batch_natural": "batch of 128, own",
    "batch_pyg": "batch of 128, `Batch`",
    "epoch0": "epoch, 0 workers",
    "epoch2": "epoch, 2 workers",
    "open": "open + first sample",
    "write": "write, durable",
    "cold": "cold get",
    "limited": "epoch, under a limit",
    "memory": "private memory of a process",
}


def amount(cell: str, value: float) -> str:
    """A value with its unit."""
    unit = CELLS[cell].unit
    if unit == "samples/s":
        return f"{short(value)}/s"
    if unit == "bytes/s":
        return f"{short(value / 1e6)} MB/s"
    if unit == "bytes":
        return f"{short(max(value, 0) / 1e6)} MB"
    return f"{short(value)} {unit}"


def spread(cell: str, values: list[float]) -> str:
    found = Spread.of(values)
    least, most = (amount(cell, value).split("/s")[0].split(" ")[0] for value in (found.least, found.most))
    return f"{amount(cell, found.median)} ({least} to {most})"


def entry(record: Record, cell: str) -> str:
    """The ratio with its interval, and what the peer reached; or why there is nothing."""
    told = record["cells"].get(cell)
    if told is None:
        return "–"
    if not told["peer"]:
        return told["failed"].get("peer", "–")
    reached = spread(cell, told["peer"])
    found = ratio(record, cell)
    if found is None:
        return f"{reached}; ours: {told['failed'].get('ours', 'no figures')}"
    return f"**{found}**<br>{reached}"


def cells_table(records: dict[str, Record], cells: tuple[str, ...]) -> list[str]:
    cells = tuple(cell for cell in cells if any(cell in record["cells"] for record in measured(records).values()))
    lines = ["| | " + " | ".join(HEADS[cell] for cell in cells) + " |", "| --- |" + " ---: |" * len(cells)]
    mine = [spread(cell, values) if (values := ours_values(records, cell)) else _failure(records, cell) for cell in cells]
    lines.append("| fencepost, mapped | " + " | ".join(mine) + " |")
    for record in measured(records).values():
        lines.append(f"| {title(record)} | " + " | ".join(entry(record, cell) for cell in cells) + " |")
    return lines


def _failure(records: dict[str, Record], cell: str) -> str:
    """Why ours has nothing in any pair."""
    reasons = {record["cells"].get(cell, {}).get("failed", {}).get("ours") for record in measured(records).values()} - {None}
    return "; ".join(sorted(reasons)) or "–"


def files_table(records: dict[str, Record]) -> list[str]:
    """The whole set written once: sizes, memory, speed."""
    lines = [
        "| | file, MB | of the data | files | written at | highest memory while writing | pages of files in a process | read from disk for a byte, cold |",
        "| --- |" + " ---: |" * 7,
    ]
    some = next(iter(measured(records).values()))
    lines.append(_file_line("fencepost, mapped", some, "ours"))
    lines += [_file_line(title(record), record, "peer") for record in measured(records).values()]
    return lines


def _file_line(name: str, record: Record, side: str) -> str:
    written, cells = record["written"][side], record["cells"]
    mapped = cells.get("memory_file", {}).get(side)
    cold = cells.get("cold", {}).get("more", {}).get(side)
    entries = [
        name,
        short(written["file_bytes"] / 1e6),
        f"{written['file_bytes'] / written['bytes']:.2f}",
        f"{written['files']:,}",
        f"{short(written['rate'] / 1e6)} MB/s",
        f"{short(max(written['peak'], 0) / 1e6)} MB",
        f"{short(max(Spread.of(mapped).median, 0) / 1e6)} MB" if mapped else "–",
        f"{Spread.of([one['read_per_asked'] for one in cold]).median:.2f}" if cold else "–",
    ]
    return "| " + " | ".join(entries) + " |"


def plain(folder: Path) -> str:
    """For a terminal: how many times faster ours is."""
    lines = []
    for set_name, records in read(folder).items():
        if not measured(records):
            continue
        lines += ["", f"{set_name}: ours is better by (median of the rounds' ratios)", ""]
        cells = (*SPEED, "open")
        lines.append(" " * 24 + "".join(f"{cell:>15}" for cell in cells))
        for peer, record in measured(records).items():
            found = [ratio(record, cell) for cell in cells]
            lines.append(f"{peer:24}" + "".join(f"{short(one.median) if one else '-':>15}" for one in found))
    return "\n".join(lines)


def best(records: dict[str, Record], cell: str) -> tuple[str, Record] | None:
    """The peer that comes nearest to ours, or passes it."""
    ranked = [(found.median, peer) for peer, record in others(records).items() if (found := ratio(record, cell))]
    if not ranked:
        return None
    peer = min(ranked)[1]
    return peer, records[peer]
