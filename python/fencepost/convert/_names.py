"""What names say."""

from __future__ import annotations

import re


def along_last(name: str) -> bool:
    """Whether PyG concatenates attributes of this name along the last dimension."""
    return "index" in name or name == "face"


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts `s2` before `s10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
