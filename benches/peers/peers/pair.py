"""One peer and fencepost on one set, in alternated rounds: one record.

Files are made and deleted peer by peer; ours stay for as long as the set is measured. Processes are few, because each imports torch:
three of each system read the set at once for the memory cell, then one of them serves the timed cells and another one those under a limit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import machine, memory
from .cells import CELLS
from .child import Child, Failed
from .limit import Group, NoLimit
from .sets import SETS
from .settings import Settings

#: Less than this is no limit that Python runs batches under.
LEAST_LIMIT = 32 << 20
#: Seconds until an answer: for a start or a write, and under a limit, where a system may do nothing but wait for the disk.
PATIENCE = 900
PATIENCE_LIMITED = 240


class Skipped(RuntimeError):
    """A peer that cannot be measured on this set, and why."""


def say(text: str) -> None:
    print(f"peers: {text}", file=sys.stderr, flush=True)


class Side:
    """One system with its files and its processes."""

    def __init__(self, name: str, set_name: str, scale: float, work: Path, settings: Settings) -> None:
        self.name, self.set_name, self.scale, self.settings = name, set_name, scale, settings
        self.folder = work / set_name / name
        self.spare: list[Child] = []
        self.serving: Child | None = None
        self.limited: Child | None = None
        self.written: dict[str, Any] = {}
        self.memory: dict[str, Any] = {}

    def write(self) -> None:
        """The whole set in a process of its own, compared with its source. Raises Failed, and Skipped where there is nothing to be had."""
        command = [sys.executable, "-m", "peers.writing", self.name, self.set_name, str(self.scale), str(self.folder)]
        here = Path(__file__).resolve().parents[1]
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, cwd=here, check=False, timeout=2 * PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"writing has not ended in {2 * PATIENCE} s") from error
        if result.returncode:
            raise Failed(f"writing, or comparing what was written, ended with exit code {result.returncode}")
        self.written = json.loads(result.stdout.splitlines()[-1])
        if "refused" in self.written:
            raise Skipped(self.written["refused"])

    def processes(self) -> None:
        """As many as are needed from here on. With the memory cell, three at once have read the set before."""
        if "memory" in self.settings.leaves_out:
            self.spare = [Child(self.name, self.set_name, self.scale, self.folder)]
            return
        self.spare = [Child(self.name, self.set_name, self.scale, self.folder) for _ in range(3)]
        try:
            for one in self.spare:
                one.ask("ready", PATIENCE)
            for one in self.spare:
                one.tell("touch", seconds=self.settings.touch)
            touched = [one.answer("touch", PATIENCE) for one in self.spare]
            after = [one.ask("memory") for one in self.spare]
        except Failed as error:
            self.memory = {"failed": str(error)}
        else:
            grown = [{kind: now[kind] - told["before"][kind] for kind in now} for now, told in zip(after, touched, strict=True)]
            self.memory = {"grown": grown, "n": [told["n"] for told in touched]}
        for one in self.spare:
            if one.alive:
                one.tell("close")
                one.answer("close")
        self.spare = [one for one in self.spare if one.alive]

    def process(self) -> Child:
        return self.spare.pop() if self.spare else Child(self.name, self.set_name, self.scale, self.folder)

    def serve(self) -> Child:
        """The process for timed cells, open and warm."""
        if self.serving is None or not self.serving.alive:
            self.serving = self.process()
        self.serving.ask("start", PATIENCE)
        return self.serving

    def under(self, group: Group) -> Child:
        if self.limited is None or not self.limited.alive:
            self.limited = self.process()
            self.limited.ask("ready", PATIENCE)
        self.limited.ask("join", procs=group.procs)
        return self.limited

    def stop(self) -> None:
        for one in (*self.spare, self.serving, self.limited):
            if one is not None:
                one.stop()
        self.spare, self.serving, self.limited = [], None, None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cells:
    """What has been measured so far, by cell and side."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, Any]] = {}

    def _cell(self, name: str) -> dict[str, Any]:
        return self.cells.setdefault(name, {"ours": [], "peer": [], "more": {"ours": [], "peer": []}, "failed": {}})

    def add(self, name: str, side: str, value: float, more: dict[str, Any]) -> None:
        self._cell(name)[side].append(value)
        self._cell(name)["more"][side].append(more)

    def fail(self, name: str, side: str, reason: str) -> None:
        self._cell(name)["failed"][side] = reason

    def failed(self, name: str, side: str) -> bool:
        return side in self._cell(name)["failed"]


def alternate(cells: Cells, name: str, rounds: int, value: str, sides: dict[str, Callable[[int], dict[str, Any]]]) -> None:
    """A cell: each side in turn, round by round. A side that fails once is asked no more."""
    for number in range(rounds):
        for side, ask in sides.items():
            if cells.failed(name, side):
                continue
            try:
                told = ask(number)
            except Failed as error:
                cells.fail(name, side, str(error))
            else:
                cells.add(name, side, told.pop(value), told)


def measure(peer: Side, ours: Side, settings: Settings) -> dict[str, Any]:
    """The record. Raises Skipped where there is nothing to measure."""
    made = SETS[peer.set_name]
    started = time.time()
    peer.write()
    peer.processes()
    random_access = peer.written["about"]["random_access"]
    cells, both = Cells(), {"ours": ours, "peer": peer}
    _memory(cells, both)
    _warm(cells, both, settings, random_access)
    if "limited" not in settings.leaves_out:
        _limited(cells, both, settings, random_access)
    peer.stop()
    return {
        "format": 1,
        "set": {"name": made.name, "title": made.title, "samples": peer.written["samples"], "bytes": peer.written["bytes"], "scale": peer.scale},
        "peer": peer.name,
        "when": time.strftime("%Y-%m-%d", time.gmtime(started)),
        "took": round(time.time() - started, 1),
        "machine": machine.facts(peer.folder),
        "commit": machine.commit(),
        "versions": machine.versions(ours.written["about"]["distribution"], peer.written["about"]["distribution"]),
        "settings": settings.record(),
        "written": {"ours": ours.written, "peer": peer.written},
        "cells": cells.cells,
    }


