"""What is timed, in the process of one system. Every function gives plain numbers that go into the record.

A rate is that of as many samples as fit into the seconds given: `n` says how many these were.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from . import memory
from .sets import Sample, Source, nbytes
from .system import BATCH, System

#: Samples between two looks at the clock.
STRIDE = 32
#: Samples from which it is known what the source itself takes; the time of more is reckoned from it.
DRAINED = 50_000


def shuffled(count: int, seed: int) -> Iterator[int]:
    """Indices of shuffled epochs, without end: the same for every system."""
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(count)
        # Piece by piece: as Python's numbers, millions of them are hundreds of megabytes.
        for at in range(0, count, 4096):
            yield from order[at : at + 4096].tolist()


def index_batches(count: int, seed: int, number: int) -> list[list[int]]:
    order = shuffled(count, seed)
    return [[next(order) for _ in range(BATCH)] for _ in range(number)]


def _until(seconds: float, step: Callable[[], int]) -> dict[str, float]:
    """Repeats a step that says how many samples it took."""
    done, start = 0, time.perf_counter()
    while True:
        done += step()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return {"rate": done / elapsed, "n": done}


def opening(system: System, seconds: float) -> dict[str, float]:
    """Opening and the first sample, again and again, the files in the page cache; milliseconds."""
    times = []
    start = time.perf_counter()
    while not times or (time.perf_counter() - start < seconds and len(times) < 50):
        system.shut()
        begin = time.perf_counter()
        system.open_anew()
        if system.random_access:
            system.get(0)
        times.append(time.perf_counter() - begin)
    return {"milliseconds": float(np.median(times)) * 1e3, "n": len(times)}


def get(system: System, count: int, form: str, seconds: float, seed: int) -> dict[str, float]:
    _forget_objects(system)
    call = system.get if form == "natural" else system.data
    order = shuffled(count, seed)
    call(next(order))

    def step() -> int:
        for _ in range(STRIDE):
            call(next(order))
        return STRIDE

    return _until(seconds, step)


def batch(system: System, count: int, form: str, seconds: float, seed: int) -> dict[str, float]:
    """Batches of random samples. PyG's are asked for as a stream, so that a system may make the next while one is looked at."""
    _forget_objects(system)
    many = index_batches(count, seed, 64)
    if form == "natural":
        batches = iter(many)

        def step() -> int:
            nonlocal batches
            indices = next(batches, None)
            if indices is None:
                batches = iter(many)
                indices = next(batches)
            system.batch(indices)
            return len(indices)
    else:
        made = system.pyg_batches(many)

        def step() -> int:
            nonlocal made
            one = next(made, None)
            if one is None:
                made = system.pyg_batches(many)
                one = next(made)
            return one.num_graphs

    return _until(seconds, step)


def epoch(system: System, count: int, workers: int, seconds: float, seed: int, frugal: bool = False) -> dict[str, float]:
    """Shuffled epochs of PyG batches: whole ones where one fits into the time, begun anew until it is over. Where none fits, the rate
    of what came after the first batch, so that the start of a long epoch is not counted against the rest of it that was cut off."""
    _forget_objects(system)
    torch.manual_seed(seed)
    firsts, whole, started = [], 0, time.perf_counter()
    while True:
        begin = time.perf_counter()
        done = first_done = 0
        for one in system.frugal_loader(count) if frugal else system.loader(workers, count):
            now = time.perf_counter()
            if not done:
                firsts.append(now - begin)
                first_done = one.num_graphs
            done += one.num_graphs
            if not whole and now - begin - firsts[-1] > seconds:
                break
        else:
            whole += done
            elapsed = time.perf_counter() - started
            if elapsed < seconds:
                _forget_objects(system)
                continue
            result = {"rate": whole / elapsed, "n": whole, "whole": True}
            break
        result = {"rate": (done - first_done) / (now - begin - firsts[-1]), "n": done, "whole": False}
        break
    del one
    if not system.is_open:
        system.open_anew()
    return result | {"first_milliseconds": float(np.median(firsts)) * 1e3}


def cold(system: System, count: int, seconds: float, seed: int) -> dict[str, float]:
    """Random samples, each at most once, all bytes touched, after the system's own files have left the page cache."""
    system.shut()
    memory.forget(system.folder)
    system.open_anew()
    order = itertools.islice(shuffled(count, seed), count)
    asked, done, before = 0, 0, memory.read_from_disk()
    start = time.perf_counter()
    for index in order:
        # A view has brought in no page yet: a copy has.
        copies = [value.copy() for value in system.arrays(system.get(index)).values()]
        asked += sum(copy.nbytes for copy in copies)
        done += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            break
    return {"rate": done / elapsed, "n": done, "read_per_asked": (memory.read_from_disk() - before) / asked}


def limited(system: System, count: int, seconds: float, seed: int) -> dict[str, float]:
    """An epoch that begins with nothing of the system's files in the page cache."""
    system.shut()
    memory.forget(system.folder)
    system.open_anew()
    return epoch(system, count, 0, seconds, seed, frugal=True)


def touch(system: System, count: int, seconds: float) -> dict[str, float]:
    """Reads samples all over the set, for what it leaves in memory."""
    before = memory.proportional()
    system.open_anew()
    start, done = time.perf_counter(), 0
    if system.random_access:
        for index in itertools.islice(shuffled(count, 3), count):
            for value in system.arrays(system.get(index)).values():
                value.sum()
            done += 1
            if time.perf_counter() - start >= seconds:
                break
    else:
        for sample in system.in_order():
            done += 1
            if time.perf_counter() - start >= seconds:
                break
    return {"n": done, "before": before}


def write(kind: type[System], fields: tuple, source: Source, folder: Path) -> dict[str, float]:
    """Writes all of a source into an empty folder, until it is on the disk; the source's own time is taken off."""
    drained = min(len(source), DRAINED)
    start = time.perf_counter()
    for _ in itertools.islice(_counted(source, [0]), drained):
        pass
    source_seconds = (time.perf_counter() - start) * len(source) / drained
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    system = kind(fields, folder)
    system.prepare(source[0])
    peak = memory.Peak()
    start = time.perf_counter()
    asked = [0]
    system.write(_counted(source, asked), len(source))
    memory.sync(folder)
    seconds = time.perf_counter() - start
    return {
        "n": len(source),
        "bytes": asked[0],
        "seconds": seconds,
        "source_seconds": source_seconds,
        "rate": asked[0] / max(seconds - source_seconds, 1e-9),
        "peak": peak.above_start(),
    }


def _counted(source: Source, asked: list[int]) -> Iterator[Sample]:
    for sample in source:
        asked[0] += nbytes(sample)
        yield sample


def _forget_objects(system: System) -> None:
    """A round begins as a first epoch does, for the systems that keep what they have made."""
    if hasattr(system, "forget"):
        system.forget()
