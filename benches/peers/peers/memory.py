"""What a process uses, from the kernel's figures."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
from pathlib import Path

import numpy as np


def _lines(path: str) -> dict[str, int]:
    """`Name: 12 kB` lines, in bytes."""
    out = {}
    for line in Path(path).read_text().splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[2] == "kB":
            out[parts[0].rstrip(":")] = int(parts[1]) * 1024
    return out


def proportional(pid: int | str = "self") -> dict[str, int]:
    """The proportional set size: memory of its own, and its share of files that others have mapped too."""
    lines = _lines(f"/proc/{pid}/smaps_rollup")
    return {"anonymous": lines.get("Pss_Anon", 0), "file": lines.get("Pss_File", 0)}


class Peak:
    """The highest resident set from here on, above what it is now; that of finished child processes counts."""

    def __init__(self) -> None:
        # 5 sets the high-water mark back.
        Path("/proc/self/clear_refs").write_text("5")
        self.start = _lines("/proc/self/status")["VmRSS"]

    def above_start(self) -> int:
        own = _lines("/proc/self/status")["VmHWM"]
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        return max(own, children) - self.start


def read_from_disk() -> int:
    """Bytes that this process has had fetched from storage; mapped pages count."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("read_bytes:"):
            return int(line.split()[1])
    return 0


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def sync(folder: Path) -> None:
    """Every file on the disk: what a durable write takes."""
    for path in files(folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def warm(folder: Path) -> None:
    """Reads the folder's files into the page cache."""
    for path in files(folder):
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 22):
                pass


class StillCached(RuntimeError):
    """Files did not leave the page cache, because somebody has them mapped: what follows would not be cold."""


def forget(folder: Path) -> None:
    """Drops the folder's own files from the page cache, and no others. Raises StillCached."""
    kept = 0
    for path in files(folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        kept += _cached(descriptor, path.stat().st_size)
        os.close(descriptor)
    if kept > sizes(folder)["file_bytes"] / 50:
        raise StillCached(f"{kept / 1e6:.1f} MB of {folder.name} stay in the page cache: a process has them mapped")


def _cached(descriptor: int, size: int) -> int:
    """Bytes of a file that are in the page cache."""
    if not size:
        return 0
    with mmap.mmap(descriptor, size, prot=mmap.PROT_READ) as mapped:
        view = np.frombuffer(mapped, np.uint8)
        pages = np.empty(-(-size // mmap.PAGESIZE), np.uint8)
        address = ctypes.c_void_p(view.ctypes.data)
        told = ctypes.CDLL(None, use_errno=True).mincore(address, ctypes.c_size_t(size), ctypes.c_void_p(pages.ctypes.data))
        del view
    if told:
        raise OSError(ctypes.get_errno(), "mincore")
    return int((pages & 1).sum()) * mmap.PAGESIZE


def sizes(folder: Path) -> dict[str, int]:
    """Number of files, their bytes, and the bytes that they take on the disk."""
    stats = [path.stat() for path in files(folder)]
    return {"files": len(stats), "file_bytes": sum(stat.st_size for stat in stats), "on_disk": sum(stat.st_blocks for stat in stats) * 512}
