"""BENCHMARKS.md and its plots."""

from __future__ import annotations

from pathlib import Path

from ..sets import SETS
from ..settings import FULL
from ..statistics import Spread, ratio
from ..systems import SYSTEMS
from .advice import advice_lines
from .losses import losses_lines, sizes_lines, ties
from .plots import bars
from .read import VARIANTS, Record, Records, measured, ours_values, title
from .table import HEADS, REST, SPEED, best, cells_table, files_table
from .targets import target_lines

PLOTTED = ("epoch0", "get_data")


def pictures(records: Records) -> dict[str, str]:
    """File name -> SVG."""
    out = {}
    for set_name, of_set in records.items():
        for cell in PLOTTED:
            values = {}
            if mine := ours_values(of_set, cell):
                values["fencepost, mapped"] = _three(mine)
            ours = set(values)
            for peer, record in measured(of_set).items():
                reached = record["cells"].get(cell, {}).get("peer")
                if reached:
                    values[title(record)] = _three(reached)
                    ours |= {title(record)} if peer in VARIANTS else set()
            if len(values) > 1:
                heading = f"{SETS[set_name].title}: {HEADS[cell]}, samples a second"
                out[f"{set_name}-{cell.replace('_', '-')}.svg"] = bars(heading, "/s", values, ours)
    return out


def _three(values: list[float]) -> tuple[float, float, float]:
    found = Spread.of(values)
    return found.median, found.least, found.most


