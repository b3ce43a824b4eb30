"""Control groups with a memory limit. A process joins when it has imported what it needs, so that the limit is for data alone:
memory that it had before stays charged to where it came from."""

from __future__ import annotations

import os
import time
from pathlib import Path

_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")


class NoLimit(OSError):
    """No control group can be made here: what needs one is skipped."""


class Group:
    """As in benches/support/limit.rs: version 2 where it has the memory controller, version 1 elsewhere."""

    def __init__(self, name: str, limit: int) -> None:
        if _UNIFIED.exists():
            root, self._limit, self._peak = Path("/sys/fs/cgroup"), "memory.max", "memory.peak"
        else:
            root, self._limit, self._peak = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"
        self.path = root / f"fencepost-peers-{os.getpid()}-{name}"
        try:
            self.path.mkdir()
            (self.path / self._limit).write_text(str(limit))
        except OSError as error:
            self.remove()
            raise NoLimit(f"no control group can be made here: {error}") from error

    @property
    def procs(self) -> str:
        return str(self.path / "cgroup.procs")

    def peak(self) -> int:
        return int((self.path / self._peak).read_text())

    def release(self, pid: int) -> None:
        """A process that leaves the group; one that has ended has left."""
        try:
            (self.path.parent / "cgroup.procs").write_text(str(pid))
        except OSError:
            pass

    def remove(self) -> None:
        for _ in range(20):
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)  # a process is still leaving it
            else:
                return


def join(procs: str) -> None:
    Path(procs).write_text(str(os.getpid()))