def _memory(cells: Cells, both: dict[str, Side]) -> None:
    for side, one in both.items():
        if "failed" in one.memory:
            for name in ("memory", "memory_file"):
                cells.fail(name, side, one.memory["failed"])
        for grown, number in zip(one.memory.get("grown", ()), one.memory.get("n", ()), strict=True):
            cells.add("memory", side, grown["anonymous"], {"n": number})
            cells.add("memory_file", side, grown["file"], {"n": number})


def _warm(cells: Cells, both: dict[str, Side], settings: Settings, random_access: bool) -> None:
    asked = {
        "get_natural": ("get", {"form": "natural", "seconds": settings.get}, "rate"),
        "get_data": ("get", {"form": "data", "seconds": settings.get}, "rate"),
        "batch_natural": ("batch", {"form": "natural", "seconds": settings.get}, "rate"),
        "batch_pyg": ("batch", {"form": "pyg", "seconds": settings.get}, "rate"),
        "epoch0": ("epoch", {"workers": 0, "seconds": settings.epoch}, "rate"),
        "epoch2": ("epoch", {"workers": settings.workers, "seconds": settings.epoch}, "rate"),
    }
    children = {side: one.serve() for side, one in both.items()}
    for name, (do, arguments, value) in asked.items():
        if name in settings.leaves_out:
            continue
        if not random_access and do != "epoch":
            cells.fail(name, "peer", "it reads from front to back only")
            continue
        rounds = settings.headline if CELLS[name].headline else settings.rounds
        # Round 0 warms up: it is asked for, and not kept.
        warm = Cells()
        ask = {side: lambda number, one=one: one.ask(do, **arguments, seed=number) for side, one in children.items()}
        alternate(warm, name, 1, value, ask)
        for side in both:
            if warm.failed(name, side):
                cells.fail(name, side, warm.cells[name]["failed"][side])
        ask = {side: lambda number, one=one: one.ask(do, **arguments, seed=1 + number) for side, one in children.items()}
        alternate(cells, name, rounds, value, ask)
        # A side that died in a cell is there again for the next.
        children = {side: child if child.alive else both[side].serve() for side, child in children.items()}
    alternate(
        cells, "open", settings.rounds, "milliseconds",
        {side: lambda number, one=one: one.ask("open", PATIENCE, seconds=settings.open) for side, one in children.items()},
    )  # fmt: skip
    if "write" not in settings.leaves_out:
        part = SETS[both["peer"].set_name].part
        ask = {
            side: lambda number, one=one, side=side: one.ask(
                "write", PATIENCE, part=part, folder=str(both[side].folder.parent / f"part-{side}")
            )
            for side, one in children.items()
        }
        alternate(cells, "write", settings.rounds, "rate", ask)
        for side in both:
            shutil.rmtree(both[side].folder.parent / f"part-{side}", ignore_errors=True)
    for child in children.values():
        if child.alive:
            # A file that somebody has mapped does not leave the page cache.
            child.ask("close")


def _limited(cells: Cells, both: dict[str, Side], settings: Settings, random_access: bool) -> None:
    """Cold gets, then an epoch, each in a group of a quarter of the data."""
    limit = both["peer"].written["bytes"] // 4
    names = ("cold", "limited")

    def fail(side: str, reason: str) -> None:
        for name in names:
            cells.fail(name, side, reason)

    if limit < LEAST_LIMIT:
        for side in both:
            fail(side, f"skipped: a quarter of the data is {limit / 1e6:.1f} MB")
        return
    groups: dict[str, Group] = {}
    children: dict[str, Child] = {}
    try:
        for side, one in both.items():
            try:
                groups[side] = Group(side, limit)
                children[side] = one.under(groups[side])
            except NoLimit as error:
                fail(side, f"skipped: {error}")
            except Failed as error:
                fail(side, str(error))
        if not random_access:
            cells.fail("cold", "peer", "it reads from front to back only")
        more = {"limit": limit}
        for name, seconds in (("cold", settings.cold), ("limited", settings.epoch)):
            for side, child in children.items():
                if not child.alive:
                    children[side] = both[side].under(groups[side])
            ask = {
                side: lambda number, one=one, name=name, seconds=seconds: one.ask(name, PATIENCE_LIMITED, seconds=seconds, seed=1 + number) | more
                for side, one in children.items()
            }
            alternate(cells, name, settings.rounds, "rate", ask)
    finally:
        for side, group in groups.items():
            if "limited" in cells.cells:
                cells.cells["limited"].setdefault("peak", {})[side] = group.peak()
            # Ours is used again for the next peer.
            if side == "ours" and both[side].limited is not None:
                group.release(both[side].limited.process.pid)
            elif both[side].limited is not None:
                both[side].limited.stop()
            group.remove()


def save(record: dict[str, Any], path: Path) -> None:
    """Under its name when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    aside.write_text(json.dumps(record, indent=1) + "\n")
    aside.rename(path)


def skipped(name: str, set_name: str, scale: float, reason: str, settings: Settings) -> dict[str, Any]:
    made = SETS[set_name]
    return {
        "format": 1,
        "set": {"name": made.name, "title": made.title, "scale": scale},
        "peer": name,
        "when": time.strftime("%Y-%m-%d", time.gmtime()),
        "settings": settings.record(),
        "skipped": reason,
    }
