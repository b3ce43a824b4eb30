"""Files of other formats that appear under their name when they are complete, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import fencepost

from ._write import Path


@contextmanager
def published(path: Path, overwrite: bool) -> Iterator[str]:
    """A path beside `path` to write to. It gets the name at the end; if an exception passes, nothing is left of it."""
    path = os.fspath(path)
    if not overwrite and os.path.lexists(path):
        raise fencepost.ExistsError(
            f"{path}: already exists: choose another name, or pass overwrite=True", errno=errno.EEXIST, filename=path
        )
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.tmp")
    open(temporary, "xb").close()
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if os.name == "posix":
        # So that the name lasts as well.
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
