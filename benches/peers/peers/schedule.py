"""Which pairs are measured, in which order, and how long they take."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from . import pair
from .child import Failed
from .pair import Side, say
from .sets import SETS
from .settings import Settings
from .statistics import summary
from .systems import OURS, SYSTEMS

EVERY = tuple(name for name in SYSTEMS if name != OURS)
#: The most important first: a run that is stopped has those.
PLAN: dict[str, tuple[str, ...]] = {
    "qm9": EVERY,
    "b3db": EVERY,
    "meshes": EVERY,
    "connected9": EVERY,
    # Those that were fastest on a file of four times the limit, in an earlier comparison of twenty.
    "big": ("packed-pread", "arrayrecord", "lance", "hdf5", "lmdb", "fencepost-positional"),
    # The nearest in batches, in single samples, and in size.
    "connected10": ("numpy-gather", "lmdb", "lance", "fencepost-narrow"),
}
#: Seconds that a pair takes in the full form, and once for the set, on two cores; what a record says replaces the first.
EXPECTED = {"qm9": (75, 25), "b3db": (50, 20), "meshes": (90, 40), "connected9": (75, 60), "big": (180, 90), "connected10": (600, 420)}
#: Left free on the disk, whatever is measured.
RESERVE = 15_000_000_000
#: The most that a system takes on the disk while it writes, in bytes of the data.
ON_DISK = {"pyg-ondisk-pickle": 3.5, "lmdb-pickle": 3.5, "hdf5": 2.2}
ON_DISK_ELSE = 1.6


@dataclass(frozen=True)
class Job:
    """What is asked for on the command line."""

    sets: tuple[str, ...]
    peers: tuple[str, ...]  # none: those of the plan
    settings: Settings
    scale: float
    records: Path
    work: Path
    again: bool
    minutes: float | None

    def peers_of(self, set_name: str) -> tuple[str, ...]:
        return self.peers or PLAN[set_name]

    def record(self, set_name: str, peer: str) -> Path:
        return self.records / set_name / f"{peer}.json"

    def done(self, set_name: str, peer: str) -> bool:
        path = self.record(set_name, peer)
        if self.again or not path.exists():
            return False
        told = json.loads(path.read_text())
        return told["settings"] == json.loads(json.dumps(self.settings.record())) and told["set"]["scale"] == self.scale


def outlook(job: Job) -> list[str]:
    """A line a set: pairs that are left, and the minutes they take."""
    lines, total = [], 0.0
    for set_name in job.sets:
        left = [peer for peer in job.peers_of(set_name) if not job.done(set_name, peer)]
        if not left:
            lines.append(f"{set_name}: all records are there")
            continue
        each, once = EXPECTED[set_name]
        if job.settings.name == "short":
            each, once = 16, 12
        took = [json.loads(path.read_text()).get("took") for path in (job.records / set_name).glob("*.json")]
        took = [seconds for seconds in took if seconds]
        if took and job.settings.name == "full":
            each = sum(took) / len(took)
        minutes = (once + each * len(left)) / 60
        total += minutes
        lines.append(f"{set_name}: {len(left)} of {len(job.peers_of(set_name))} peers to measure, about {minutes:.0f} min")
    return [*lines, f"about {total:.0f} min in all; stop it when you like: what is recorded is not measured again"]


def run(job: Job) -> int:
    """Measures what is left; the number of pairs that gave no figures."""
    start, without = time.time(), 0
    for line in outlook(job):
        say(line)
    for set_name in job.sets:
        left = [peer for peer in job.peers_of(set_name) if not job.done(set_name, peer)]
        if not left:
            continue
        missing = SETS[set_name].missing()
        if missing:
            say(f"{set_name}: left out, because {missing}")
            continue
        ours = Side(OURS, set_name, job.scale, job.work, job.settings)
        try:
            say(f"{set_name}: writing it, and reading it in three processes")
            ours.write()
            ours.processes()
            for peer in left:
                if job.minutes and time.time() - start > job.minutes * 60:
                    say(f"{peer} and what follows is left out: the {job.minutes:g} minutes are over")
                    break
                without += not _one(job, set_name, peer, ours)
        finally:
            ours.remove()
            shutil.rmtree(job.work / set_name, ignore_errors=True)
    return without


def _one(job: Job, set_name: str, peer: str, ours: Side) -> bool:
    """Measures one pair and records it; whether there are figures."""
    side = Side(peer, set_name, job.scale, job.work, job.settings)
    needed = ON_DISK.get(peer, ON_DISK_ELSE) * ours.written["bytes"] + RESERVE
    free = shutil.disk_usage(job.work).free
    try:
        if free < needed:
            raise pair.Skipped(f"the disk has {free / 1e9:.0f} GB free, and {needed / 1e9:.0f} GB are asked for")
        record = pair.measure(side, ours, job.settings)
    except (pair.Skipped, Failed) as error:
        record = pair.skipped(peer, set_name, job.scale, str(error), job.settings)
        say(f"{set_name}, {peer}: no figures: {error}")
    else:
        say(f"{set_name}, {peer}: {record['took']:.0f} s; {summary(record)}")
    finally:
        side.remove()
    pair.save(record, job.record(set_name, peer))
    return "skipped" not in record
