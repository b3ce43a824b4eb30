"""The errors of this package."""

from __future__ import annotations

import errno
import os

import fencepost


class SourceError(fencepost.ConvertError):
    """A source that cannot become a file: `path`, `record`, `key`, `expected`, `found`. What had its name before is still there."""

    record: str
    key: str
    expected: str
    found: str

    def __init__(self, path: object, record: str, key: str, expected: str, found: str, advice: str = "") -> None:
        place = ": ".join(part for part in (str(path), record, key) if part)
        message = f"{place}: expected {expected}, found {found}" + (f"; {advice}" if advice else "")
        super().__init__(message, path=str(path), record=record, key=key, expected=expected, found=found)

    @classmethod
    def at(cls, path: object, record: str, error: Exception) -> SourceError:
        """What `error` says, and of which record it says so."""
        new = cls(path, record, "", "values that a file has", str(error))
        # An error that begins with the path, or with a count of samples of its own, says it better than we would twice.
        prefix = ": ".join(part for part in (str(path), record) if part and not str(error).startswith(part))
        new.args = (f"{prefix}: {error}" if prefix else str(error),)
        return new


class PickleError(SourceError):
    """A pickle, which runs code of whoever wrote it when it is read, without the user's word that it may."""

    def __init__(self, path: object, record: str, found: str, others: str = "") -> None:
        advice = "reading it runs whatever code it names: pass allow_pickle=True if you trust whoever wrote it"
        super().__init__(path, record, "", "data only", found, advice + (f", or {others}" if others else ""))


def existing(path: str | os.PathLike[str], what: str) -> str:
    """The path as text, if there is something; several libraries would make a new file, or say it in words of their own."""
    name = os.fspath(path)
    if not os.path.exists(name):
        raise fencepost.NotFoundError(f"{name}: expected {what}, found no such file", errno=errno.ENOENT, filename=name)
    return name
