"""The records of a folder, by set and peer, in the order in which they are planned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..sets import SETS
from ..systems import SYSTEMS

Record = dict[str, Any]
Records = dict[str, dict[str, Record]]

#: Forms of ours, beside the mapped one that everything is compared with.
VARIANTS = ("fencepost-resident", "fencepost-positional", "fencepost-narrow", "fencepost-convert")


def read(folder: Path) -> Records:
    """Raises ValueError for a record of a format that this program does not know."""
    out: Records = {}
    for set_name in SETS:
        for peer in SYSTEMS:
            path = folder / set_name / f"{peer}.json"
            if not path.exists():
                continue
            record = json.loads(path.read_text())
            if record["format"] != 1:
                raise ValueError(f"{path}: expected a record of format 1, found {record['format']}")
            out.setdefault(set_name, {})[peer] = record
    return out


def measured(records: dict[str, Record]) -> dict[str, Record]:
    return {peer: record for peer, record in records.items() if "skipped" not in record}


def others(records: dict[str, Record]) -> dict[str, Record]:
    """Those that are not ours in another form."""
    return {peer: record for peer, record in measured(records).items() if peer not in VARIANTS}


def title(record: Record) -> str:
    return record["written"]["peer"]["about"]["title"]


def ours_values(records: dict[str, Record], cell: str) -> list[float]:
    """What ours reached in all pairs."""
    return [value for record in measured(records).values() for value in record["cells"].get(cell, {}).get("ours", [])]
