"""Progress bars: tqdm's where it is installed, a line on stderr now and then where it is not."""

from __future__ import annotations

import sys
import time
from typing import Any


class _Lines:
    def __init__(self, total: int | None, text: str, unit: str) -> None:
        self.total, self.text, self.unit = total, text, unit
        self.done, self.shown = 0, time.monotonic()

    def update(self, more: int) -> None:
        self.done += more
        if time.monotonic() - self.shown >= 5.0:
            self.shown = time.monotonic()
            self._show()

    def _show(self) -> None:
        of = f" of {self.total}" if self.total else ""
        print(f"{self.text}: {self.done}{of} {self.unit}", file=sys.stderr)

    def close(self) -> None:
        if self.done:
            self._show()
            self.done = 0


def bar(total: int | None, text: str, unit: str) -> Any:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return _Lines(total, text, unit)
    return tqdm(total=total, desc=text, unit=f" {unit}", unit_scale=unit == "B")


def expect(progress: Any, total: int) -> None:
    """Tell a bar how much there is to come, unless it knows."""
    if progress.total is None:
        progress.total = total