def page(records: Records, rust: Path, plots: str) -> str:
    """The text. `plots` is the folder of the pictures, as the page links to it."""
    if not any(measured(of_set) for of_set in records.values()):
        raise ValueError("there is no record with figures: `make bench-full` makes them")
    blocks = [_head(records), _overview(records), *(_set(name, records[name], plots) for name in records)]
    blocks += [_losses(records), _advice(records), _targets(records, rust), _left_out(records), _versions(records)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _every(records: Records) -> list[Record]:
    return [record for of_set in records.values() for record in measured(of_set).values()]


def _head(records: Records) -> list[str]:
    every = _every(records)
    machine = every[0]["machine"]
    days = sorted({record["when"] for record in every})
    loads = sorted(record["machine"]["load"] for record in every)
    settings = every[0]["settings"]
    partial = sorted({f"`{record['set']['name']}` at {record['set']['scale']:g}" for record in every if record["set"]["scale"] != 1})
    rows = [
        "# Benchmarks against other systems",
        "",
        "Made by `make bench-report` from the records in `benches/records/`; nothing here is typed by hand but reasons and advice. `make bench-full` measures anew,",
        "`make bench` in a short form, and `make bench PEER=lmdb` one system. How each is used stands at the end, with its version; the programs are in `benches/peers/`.",
        "",
        f"Measured {'on ' + days[0] if len(days) == 1 else 'from ' + days[0] + ' to ' + days[-1]}: {'a virtual machine' if machine['virtual'] else 'a machine'}, {machine['cpu']}, "
        f"{machine['cores']} cores, {machine['memory'] / (1 << 30):.0f} GiB, Linux {machine['kernel']}, {machine['filesystem']} on {machine['disk']} "
        f"(read-ahead {machine.get('read_ahead_kb', '?')} KiB). Load when a pair was done: {loads[len(loads) // 2]:.1f} in the middle, {loads[-1]:.1f} at most.",
        "",
        "How to read it:",
        "",
        "- **A bold figure is how many times better fencepost (mapped) is**, the median of the rounds' ratios, with its 95 % bootstrap interval; below 1 the other is better.",
        "  After it, what the other reached: median (least to most of its rounds).",
        f"- fencepost and one other take turns in a round, in two processes that keep their files open, after the files were read once from front to back; {settings['headline']} rounds for gets, batches and the epoch without workers,",
        f"  {settings['rounds']} for the rest, after a round that is not counted. A round asks both for the same random samples for {settings['get']:g} s, or for shuffled epochs for {settings['epoch']:g} s; the records say how many samples that were.",
        "- Whole epochs are counted where one fits into the time. Where none fits, it is the rate after the first batch, so that a start which a long epoch would hide is not counted.",
        "- Before anything is timed, 130 samples, a natural batch and a PyG batch are compared with what was written, value by value.",
        "- `num_workers` are processes for all systems but ours, whose loader has threads, and takes two of them for 0 workers: on two cores that is up to twice one.",
        "  Workers are started for each epoch; where an epoch is counted as a whole, that is part of it.",
        "- cold: the system's own files have left the page cache, and the process has a memory limit of a quarter of the data for all that it takes after its imports; each sample is read once,",
        "  and every byte of it. A file that is smaller than the data (by compression) may be under four times that limit.",
        "- The systems' own objects differ in what they have done: views touch no byte of the values, and a list of samples is not joined. The columns in PyG's objects ask the same of all.",
        "- write: a part of the set, until it is on the disk; the time that the source takes to make its samples is taken off. The second table has the whole set, written once.",
        "- private memory: what each of three processes that read the set at once has added to memory of its own (anonymous; less than 1 MB counts as 1 MB), and its share of mapped files.",
        "- torch has one thread. Spreads of a shared virtual machine are wide: differences whose interval touches 1 mean nothing.",
    ]
    if partial:
        rows += ["", f"**Parts of sets only**: {', '.join(partial)}."]
    return rows


def _overview(records: Records) -> list[str]:
    cells = ("get_data", "batch_pyg", "epoch0")
    rows = ["## The nearest of all, set by set", "", "| set | " + " | ".join(HEADS[cell] for cell in cells) + " |", "| --- |" + " --- |" * len(cells)]
    for set_name, of_set in records.items():
        entries = []
        for cell in cells:
            found = best(of_set, cell)
            entries.append(f"**{ratio(found[1], cell)}** times {title(found[1])}" if found else "–")
        rows.append(f"| {SETS[set_name].title} | " + " | ".join(entries) + " |")
    return rows


def _set(set_name: str, of_set: dict[str, Record], plots: str) -> list[str]:
    some = next(iter(measured(of_set).values()), None)
    if some is None:
        return [f"## {SETS[set_name].title} (`{set_name}`)", "", "No figures."]
    told = some["set"]
    rows = [
        f"## {SETS[set_name].title} (`{set_name}`)",
        "",
        f"{told['samples']:,} samples, {told['bytes'] / 1e6:,.1f} MB, {told['bytes'] / told['samples']:,.0f} bytes a sample.",
        "",
    ]
    for cell in PLOTTED:
        rows += [f"![{HEADS[cell]}]({plots}/{set_name}-{cell.replace('_', '-')}.svg)", ""]
    rows += cells_table(of_set, SPEED)
    rest = cells_table(of_set, REST)
    rows += ["", *rest, "", *files_table(of_set)]
    return rows


def _losses(records: Records) -> list[str]:
    near = ties(records)
    rows = [
        "## Where we lose, and why",
        "",
        "### Size",
        "",
        "Nothing is compressed, because a mapped read must need no decoding; `narrow` stores each attribute as the smallest type that holds its values exactly. Others compress:",
        "Lance packs integers into bits by itself, AtomPack has lz4 and zstd for each record when asked.",
        "",
        *sizes_lines(records),
        "",
        "### Speed",
        "",
        "Every cell in which the whole interval of the ratio is below 1:",
        "",
        *losses_lines(records),
    ]
    if near:
        rows += ["", f"Neither is faster, because the interval has 1 in it: {'; '.join(near)}."]
    return rows


def _advice(records: Records) -> list[str]:
    return ["## What to pick instead of us, when", "", *advice_lines(records)]


def _targets(records: Records, rust: Path) -> list[str]:
    return [
        "## What was asked for",
        "",
        "A ratio counts as reached where its interval reaches the bound. Figures of Rust programs are those of [benches/README.md](benches/README.md).",
        "",
        *target_lines(records, rust),
    ]


def _left_out(records: Records) -> list[str]:
    rows = ["## Left out", ""]
    for set_name, of_set in records.items():
        rows += [f"- {record['peer']} on `{set_name}`: {record['skipped']}." for record in of_set.values() if "skipped" in record]
        planned = [peer for peer in SYSTEMS if peer not in of_set and peer != "fencepost"]
        if planned and set_name not in ("big", "connected10"):
            rows.append(f"- not measured on `{set_name}`: {', '.join(planned)}.")
    rows += [f"- `{name}`: no record." for name in SETS if name not in records]
    rows.append("- `big` is for the five that were fastest with a file of four times the limit, `connected10` for three: files are large, and the slow ones take hours.")
    return rows


def _versions(records: Records) -> list[str]:
    rows = ["## How each is used", "", "| system | version | use | `get` gives | `batch` gives |", "| --- | --- | --- | --- | --- |"]
    seen: dict[str, Record] = {}
    for of_set in records.values():
        for peer, record in measured(of_set).items():
            seen.setdefault(peer, record)
    some = next(iter(seen.values()))
    rows.append(_use(some, "ours"))
    rows += [_use(record, "peer") for record in seen.values()]
    versions = some["versions"]
    rows += ["", f"Python {versions['python']}, torch {versions['torch']}, torch_geometric {versions['torch_geometric']}, numpy {versions['numpy']}."]
    if some["settings"]["name"] != FULL.name:
        rows += ["", f"**Not the full form**: settings `{some['settings']['name']}`."]
    return rows


def _use(record: Record, side: str) -> str:
    about = record["written"][side]["about"]
    version = record["versions"].get(about["distribution"], "by hand")
    return f"| {about['title']} | {version} | {about['use']} | {about['natural']} | {about['natural_batch']} |"
