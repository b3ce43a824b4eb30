"""The libraries that read other formats: imported when they are needed, by nobody else."""

from __future__ import annotations

import importlib
from typing import Any


def library(module: str, install: str, function: str) -> Any:
    """The module, or an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"fencepost.convert.{function} needs {install} ({error}): pip install {install}") from error
