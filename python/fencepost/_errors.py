"""The exceptions. Each also derives from the built-in class that a caller would look for."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """The base of every exception of this package. The message names the place, what was expected, what was found, and what to do."""

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message)
        for name, value in details.items():
            setattr(self, name, value)

    # KeyError would show the message in quotes, OSError would put numbers before it.
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class FormatError(Error, ValueError):
    """The bytes of a file break a rule of the format. `code` is the rule's short name in the specification, `path` the file."""

    code: str
    path: str


class IoError(Error, OSError):
    """The operating system refused something; `errno` and `filename` as in any OSError."""


class NotFoundError(IoError, FileNotFoundError):
    """No such file or folder."""


class PermissionDeniedError(IoError, PermissionError):
    """The file or folder must not be read or written."""


class ExistsError(IoError, FileExistsError):
    """The file to be written exists, and overwriting was not asked for."""


class PublishError(IoError):
    """The finished file could not be given its name; `kept` is where it is."""

    kept: str


class SchemaError(Error, ValueError):
    """A schema breaks a rule, before anything was written."""


class ShardsError(Error, ValueError):
    """Files that were opened together do not belong together, or some are missing. `path` is the file."""

    path: str


class SampleError(Error, ValueError):
    """A sample was refused by a writer, which is still usable: `sample`, `attribute`, `expected`, `found`."""

    sample: int
    attribute: str
    expected: str
    found: str


class WriterError(Error, RuntimeError):
    """The writer cannot go on: it failed earlier, or was finished or aborted."""


class OutOfRangeError(Error, IndexError):
    """No sample has this index."""


class UnknownNameError(Error, KeyError):
    """No attribute, axis or field has this name."""


class AbsentError(Error, KeyError):
    """This sample lacks an optional attribute."""


class UnreadableError(Error, ValueError):
    """This version cannot read the attribute; the others can be read."""


class DTypeError(Error, TypeError):
    """Values of another type than was asked for."""


class UnsupportedError(Error, ValueError):
    """The call cannot do this with these arguments."""


class ChangedError(Error, ValueError):
    """The file is another one than the pickled dataset was of."""


class BatchError(Error, ValueError):
    """One sample kept a batch from being made: `sample`; the cause is the exception's `__cause__`."""

    sample: int


class LoaderError(Error, RuntimeError):
    """A thread of a loader failed in a way that it must not."""


class LoaderStateError(Error, ValueError):
    """A saved state does not belong to this loader."""


class ConvertError(Error, ValueError):
    """A source file of an importer is malformed: `path`."""

    path: str


class HostError(Error, RuntimeError):
    """This host cannot serve files of the format."""
