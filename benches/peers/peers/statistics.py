"""Medians, spreads and ratios of a record's cells."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cells import CELLS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from intervals import ratio_interval  # noqa: E402


#: Memory may have grown by nothing at all: less than this counts as this.
LEAST_MEMORY = 1e6


@dataclass(frozen=True)
class Spread:
    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Ratio:
    """How many times better ours is; below 1 it is worse."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{short(self.median)} [{short(self.low)}, {short(self.high)}]"


def short(value: float) -> str:
    """Three significant digits, thousands parted."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(record: dict[str, Any], name: str) -> Ratio | None:
    """None where one side has no figures."""
    cell = record["cells"].get(name)
    if not cell or not cell["ours"] or not cell["peer"]:
        return None
    rounds = min(len(cell["ours"]), len(cell["peer"]))
    ours, theirs = cell["ours"][:rounds], cell["peer"][:rounds]
    if not CELLS[name].more_is_better:
        ours, theirs = theirs, ours
    if name in ("memory", "memory_file"):
        ours, theirs = ([max(value, LEAST_MEMORY) for value in side] for side in (ours, theirs))
    return Ratio(*ratio_interval(ours, theirs))


def summary(record: dict[str, Any]) -> str:
    parts = [f"{name} {found}" for name in ("get_natural", "get_data", "batch_pyg", "epoch0") if (found := ratio(record, name))]
    return "ours is faster by " + ", ".join(parts)
