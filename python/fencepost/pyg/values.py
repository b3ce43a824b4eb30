"""Python values to bytes and back without pickle: what `InMemoryDataset` keeps as a list with one object a sample.

The text is a JSON document; arrays and bytes follow it and are referred to by place. Reading never imports, calls or resolves
anything that the bytes name, so a file from a stranger is data. Whatever is not listed in `_encode` is refused: the
caller may store it with pickle, if the user allows that.

    u32 length of the JSON text | JSON: {"v": value, "b": [[offset, length], ...]} | the arrays' bytes, each at a multiple of 16
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .errors import PygError

_LENGTH = struct.Struct("<I")
_TAG = "!"
#: Plain arrays only: no objects, which would need pickle.
_NUMPY_KINDS = "biufcSUmM"
_TORCH_DTYPES = {
    str(getattr(torch, name)): getattr(torch, name)
    for name in (
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 "
        "complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
    ).split()
    if hasattr(torch, name)
}
_LAYOUTS = {str(layout): layout for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)}


class Unsupported(PygError):
    """A value of a type that this module does not store."""


def encode(value: Any) -> bytes:
    """The bytes of a value. Raises `Unsupported`, naming the type and the place inside the value."""
    buffers: list[bytes] = []
    tree = _encode(value, buffers, "")
    places, at = [], 0
    for buffer in buffers:
        at = -(-at // 16) * 16
        places.append([at, len(buffer)])
        at += len(buffer)
    document: dict[str, Any] = {"v": tree}
    if places:
        document["b"] = places
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    out = bytearray(_LENGTH.pack(len(text)) + text)
    start = len(out)
    for (offset, _), buffer in zip(places, buffers, strict=True):
        out += bytes(start + offset - len(out)) + buffer
    return bytes(out)


def decode(data: bytes) -> Any:
    """The value that `encode` was given. Mutable parts are new objects each time."""
    try:
        (length,) = _LENGTH.unpack_from(data)
        text = data[_LENGTH.size : _LENGTH.size + length]
        if len(text) != length:
            raise ValueError(f"its text has {len(text)} bytes of {length}")
        document = json.loads(text.decode("utf-8", "surrogatepass"))
        start = _LENGTH.size + length
        places = document.get("b", ())

        def buffer(index: int) -> bytes:
            offset, size = places[index]
            part = data[start + offset : start + offset + size]
            if offset < 0 or size < 0 or len(part) != size:
                raise ValueError(f"part {index} lies beyond its end")
            return part

        return _decode(document["v"], buffer)
    except PygError:
        raise
    except Exception as error:
        raise PygError(f"a stored Python value cannot be read: {error}; run `verify` on the file") from error


def _array(value: np.ndarray, buffers: list[bytes], where: str) -> list[Any]:
    if value.dtype.kind not in _NUMPY_KINDS or value.dtype.fields is not None:
        raise Unsupported(f"a numpy array of dtype {value.dtype}{where}")
    buffers.append(np.ascontiguousarray(value).tobytes())
    return [value.dtype.str, list(value.shape), len(buffers) - 1]


def _dense(value: torch.Tensor, buffers: list[bytes], where: str) -> list[Any]:
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or str(value.dtype) not in _TORCH_DTYPES:
        raise Unsupported(f"a {type(value).__name__} of {value.dtype}{where}")
    plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    buffers.append(plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
    return [str(value.dtype), list(value.shape), len(buffers) - 1]


def _sparse(value: torch.Tensor, buffers: list[bytes], where: str) -> list[Any]:
    value = value.detach().cpu()
    if value.layout == torch.sparse_coo:
        parts, flag = [value._indices(), value._values()], value.is_coalesced()
    elif value.layout == torch.sparse_csr:
        parts, flag = [value.crow_indices(), value.col_indices(), value.values()], False
    elif value.layout == torch.sparse_csc:
        parts, flag = [value.ccol_indices(), value.row_indices(), value.values()], False
    else:
        raise Unsupported(f"a tensor of layout {value.layout}{where}")
    return [str(value.layout), list(value.shape), flag, [_dense(part, buffers, where) for part in parts]]


def _encode(value: Any, buffers: list[bytes], where: str) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_encode(item, buffers, where) for item in value]
    if kind is dict:
        if all(type(key) is str for key in value) and _TAG not in value:
            return {key: _encode(item, buffers, f" at key {key!r}") for key, item in value.items()}
        pairs = [[_encode(k, buffers, where), _encode(v, buffers, f" at key {k!r}")] for k, v in value.items()]
        return {_TAG: "dict", "v": pairs}
    if kind is tuple:
        return {_TAG: "tuple", "v": [_encode(item, buffers, where) for item in value]}
    if kind in (set, frozenset):
        # Sets have no order of their own; sorting keeps equal input equal in bytes.
        items = sorted((_encode(item, buffers, where) for item in value), key=lambda item: json.dumps(item))
        return {_TAG: kind.__name__, "v": items}
    if kind in (bytes, bytearray):
        buffers.append(bytes(value))
        return {_TAG: kind.__name__, "v": len(buffers) - 1}
    if kind is complex:
        return {_TAG: "complex", "v": [value.real, value.imag]}
    if kind is np.ndarray:
        return {_TAG: "array", "v": _array(value, buffers, where)}
    if isinstance(value, np.generic):
        return {_TAG: "scalar", "v": _array(np.asarray(value), buffers, where)}
    if kind is torch.Size:
        return {_TAG: "size", "v": list(value)}
    if kind is torch.dtype and str(value) in _TORCH_DTYPES:
        return {_TAG: "dtype", "v": str(value)}
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            return {_TAG: "sparse", "v": _sparse(value, buffers, where)}
        return {_TAG: "tensor", "v": _dense(value, buffers, where)}
    raise Unsupported(f"a {kind.__module__}.{kind.__qualname__}{where}")


def _read_array(spec: list[Any], buffer: Callable[[int], bytes]) -> np.ndarray:
    dtype = np.dtype(spec[0])
    if dtype.kind not in _NUMPY_KINDS:
        raise ValueError(f"dtype {spec[0]!r} is no plain array")
    return np.frombuffer(buffer(spec[2]), dtype=dtype).reshape(spec[1]).copy()


def _read_tensor(spec: list[Any], buffer: Callable[[int], bytes]) -> torch.Tensor:
    dtype = _TORCH_DTYPES[spec[0]]
    data = buffer(spec[2])
    if not data:
        return torch.empty(spec[1], dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype).reshape(spec[1])


def _read_sparse(spec: list[Any], buffer: Callable[[int], bytes]) -> torch.Tensor:
    layout, shape, coalesced, parts = _LAYOUTS[spec[0]], spec[1], spec[2], [_read_tensor(p, buffer) for p in spec[3]]
    return sparse_of(layout, parts, shape, coalesced)


def sparse_of(layout: torch.layout, parts: list[torch.Tensor], shape: list[int], coalesced: bool) -> torch.Tensor:
    """A sparse tensor of its parts. Indices beyond its shape are an error: torch would follow them into other memory."""
    values = parts[-1]
    if layout == torch.sparse_coo:
        indices = parts[0]
        bounds = torch.tensor(shape[: indices.size(0)]).unsqueeze(1)
        if indices.numel() and not bool(((indices >= 0) & (indices < bounds)).all()):
            raise PygError(f"a sparse tensor of shape {shape} has indices beyond it; run `verify` on the file")
        # Said in so many words, or torch warns that nothing was said.
        return torch.sparse_coo_tensor(indices, values, shape, is_coalesced=coalesced or None, check_invariants=False)
    compressed, plain, _ = parts
    rows, columns = (shape[0], shape[1]) if layout == torch.sparse_csr else (shape[1], shape[0])
    steps = compressed.diff()
    whole = (
        compressed.numel() == rows + 1
        and int(compressed[0]) == 0
        and int(compressed[-1]) == plain.numel() == values.size(0)
        and bool((steps >= 0).all())
    )
    if not whole or (plain.numel() and not (0 <= int(plain.min()) and int(plain.max()) < columns)):
        raise PygError(f"a sparse tensor of shape {shape} has pointers or indices beyond it; run `verify` on the file")
    make = torch.sparse_csr_tensor if layout == torch.sparse_csr else torch.sparse_csc_tensor
    return make(compressed, plain, values, shape, check_invariants=False)


def _decode(tree: Any, buffer: Callable[[int], bytes]) -> Any:
    if isinstance(tree, list):
        return [_decode(item, buffer) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if _TAG not in tree:
        return {key: _decode(item, buffer) for key, item in tree.items()}
    tag, value = tree[_TAG], tree["v"]
    if tag == "dict":
        return {_decode(k, buffer): _decode(v, buffer) for k, v in value}
    if tag == "tuple":
        return tuple(_decode(item, buffer) for item in value)
    if tag == "set":
        return {_decode(item, buffer) for item in value}
    if tag == "frozenset":
        return frozenset(_decode(item, buffer) for item in value)
    if tag == "bytes":
        return buffer(value)
    if tag == "bytearray":
        return bytearray(buffer(value))
    if tag == "complex":
        return complex(*value)
    if tag == "array":
        return _read_array(value, buffer)
    if tag == "scalar":
        return _read_array(value, buffer)[()]
    if tag == "size":
        return torch.Size(value)
    if tag == "dtype":
        return _TORCH_DTYPES[value]
    if tag == "tensor":
        return _read_tensor(value, buffer)
    if tag == "sparse":
        return _read_sparse(value, buffer)
    raise PygError(f"a stored Python value is of kind {tag!r}, which this version does not know: update fencepost")
