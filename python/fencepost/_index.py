"""What a key of a dataset means."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._errors import UnsupportedError


def resolve(key: Any, length: int) -> Any:
    """An int, or a contiguous int64 array of indices that may be negative. A mask becomes the indices where it is true."""
    if isinstance(key, (bool, np.bool_)):
        raise TypeError(f"expected an index, found the bool {key}: a mask has one entry per sample")
    # One-element tensors have __index__ too, and mean a list of one.
    if hasattr(key, "__index__") and getattr(key, "ndim", 0) == 0:
        return operator.index(key)
    if isinstance(key, range):
        return np.arange(key.start, key.stop, key.step, dtype=np.int64)
    if hasattr(key, "detach"):
        key = key.detach().cpu().numpy()
    if isinstance(key, (str, bytes, dict)) or not (hasattr(key, "__iter__") or hasattr(key, "__array__")):
        raise TypeError(
            f"expected an int, a slice, a sequence of ints, a mask or the name of an attribute, found {type(key).__name__}"
        )
    array = np.asarray(key if hasattr(key, "__array__") else list(key))
    if array.ndim != 1:
        raise TypeError(f"expected indices in one dimension, found an array of shape {array.shape}")
    if array.dtype == np.bool_:
        if len(array) != length:
            raise UnsupportedError(
                f"the mask has {len(array)} entries but the dataset has {length} samples: give one entry per sample"
            )
        return np.flatnonzero(array).astype(np.int64, copy=False)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected indices of an integer type, found {array.dtype}")
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise UnsupportedError(f"sample {array.max()} does not exist: the dataset has {length} samples")
    return np.ascontiguousarray(array, dtype=np.int64)
