"""Memory: a `process()` that writes 4 GiB under a limit of 1 GiB, with PyG's base class and with ours; and what each spawned worker adds.

    python benches/python/memory.py [--folder FOLDER] [--gib 4] [--limit 1]

Needs the rights to make a control group (cgroup v2); without them it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GRAPH = 1 << 20  # bytes of x in one graph


def process(base: str, root: str, gib: float) -> None:
    """In a child: processes a set of so many GiB with this base class."""
    import torch
    from torch_geometric.data import Data, InMemoryDataset

    from fencepost.pyg import MappedDataset

    count = int(gib * (1 << 30) / GRAPH)

    def samples():
        rows = GRAPH // 4 // 64
        for index in range(count):
            source = torch.arange(rows)
            yield Data(x=torch.full((rows, 64), float(index)), edge_index=torch.stack([source, (source + 1) % rows]))

    class Meshes({"MappedDataset": MappedDataset, "InMemoryDataset": InMemoryDataset}[base]):
        def __init__(self):
            super().__init__(root)
            self.load(self.processed_paths[0])

        @property
        def processed_file_names(self):
            return ["data.pt"]

        def process(self):
            self.save(samples() if base == "MappedDataset" else list(samples()), self.processed_paths[0])

    dataset = Meshes()
    assert len(dataset) == count
    assert dataset[count - 1].x[0, 0] == count - 1


def read(path: str, indices: list[int], barrier, report) -> None:
    """In a spawned worker: reads samples, then tells what memory is its own."""
    import fencepost

    def private() -> int:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty"))) * 1024

    before = private()
    dataset = fencepost.open(path)
    total = 0.0
    for index in indices:
        total += float(dataset[index]["x"].sum())
    # While all have the file mapped: pages that only one process has mapped count as its own.
    barrier.wait()
    report.put((private() - before, total))
    barrier.wait()


def workers(path: str) -> None:
    import multiprocessing
    import random

    import fencepost

    context = multiprocessing.get_context("spawn")
    count = len(fencepost.open(path))
    indices = [random.Random(3).randrange(count) for _ in range(2 * count)]
    barrier, report = context.Barrier(4), context.Queue()
    processes = [context.Process(target=read, args=(path, indices, barrier, report)) for _ in range(4)]
    for one in processes:
        one.start()
    told = [report.get(timeout=600) for _ in processes]
    for one in processes:
        one.join()
        assert one.exitcode == 0
    assert len({total for _, total in told}) == 1
    size = os.path.getsize(path) / (1 << 30)
    print(f"4 spawned workers on one file of {size:.1f} GiB, all samples read: "
          f"private memory added by each {', '.join(f'{added / (1 << 20):.1f}' for added, _ in told)} MiB")


def limited(limit: float, *arguments: str) -> tuple[int, float, float]:
    """Runs this program in a control group: exit code, seconds, highest memory in GiB, page cache included."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        names = ("memory.max", "memory.peak")
    else:
        root, names = root / "memory", ("memory.limit_in_bytes", "memory.max_usage_in_bytes")
    group = root / f"fencepost-memory-{os.getpid()}"
    group.mkdir()
    try:
        (group / names[0]).write_text(str(int(limit * (1 << 30))))
        start = time.perf_counter()
        # The shell joins the group before it becomes the program, so that the program's first page counts.
        join = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]
        result = subprocess.run([*join, sys.executable, __file__, *arguments], check=False)
        return result.returncode, time.perf_counter() - start, int((group / names[1]).read_text()) / (1 << 30)
    finally:
        group.rmdir()


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--folder")
    arguments.add_argument("--gib", type=float, default=4)
    arguments.add_argument("--limit", type=float, default=1)
    arguments.add_argument("--process", nargs=2, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.process:
        process(*options.process, options.gib)
        return
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        for base in ("InMemoryDataset", "MappedDataset"):
            try:
                code, seconds, peak = limited(options.limit, "--gib", str(options.gib), "--process", base, str(folder / base))
            except OSError as error:
                print(f"skipped: no control group can be made here ({error})")
                return
            end = {0: "done", -9: "killed by the kernel"}.get(code, f"exit code {code}")
            print(f"{base}: process() of {options.gib:g} GiB under {options.limit:g} GiB: {end} after {seconds:.0f} s, highest {peak:.2f} GiB")
        workers(str(folder / "MappedDataset" / "processed" / "data.pt"))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
