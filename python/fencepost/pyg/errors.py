"""The errors of this package. All of them are `fencepost.Error`s, and `ValueError`s as users of PyG expect of bad data."""

from __future__ import annotations

import fencepost


class PygError(fencepost.Error, ValueError):
    """Data that cannot become a file, or a file that cannot become data."""


class MismatchError(PygError):
    """A sample that does not fit the profile, which was made from earlier ones."""

    def __init__(self, sample: int, place: str, expected: str, found: str, advice: str = "") -> None:
        self.sample, self.place, self.expected, self.found = sample, place, expected, found
        advice = advice or (
            "make all samples alike, or hand over a list instead of a generator: "
            "of a list all samples are looked at before the types are settled"
        )
        super().__init__(f"sample {sample}, {place}: expected {expected}, found {found}; {advice}")


class PickleError(PygError):
    """Something that only pickle can store or read, without the user's word that it may."""
