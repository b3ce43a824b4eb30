"""Values of samples that are no plain arrays: what each is to the writer."""

from __future__ import annotations

from typing import Any

import numpy as np

# The format's names where they are not numpy's type strings without their first letter.
_NAMES = {
    "bool": "bool", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "float16": "f16", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
_NUMPY = {name: numpy_name for numpy_name, name in _NAMES.items()}
# Types that numpy has not: the integers whose bits stand for them.
_BITS = {"bfloat16": ("bf16", np.uint16), "float8_e4m3fn": ("f8e4m3", np.uint8), "float8_e5m2": ("f8e5m2", np.uint8)}
_BITS_OF = {name: (name, bits) for name, bits in _BITS.values()}


def convert(name: str, value: Any, wanted: str | None) -> tuple[str, Any, Any]:
    """(kind, value, dtype or shape): "array" with a contiguous little-endian array, "text", "blob", "texts" or "blobs"."""
    if hasattr(value, "detach"):
        return _tensor(name, value)
    if isinstance(value, str):
        return "text", str(value), None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "blob", bytes(value), None
    # Before Python's numbers: numpy.float64 is a float as well, and has a dtype of its own.
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(name, np.asarray(value), wanted)
    if isinstance(value, (bool, int, float, complex)):
        return _scalar(name, value, wanted)
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        return _sequence(name, value, wanted)
    raise TypeError(
        f"attribute {name!r}: expected an array, a tensor, a number, a string or a list of these, found {type(value).__name__}"
    )


def _tensor(name: str, value: Any) -> tuple[str, Any, Any]:
    if getattr(value, "layout", None) is not None and str(value.layout) != "torch.strided":
        raise TypeError(
            f"attribute {name!r}: expected a dense tensor, found one of layout {value.layout}: write its indices and values as attributes"
        )
    dense = value.detach().cpu().resolve_conj().resolve_neg()
    kind = str(dense.dtype).removeprefix("torch.")
    if kind in _BITS:
        # Whoever has such a tensor has imported torch; integers of the same size keep the bits.
        import torch

        code, bits = _BITS[kind]
        integers = {np.uint16: torch.int16, np.uint8: torch.uint8}[bits]
        return "array", np.ascontiguousarray(dense.contiguous().view(integers).numpy()).view(bits), code
    try:
        array = dense.numpy()
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"attribute {name!r}: the format has no dtype for {value.dtype} ({error}): convert it") from None
    if array.dtype.name not in _NAMES:
        raise TypeError(f"attribute {name!r}: the format has no dtype for {value.dtype}: convert it")
    return "array", np.asarray(array, order="C"), _NAMES[array.dtype.name]


def _scalar(name: str, value: Any, wanted: str | None) -> tuple[str, Any, Any]:
    if wanted in (None, "utf8", "bytes"):  # a number where a string is wanted: the writer refuses it in its own words
        # Also of classes derived from these; a bool is an int as well.
        kinds = [(bool, "bool"), (int, "i64"), (float, "f64"), (complex, "c128")]
        wanted = next(dtype for kind, dtype in kinds if isinstance(value, kind))
    if wanted in _BITS_OF:
        raise TypeError(f"attribute {name!r}: expected an array of the bits of {wanted}, found the number {value!r}: give a tensor")
    dtype = np.dtype(_NUMPY[wanted])
    if isinstance(value, bool) and dtype.kind != "b":
        raise TypeError(f"attribute {name!r}: expected {wanted}, found the bool {value}: convert it")
    try:
        array = np.asarray(value, dtype=dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"attribute {name!r}: expected a value of {wanted}, found {value!r}: {error}") from None
    if dtype.kind in "iub" and array.item() != value:
        raise ValueError(f"attribute {name!r}: expected a value of {wanted}, found {value!r}: it would be changed")
    return "array", array, wanted


def _array(name: str, array: np.ndarray, wanted: str | None) -> tuple[str, Any, Any]:
    kind = array.dtype.kind
    if kind == "U":
        return "texts" if array.ndim else "text", array.ravel().tolist() if array.ndim else str(array[()]), array.shape
    if kind == "S":
        # numpy cannot tell trailing zero bytes from none, so such an array is no safe way to write bytes.
        raise TypeError(f"attribute {name!r}: expected bytes objects, found an array of {array.dtype}, which loses trailing zeros: give a list")
    if kind == "O" or kind == "T":
        if not array.size:
            return "blobs" if wanted == "bytes" else "texts", [], array.shape
        return _strings(name, array.ravel().tolist(), array.shape)
    if array.dtype.name in _BITS:
        code, bits = _BITS[array.dtype.name]
        return "array", np.asarray(array, order="C").view(bits), code
    if array.dtype.name not in _NAMES:
        raise TypeError(f"attribute {name!r}: the format has no dtype for arrays of {array.dtype}: convert it")
    # In C order and in the order of a little-endian host; the values are the same.
    array = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    code = _NAMES[array.dtype.name]
    if wanted in _BITS_OF and array.dtype == _BITS_OF[wanted][1]:
        code = wanted
    return "array", array, code


def _strings(name: str, flat: list[Any], shape: tuple[int, ...]) -> tuple[str, Any, Any]:
    if all(isinstance(item, str) for item in flat):
        return "texts", flat, shape
    if all(isinstance(item, bytes) for item in flat):
        return "blobs", flat, shape
    odd = next(item for item in flat if not isinstance(item, str))
    raise TypeError(
        f"attribute {name!r}: expected strings only, or bytes only, found {type(odd).__name__} among them: a missing string cannot be stored"
    )


def _first(value: Any) -> Any:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _sequence(name: str, value: Any, wanted: str | None) -> tuple[str, Any, Any]:
    first = _first(value)
    if isinstance(first, (str, bytes)) or (wanted in ("utf8", "bytes")):
        array = np.empty(_shape(name, value), dtype=object)
        for index in np.ndindex(array.shape):
            item = value
            for place in index:
                item = item[place]
            array[index] = item
        if not array.size:
            return "blobs" if wanted == "bytes" else "texts", [], array.shape
        return _strings(name, array.ravel().tolist(), array.shape)
    if hasattr(first, "detach"):
        raise TypeError(f"attribute {name!r}: expected an array, found a list of tensors: stack or concatenate them")
    if isinstance(value, (list, tuple)) and not np.size(np.asarray(value, dtype=object)) and wanted is None:
        raise TypeError(f"attribute {name!r}: an empty list has no dtype: give an array, or a schema")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"attribute {name!r}: expected numbers in rows of one length, found a list that makes no array: {error}") from None
    if wanted in _NUMPY and array.dtype.name != _NUMPY[wanted]:
        # Python's numbers have no dtype of their own, so they take the wanted one, unless that would change them.
        cast = array.astype(_NUMPY[wanted])
        if cast.dtype.kind in "iub" and not np.array_equal(cast, array):
            raise ValueError(f"attribute {name!r}: expected values of {wanted}, found some that would be changed: convert them")
        array = cast
    return _array(name, array, wanted)


def _shape(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    inner = {_shape(name, item) for item in value}
    if len(inner) > 1:
        raise TypeError(f"attribute {name!r}: expected rows of one length, found rows of shapes {sorted(inner)}")
    return (len(value), *(inner.pop() if inner else ()))
