"""What was asked for, and what was measured: figures of the peers from their records, those of the Rust benchmarks from benches/records/rust.json."""

from __future__ import annotations

import json
from pathlib import Path

from ..statistics import Spread, ratio, short
from .read import Records, measured


def _asked(records: Records, peer: str, bound: float) -> tuple[str, str]:
    """The ratio of a shuffled epoch of QM9-like graphs, and whether its interval reaches the bound."""
    record = records.get("qm9", {}).get(peer)
    found = ratio(record, "epoch0") if record and "skipped" not in record else None
    if found is None:
        return "no record", "–"
    return f"{found} times `{peer}`", "met" if found.high >= bound else "**missed**"


def _private(records: Records) -> tuple[str, str]:
    grown = {
        name: Spread.of(values).median
        for name, of_set in records.items()
        if (values := [value for record in measured(of_set).values() for value in record["cells"].get("memory", {}).get("ours", [])])
    }
    if not grown:
        return "no record", "–"
    return (
        "; ".join(f"{name}: {max(value, 0) / (1 << 20):.1f} MiB" for name, value in grown.items()),
        "met" if max(grown.values()) < 20 << 20 else "**missed**",
    )


def _limited(records: Records) -> tuple[str, str]:
    record = next(iter(measured(records.get("big", {})).values()), None)
    told = record["cells"].get("limited") if record else None
    if not told:
        return "no record", "–"
    if not told["ours"]:
        return told["failed"].get("ours", "no figures"), "–" if told["failed"].get("ours", "").startswith("skipped") else "**missed**"
    return f"{short(Spread.of(told['ours']).median)} graphs/s on `big` under a quarter of it", "met"


def target_lines(records: Records, rust: Path) -> list[str]:
    told = json.loads(rust.read_text()) if rust.exists() else {"figures": {}}

    def ran(name: str) -> tuple[str, str, str]:
        figure = told["figures"].get(name)
        if not figure:
            return "no record", "–", "–"
        measured_text = figure["measured"] + (f". What bounds it: {figure['bound']}" if figure["bound"] else "")
        return measured_text, "met" if figure["met"] else "**missed**", f"`{figure['command']}`"

    here = "`make bench-full`"
    rows = [
        ("open (mapped, positional), any number of samples: under 1 ms up to 100 attributes, linear beyond", *ran("open")),
        ("one sample, QM9-like, warm, Rust: within 2 times a bare copy; mapped within 10 % of resident", *ran("get")),
        ("shuffled epoch into batches of 128, one thread: at most 1.25 times a gather by hand; 2 threads at least 1.7 times", *ran("collate")),
        ("the same as PyG `Batch` in Python: 100 times `InMemoryDataset` in its first epoch", *_asked(records, "pyg-inmemory", 100), here),
        ("40 times with its cache warm", *_asked(records, "pyg-inmemory-warm", 40), here),
        ("100 times `OnDiskDataset`, pickled", *_asked(records, "pyg-ondisk-pickle", 100), here),
        ("100 times `OnDiskDataset`, schema", *_asked(records, "pyg-ondisk-schema", 100), here),
        ("4 times a vectorised numpy gather", *_asked(records, "numpy-gather", 4), here),
        ("writer: 0.9 of plain buffered writes; memory independent of the number of samples, under 64 MiB", *ran("write")),
        ("a set of 4 times the limit, shuffled: completes, no anonymous growth, as fast as the disk", *ran("limited")),
        ("the same in Python", *_limited(records), here),
        ("cold random gets, mapped: at most 1.5 times the pages that the samples occupy", *ran("amplification")),
        ("n processes on one file: under 20 MiB of private memory each", *_private(records), here),
        ("any flipped bit is found by `verify`", "see [docs/reliability.md](docs/reliability.md)", "met", "`make crash`"),
        ("kill at any moment, disk full, short writes: old file or new file", "see [docs/reliability.md](docs/reliability.md)", "met", "`make crash`"),
    ]
    lines = ["| asked | measured | | by |", "| --- | --- | --- | --- |"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
