"""Samples to a profile and the attributes of a file, by the rules of PyG's `collate`.

PyG decides by the first sample, and lets the others surprise it. Here the profile is made from all samples that are handed
in: one, when a stream is written, or every one of a list. What samples disagree in is either settled as PyG settles it (a
common dtype, a list of objects) or an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import BaseData
from torch_geometric.data.storage import N_KEYS, BaseStorage, EdgeStorage, NodeStorage
from torch_geometric.edge_index import EdgeIndex
from torch_geometric.index import Index

from . import values as plain
from .errors import MismatchError, PickleError, PygError
from .profile import (
    FORMAT_DTYPES,
    INTEGERS,
    SUMMABLE,
    TORCH_DTYPES,
    BytesNode,
    DictNode,
    Increment,
    ListNode,
    Node,
    NumberNode,
    PickleNode,
    Profile,
    SparseNode,
    Store,
    TensorNode,
    TextNode,
    ValueNode,
)

SPARSE_LAYOUTS = {torch.sparse_coo: "coo", torch.sparse_csr: "csr", torch.sparse_csc: "csc"}
#: PyG's own rules, for which increments are known without asking.
DEFAULT_INCREMENTS = (Data.__inc__, HeteroData.__inc__)


@dataclass
class Field:
    """An attribute of the file, as the native `Attribute` takes it."""

    name: str
    dtype: str
    shape: list[int | str]
    cat_dim: int | None = None
    increment: Any = None
    hidden: bool = False


class Names:
    """Unique names for attributes and axes. The file's batches add names of their own, which must stay free."""

    def __init__(self) -> None:
        self.attributes = {"batch", "ptr"}
        self.axes: set[str] = set()

    def attribute(self, wanted: str) -> str:
        name, number = wanted or "value", 1
        while name in self.attributes or not 0 < len(name.encode()) <= 1024:
            number += 1
            name = f"{wanted[:200]}.{number}"
        # `{name}_offsets` is how a batch calls the places of strings.
        self.attributes |= {name, f"{name}_offsets"}
        return name

    def axis(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.axes:
            number += 1
            name = f"{wanted}.{number}"
        self.axes.add(name)
        # What a batch calls the vectors of an axis of nodes.
        self.attributes |= {f"{name}_batch", f"{name}_ptr"}
        return name


def num_nodes(store: BaseStorage) -> Any:
    """The number of nodes as PyG infers it, without its warning: that belongs to the user's own questions."""
    mapping = store._mapping
    if "num_nodes" in mapping:
        return mapping["num_nodes"]
    if not isinstance(store, NodeStorage):
        return None
    # PyG's own first rule, which nearly always tells; silencing warnings for the others takes longer than writing the sample.
    for key, value in mapping.items():
        if key in N_KEYS and isinstance(value, Tensor):
            return int(value.size(store._parent().__cat_dim__(key, value, store)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return store.num_nodes


def is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout in SPARSE_LAYOUTS


def stores_of(data: BaseData) -> list[BaseStorage]:
    return list(data.stores)


def infer(samples: Sequence[BaseData], allow_pickle: bool = False) -> tuple[Profile, list[Field], list[str]]:
    """The profile of these samples, and the attributes and axes of their file."""
    first = samples[0]
    if not isinstance(first, BaseData):
        raise PygError(
            f"sample 0: expected a torch_geometric Data or HeteroData, found {type(first).__name__}; "
            "plain dicts of arrays are written by fencepost.Writer"
        )
    for number, sample in enumerate(samples):
        check_stores(number, stores_of(first), sample, type(first))
    return _Inference(samples, allow_pickle).run()


def check_stores(number: int, expected: Sequence[Any], sample: Any, kind: type) -> None:
    """That a sample has the class and the node and edge types of the first."""
    if type(sample) is not kind:
        raise MismatchError(number, "class", kind.__name__, type(sample).__name__, "write one class a file")
    keys, found = [store._key for store in expected], [store._key for store in stores_of(sample)]
    if keys != found:
        missing = [key for key in keys if key not in found]
        extra = [key for key in found if key not in keys]
        if missing or extra:
            raise MismatchError(
                number,
                "node and edge types",
                f"those of sample 0 ({', '.join(map(str, keys[1:]))})",
                f"{'missing ' + str(missing) if missing else ''}{' and ' if missing and extra else ''}"
                f"{'more: ' + str(extra) if extra else ''}",
                "give every sample every type, with empty tensors where it has none "
                "(InMemoryDataset mixes up the samples here, without a word)",
            )


def check_keys(number: int, label: str, expected: Sequence[str], found: Sequence[str]) -> None:
    missing = [key for key in expected if key not in found]
    extra = [key for key in found if key not in expected]
    if missing or extra:
        raise MismatchError(
            number,
            f"keys of {label}" if label else "keys",
            f"those of sample 0 ({', '.join(expected)})",
            " and ".join(
                part for part in (missing and f"missing {missing}", extra and f"besides {extra}") if part
            ),
            "give every sample the same keys (a missing key is a KeyError in PyG, one that comes later is dropped there)",
        )


class _Inference:
    def __init__(self, samples: Sequence[BaseData], allow_pickle: bool) -> None:
        self.samples = samples
        self.allow_pickle = allow_pickle
        self.names = Names()
        self.fields: list[Field] = []
        self.axes: list[str] = []
        self.not_native: str | None = None
        self.user_increments = type(samples[0]).__inc__ not in DEFAULT_INCREMENTS

    def run(self) -> tuple[Profile, list[Field], list[str]]:
        first = self.samples[0]
        columns = list(zip(*(stores_of(sample) for sample in self.by_first()), strict=True))
        self.axis_of: dict[Any, str] = {}
        stores: list[Store] = []
        for column in columns:
            stores.append(self.store(column))
        # Edges count the nodes of both ends, so every axis has to be known first.
        for store, column in zip(stores, columns, strict=True):
            for key in store.order:
                # A `ptr` of the user's is lost in PyG: batches and collated sets have one of their own.
                if key == "num_nodes" or key == "ptr":
                    continue
                values = [item._mapping[key] for item in column]
                base = f"{store.label}/{key}" if store.label else str(key)
                store.attributes[key] = self.node(str(key), values, column, base)
        kind = type(first)
        profile = Profile(kind.__module__, kind.__qualname__, stores, self.not_native)
        return profile, self.fields, self.axes

    def by_first(self) -> list[BaseData]:
        """The samples; PyG matches stores by key, so their order within a sample does not matter."""
        order = [store._key for store in stores_of(self.samples[0])]
        for sample in self.samples:
            if [store._key for store in stores_of(sample)] != order:
                return [_Reordered(sample, order) for sample in self.samples]
        return list(self.samples)

    def refuse_native(self, reason: str) -> None:
        self.not_native = self.not_native or reason

    def store(self, column: Sequence[BaseStorage]) -> Store:
        first = column[0]
        order = [str(key) for key in first._mapping]
        key = first._key
        if isinstance(first, NodeStorage) and isinstance(first, EdgeStorage):
            kind = "single"
        elif isinstance(first, NodeStorage):
            kind = "node"
        else:
            kind = "edge" if isinstance(first, EdgeStorage) else "global"
        label = "" if key is None else key if isinstance(key, str) else "__".join(key)
        for number, store in enumerate(column):
            check_keys(number, label, order, list(store._mapping))
        out = Store(kind, key, order, {})
        out.batched = isinstance(first, NodeStorage) and first.can_infer_num_nodes
        count = num_nodes(first)
        if count is not None and not isinstance(count, (int, np.integer)):
            raise PygError(
                f"sample 0, num_nodes: expected an int, found {type(count).__name__}; write int(data.num_nodes)"
            )
        if out.explicit or out.batched or count is not None:
            # Only this name gets `batch` and `ptr` from the file's own batches.
            wanted = "nodes" if kind == "single" and out.batched else f"{label}/nodes" if label else "num_nodes"
            out.axis = self.names.axis(wanted)
            self.axes.append(out.axis)
            self.axis_of[key] = out.axis
        return out

    # One place ------------------------------------------------------------------------------------------------------

    def node(self, key: str, values: list[Any], column: Sequence[BaseStorage], base: str) -> Node:
        first = values[0]
        if isinstance(first, Tensor) and not is_sparse(first) and not getattr(first, "is_nested", False):
            return self.tensor(key, values, column, base)
        if is_sparse(first):
            return self.sparse(key, values, base)
        if isinstance(first, (int, float)):
            return self.number(key, values, column, base)
        if isinstance(first, Mapping):
            return self.mapping(key, values, column, base)
        if _is_tensor_list(first):
            return self.sequence(key, values, column, base)
        if all(type(value) is str for value in values):
            return TextNode(self.field(base, "utf8", []))
        if all(type(value) is bytes for value in values):
            return BytesNode(self.field(base, "bytes", []))
        return self.object(values, base)

    def field(self, base: str, dtype: str, shape: list[int | str], cat_dim: int | None = None, **more: Any) -> str:
        name = self.names.attribute(base)
        self.fields.append(Field(name, dtype, shape, cat_dim, **more))
        return name

    def object(self, values: list[Any], base: str) -> Node:
        for number, value in enumerate(values):
            try:
                plain.encode(value)
            except plain.Unsupported as error:
                if self.allow_pickle:
                    return PickleNode(self.field(base, "bytes", []))
                raise PickleError(
                    f"sample {number}, {base}: expected tensors, numbers, strings, arrays and lists, tuples, sets, dicts of them, "
                    f"found {error}; only pickle can store that: pass allow_pickle=True (or set it in the class), "
                    "which readers have to allow as well, or turn it into one of these"
                ) from None
        return ValueNode(self.field(base, "bytes", []))

    def tensor(self, key: str, values: list[Any], column: Sequence[BaseStorage], base: str) -> Node:
        first = values[0]
        for number, value in enumerate(values):
            if not isinstance(value, Tensor) or is_sparse(value) or value.dim() != first.dim():
                raise MismatchError(number, base, f"a tensor of {first.dim()} dimensions", describe(value))
        dtype = first.dtype
        for value in values:
            dtype = torch.promote_types(dtype, value.dtype) if value.dtype != dtype else dtype
        name_of_dtype = FORMAT_DTYPES.get(dtype)
        if name_of_dtype is None:
            raise PygError(f"sample 0, {base}: expected a dtype that files have, found {dtype}: convert it")
        cat_dim = self.samples[0].__cat_dim__(key, first, column[0])
        if cat_dim is not None and not isinstance(cat_dim, int):
            raise PygError(f"sample 0, {base}: expected a __cat_dim__ that is an int or None, found {cat_dim!r}")
        zero_dim = first.dim() == 0
        shape: list[int | str] = list(first.shape)
        if cat_dim is not None:
            if zero_dim:
                shape, cat_dim = [1], 0
            else:
                if not -len(shape) <= cat_dim < len(shape):
                    raise PygError(
                        f"sample 0, {base}: expected a __cat_dim__ within its {len(shape)} dimensions, found {cat_dim}"
                    )
                cat_dim %= len(shape)
        wrap = None
        for kind in (EdgeIndex, Index):
            if all(isinstance(value, kind) for value in values):
                wrap = kind.__name__
        name = self.names.attribute(base)
        if cat_dim is not None and not zero_dim:
            axis = self.names.axis("edges" if base == "edge_index" else name)
            self.axes.append(axis)
            for number, value in enumerate(values):
                for dim, extent in enumerate(value.shape):
                    if dim != cat_dim and extent != shape[dim]:
                        raise MismatchError(
                            number, base, f"an extent of {shape[dim]} in dimension {dim}", f"shape {list(value.shape)}",
                            "samples may differ in the dimension along which they are concatenated only (__cat_dim__)",
                        )
            shape[cat_dim] = axis
        node = TensorNode(
            key, name, name_of_dtype, len(shape), cat_dim, zero_dim, wrap=wrap,
            promoted=any(value.dtype != dtype for value in values),
        )
        return self.finish_tensor(node, values, column, base, shape)

    def finish_tensor(
        self, node: TensorNode, values: list[Any], column: Sequence[BaseStorage], base: str, shape: list[int | str]
    ) -> TensorNode:
        node.increment = self.increment(node, values, column, base, shape)
        increment: Any = None
        if node.increment is not None:
            if node.increment.hidden:
                increment = {"attribute": node.increment.hidden}
            else:
                axes = node.increment.axes
                increment = axes[0] if len(axes) == 1 else axes
        self.fields.append(Field(node.name, node.dtype, shape, node.cat_dim, increment))
        if node.wrap:
            node.facts = self.field(f"{node.name}.facts", "i64", [4])
        return node

    def number(self, key: str, values: list[Any], column: Sequence[BaseStorage], base: str) -> Node:
        try:
            dtype = torch.tensor(values).dtype
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            for number, value in enumerate(values):
                if not _is_number(value):
                    raise MismatchError(number, base, "a number", describe(value)) from None
            raise PygError(f"sample 0, {base}: expected numbers that a tensor holds: {error}") from error
        kinds = {type(value) for value in values}
        python = "mixed"
        if len(kinds) == 1:
            python = {int: "int", float: "float", bool: "bool", np.float64: "float64"}.get(kinds.pop(), "mixed")
        cat_dim = self.samples[0].__cat_dim__(key, torch.tensor([0], dtype=dtype), column[0])
        stacked = cat_dim is None
        shape: list[int | str] = [] if stacked else [1]
        name = self.names.attribute(base)
        node = NumberNode(key, name, FORMAT_DTYPES[dtype], len(shape), None if stacked else 0, python=python)
        self.finish_tensor(node, values, column, base, shape)
        if python == "float" and dtype != torch.float64:
            node.exact = self.field(f"{name}.exact", "f64", [])
        return node

    def increment(
        self, node: TensorNode, values: list[Any], column: Sequence[BaseStorage], base: str, shape: list[int | str]
    ) -> Increment | None:
        key, store = node.key, column[0]
        if self.user_increments:
            return self.user_increment(node, values, column, base, shape)
        hetero = isinstance(self.samples[0], HeteroData)
        if "batch" in key:
            return self.hidden(node, "max", base, shape, [])
        if hetero:
            if not (isinstance(store, EdgeStorage) and "index" in key):
                return None
            ends = [self.axis_of.get(store._key[0]), self.axis_of.get(store._key[-1])]
            if None in ends:
                self.refuse_native(f"the nodes of {store._key} cannot be counted, by which {base} is incremented")
                return None
            if node.dims != 2 or shape[0] != 2:
                self.refuse_native(f"{base} has no two rows, which PyG increments by the nodes of both ends")
                return None
            if node.dtype not in INTEGERS:
                return self.hidden(node, "user", base, shape, [2, 1])
            return Increment("nodes", [str(end) for end in ends], shape=[2, 1], wide=node.dtype != "i64")
        if "index" not in key and key != "face":
            return None
        axis = self.axis_of.get(None)
        if axis is None:
            self.refuse_native(f"the number of nodes is not known, by which {base} is incremented")
            return None
        if node.dtype not in INTEGERS:
            return self.hidden(node, "user", base, shape, [])
        return Increment("nodes", [axis])

    def user_increment(
        self, node: TensorNode, values: list[Any], column: Sequence[BaseStorage], base: str, shape: list[int | str]
    ) -> Increment | None:
        found = [
            ask_increment(sample, node, value, store)
            for sample, value, store in zip(self.samples, values, column, strict=True)
        ]
        if any(item is None for item in found):
            self.refuse_native(f"__inc__ of {base} gives fractions or nothing")
            return None
        if node.dtype not in INTEGERS and not any(bool((item != 0).any()) for item in found if item is not None):
            return None
        first = found[0]
        assert first is not None
        return self.hidden(node, "user", base, shape, list(first.shape))

    def hidden(
        self, node: TensorNode, rule: str, base: str, shape: list[int | str], increment_shape: list[int]
    ) -> Increment | None:
        rows = int(np.prod(increment_shape, dtype=np.int64)) if increment_shape else 1
        if node.dtype not in SUMMABLE:
            self.refuse_native(f"{base} has dtype {node.dtype}, to which PyG adds integers all the same")
            return None
        by_row = rows > 1 and increment_shape == [rows] + [1] * (node.dims - 1) and shape and shape[0] == rows
        if (rows > 1 and not by_row) or len(increment_shape) > node.dims or rows == 0:
            self.refuse_native(f"__inc__ of {base} has shape {increment_shape}, which is not one number or one by row")
            return None
        name = self.field(f"{node.name}.increment", node.dtype, [rows] if rows > 1 else [], hidden=True)
        wide = bool(increment_shape) and node.dtype in INTEGERS and node.dtype != "i64"
        return Increment(rule, hidden=name, shape=increment_shape, wide=wide)

    def sparse(self, key: str, values: list[Any], base: str) -> Node:
        first = values[0]
        alike = all(
            is_sparse(value) and value.layout == first.layout and value.dim() == first.dim()
            and value.dtype == first.dtype and value.values().dim() == first.values().dim()
            if value.layout != torch.sparse_coo
            else value._values().dim() == first._values().dim() and value.dtype == first.dtype
            for value in values if is_sparse(value)
        ) and all(is_sparse(value) and value.layout == first.layout for value in values)
        # Compressed tensors with a dimension of batches are rare, and stored whole.
        if not alike or FORMAT_DTYPES.get(first.dtype) is None or (first.layout != torch.sparse_coo and first.dim() != 2):
            return self.object(values, base)
        parts: list[str] = []
        for suffix, part, cat_dim in sparse_parts(first):
            name = self.names.attribute(f"{base}.{suffix}")
            axis = self.names.axis(name)
            self.axes.append(axis)
            shape: list[int | str] = list(part.shape)
            shape[cat_dim] = axis
            if any(
                list(other.shape)[:cat_dim] + list(other.shape)[cat_dim + 1 :] != shape[:cat_dim] + shape[cat_dim + 1 :]
                for value in values for s, other, _ in sparse_parts(value) if s == suffix
            ):
                return self.object(values, base)
            self.fields.append(Field(name, FORMAT_DTYPES[part.dtype], shape, cat_dim))
            parts.append(name)
        about = self.field(f"{base}.size", "i64", [first.dim() + 1])
        return SparseNode(key, SPARSE_LAYOUTS[first.layout], parts, about)

    def mapping(self, key: str, values: list[Any], column: Sequence[BaseStorage], base: str) -> Node:
        keys = list(values[0])
        if not all(isinstance(item, (str, int)) and not isinstance(item, bool) for item in keys):
            return self.object(values, base)
        for number, value in enumerate(values):
            if not isinstance(value, Mapping):
                raise MismatchError(number, base, "a dict", describe(value))
            check_keys(number, base, keys, list(value))
        items = [
            self.node(str(item), [value[item] for value in values], column, f"{base}.{item}") for item in keys
        ]
        return DictNode(keys, items)

    def sequence(self, key: str, values: list[Any], column: Sequence[BaseStorage], base: str) -> Node:
        length = len(values[0])
        for number, value in enumerate(values):
            if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != length:
                raise MismatchError(
                    number, base, f"a list of {length} values", describe(value),
                    "give every sample's list the same length (PyG cuts the longer ones, without a word)",
                )
        items = [
            self.node(key, [value[place] for value in values], column, f"{base}.{place}") for place in range(length)
        ]
        return ListNode(items, all(isinstance(value, tuple) for value in values))


class _Reordered:
    """A sample with its stores in another order."""

    def __init__(self, sample: BaseData, order: list[Any]) -> None:
        by_key = {store._key: store for store in stores_of(sample)}
        self.stores = [by_key[key] for key in order]


def sparse_parts(value: Tensor) -> list[tuple[str, Tensor, int]]:
    """The dense tensors that a sparse one consists of: a name, the tensor, and the dimension that is ragged."""
    if value.layout == torch.sparse_coo:
        return [("indices", value._indices(), 1), ("value", value._values(), 0)]
    if value.layout == torch.sparse_csr:
        return [("rowptr", value.crow_indices(), 0), ("col", value.col_indices(), 0), ("value", value.values(), 0)]
    return [("colptr", value.ccol_indices(), 0), ("row", value.row_indices(), 0), ("value", value.values(), 0)]


def ask_increment(data: BaseData, node: TensorNode, value: Any, store: BaseStorage) -> Tensor | None:
    """What a class's own `__inc__` gives, as an integer tensor; None for fractions, which PyG drops or not as they come."""
    if not isinstance(value, Tensor):
        # PyG batches what its dataset gives, and that is a tensor.
        value = torch.tensor([value], dtype=TORCH_DTYPES[node.dtype])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = data.__inc__(node.key, value, store)
    if found is None:
        return None
    found = found.detach().cpu() if isinstance(found, Tensor) else torch.tensor(found)
    if found.is_floating_point() or found.is_complex():
        return None
    return found.to(torch.int64)


def _is_tensor_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0 and isinstance(value[0], Tensor)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) or (isinstance(value, Tensor) and value.dim() == 0)


def describe(value: Any) -> str:
    if isinstance(value, Tensor):
        kind = "" if value.layout == torch.strided else f"{value.layout} "
        return f"a {kind}tensor {value.dtype} of shape {list(value.shape)}"
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"
