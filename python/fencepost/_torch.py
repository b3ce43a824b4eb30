"""torch, or an error that says how to get it."""

from __future__ import annotations

try:
    import torch as torch
except ImportError as error:
    raise ImportError(
        "fencepost needs torch for this, and importing it failed "
        f"({error}): pip install torch, or pip install 'fencepost[torch]'; numpy arrays need no torch"
    ) from error
