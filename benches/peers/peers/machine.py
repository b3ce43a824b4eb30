"""Facts of the machine, and the versions of what is measured."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path


def facts(folder: Path) -> dict[str, object]:
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.*)", cpuinfo)
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "virtual": "hypervisor" in cpuinfo,
        "load": os.getloadavg()[0],
        **_disk(folder),
    }


def _disk(folder: Path) -> dict[str, object]:
    """The filesystem that the folder is on, and what the kernel says of the device below."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    out: dict[str, object] = {"filesystem": "unknown", "disk": "unknown"}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        if left.split()[2] == number:
            out["filesystem"], out["disk"] = right.split()[:2]
    queue = Path(f"/sys/dev/block/{number}/queue")
    if not queue.exists():
        queue = Path(f"/sys/dev/block/{number}/../queue")
    for key in ("rotational", "read_ahead_kb", "scheduler"):
        if (queue / key).exists():
            out[key] = (queue / key).read_text().strip()
    return out


def versions(*distributions: str | None) -> dict[str, str]:
    names = ("torch", "torch_geometric", "numpy", *[name for name in distributions if name])
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in dict.fromkeys(names)}


def commit() -> str | None:
    """The commit of the checkout that is measured, with a mark where files differ from it; None outside of one."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        result = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()
