"""A sample to the dict of values that the native writer takes, by the profile."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data.data import BaseData
from torch_geometric.data.storage import BaseStorage
from torch_geometric.edge_index import EdgeIndex
from torch_geometric.index import Index

from . import values as plain
from .errors import MismatchError, PickleError
from .infer import (
    SPARSE_LAYOUTS,
    ask_increment,
    check_keys,
    check_stores,
    describe,
    is_sparse,
    num_nodes,
    sparse_parts,
)
from .profile import (
    TORCH_DTYPES,
    BytesNode,
    DictNode,
    ListNode,
    Node,
    NumberNode,
    PickleNode,
    Profile,
    SparseNode,
    TensorNode,
    TextNode,
    ValueNode,
)

#: Orders of an `EdgeIndex`, as stored; the place in the tuple is the number in the file.
SORT_ORDERS = (None, "row", "col")
Put = Callable[[Any, BaseData, BaseStorage, dict[str, Any], int], None]


class Encoder:
    """Turns samples into what the writer takes. Raises `MismatchError` for one that the profile does not describe."""

    def __init__(self, profile: Profile, kind: type[BaseData]) -> None:
        self.kind = kind
        self.stores = profile.stores
        self.keys = [store.key for store in profile.stores]
        self.expected = [_Key(store.key) for store in profile.stores]
        self.orders = [frozenset(store.order) for store in profile.stores]
        self.puts = [
            [(key, self.put(node, f"{store.label}/{key}" if store.label else key)) for key, node in store.attributes.items()]
            for store in profile.stores
        ]

    def __call__(self, number: int, data: BaseData) -> tuple[dict[str, Any], dict[str, int]]:
        """The values and the lengths of the axes that no value tells."""
        if type(data) is not self.kind:
            check_stores(number, self.expected, data, self.kind)
        stores = data.stores
        if [store._key for store in stores] != self.keys:
            check_stores(number, self.expected, data, self.kind)
            by_key = {store._key: store for store in stores}
            stores = [by_key[key] for key in self.keys]
        out: dict[str, Any] = {}
        axes: dict[str, int] = {}
        for spec, order, puts, store in zip(self.stores, self.orders, self.puts, stores, strict=True):
            mapping = store._mapping
            if mapping.keys() != order:
                check_keys(number, spec.label, spec.order, list(mapping))
            if spec.axis is not None:
                count = num_nodes(store)
                if count is not None and not isinstance(count, (int, np.integer)):
                    raise MismatchError(number, "num_nodes", "an int", describe(count), "write int(data.num_nodes)")
                axes[spec.axis] = int(count or 0)
            for key, put in puts:
                put(mapping[key], data, store, out, number)
        return out, axes

    def put(self, node: Node, place: str) -> Put:
        if isinstance(node, NumberNode):
            return self.put_number(node, place)
        if isinstance(node, TensorNode):
            return self.put_tensor(node, place)
        if isinstance(node, SparseNode):
            return self.put_sparse(node, place)
        if isinstance(node, DictNode):
            return self.put_dict(node, place)
        if isinstance(node, ListNode):
            return self.put_list(node, place)
        assert isinstance(node, TextNode)
        return self.put_object(node, place)

    def put_tensor(self, node: TensorNode, place: str) -> Put:
        dtype, name = TORCH_DTYPES[node.dtype], node.name
        dims = 0 if node.zero_dim else node.dims
        reshape = node.zero_dim and node.dims == 1
        wrap = {"Index": Index, "EdgeIndex": EdgeIndex, None: None}[node.wrap]
        simple = node.increment is None or node.increment.hidden is None
        expected = f"{node.wrap or 'a tensor'} {dtype} of {dims} dimensions"

        def put(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            if not isinstance(value, Tensor) or value.dim() != dims or value.layout is not torch.strided:
                raise MismatchError(number, place, expected, describe(value))
            if value.dtype is not dtype:
                if not node.promoted:
                    raise MismatchError(number, place, expected, describe(value))
                value = value.to(dtype)
            if not simple:
                self.put_increment(node, place, value, data, store, out, number)
            if wrap is not None:
                if not isinstance(value, wrap):
                    raise MismatchError(number, place, expected, describe(value))
                out[node.facts] = _facts(value)  # type: ignore[index]
                value = value.as_tensor()
            elif type(value) is not Tensor:
                value = value.as_tensor() if isinstance(value, (Index, EdgeIndex)) else value.as_subclass(Tensor)
            if value.requires_grad:
                value = value.detach()
            if value.device.type != "cpu":
                value = value.cpu()
            if value.is_conj() or value.is_neg():
                value = value.resolve_conj().resolve_neg()
            if reshape:
                value = value.reshape(1)
            out[name] = value if value.is_contiguous() else value.contiguous()

        return put

    def put_increment(
        self, node: TensorNode, place: str, value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int
    ) -> None:
        assert node.increment is not None and node.increment.hidden is not None
        by: Tensor | None
        if node.increment.rule == "max":
            # PyG fails for an empty `batch`; a sample without entries adds nothing.
            if isinstance(value, Index):
                by = torch.tensor(value.get_dim_size())
            else:
                by = torch.tensor(int(value.max()) + 1 if isinstance(value, Tensor) and value.numel() else 0)
        else:
            by = ask_increment(data, node, value, store)
        if by is None or list(by.shape) != node.increment.shape:
            found = "fractions or nothing" if by is None else f"shape {list(by.shape)}"
            raise MismatchError(number, f"__inc__ of {place}", f"shape {node.increment.shape}", found)
        out[node.increment.hidden] = by.reshape([-1] if by.numel() > 1 else []).to(TORCH_DTYPES[node.dtype])

    def put_number(self, node: NumberNode, place: str) -> Put:
        dtype = TORCH_DTYPES[node.dtype]
        shape = [1] * node.dims
        kinds = {"int": (int,), "float": (float,), "bool": (bool,), "float64": (np.float64,)}.get(node.python)
        hidden = node.increment is not None and node.increment.hidden is not None

        def put(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            if kinds is not None and type(value) not in kinds:
                raise MismatchError(number, place, f"a Python {node.python}", describe(value))
            if isinstance(value, Tensor):
                value = value.item()
            try:
                tensor = torch.tensor(value, dtype=dtype).reshape(shape)
            except (TypeError, ValueError, RuntimeError, OverflowError) as error:
                raise MismatchError(number, place, f"a number that {dtype} holds", str(error), "use another type") from error
            out[node.name] = tensor
            if node.exact is not None:
                out[node.exact] = torch.tensor(value, dtype=torch.float64)
            if hidden:
                self.put_increment(node, place, tensor, data, store, out, number)

        return put

    def put_object(self, node: TextNode, place: str) -> Put:
        name = node.name

        def put_text(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            if type(value) is not str:
                raise MismatchError(number, place, "a str", describe(value))
            out[name] = value

        def put_bytes(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            if type(value) is not bytes:
                raise MismatchError(number, place, "bytes", describe(value))
            out[name] = value

        def put_value(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            try:
                out[name] = plain.encode(value)
            except plain.Unsupported as error:
                raise MismatchError(
                    number, place, "a value that is stored without pickle", str(error),
                    "pass allow_pickle=True together with a list of all samples, or turn it into numbers, strings, arrays",
                ) from error

        def put_pickle(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            try:
                out[name] = pickle.dumps(value, protocol=5)
            except Exception as error:
                raise PickleError(f"sample {number}, {place}: expected something that pickle stores: {error}") from error

        if isinstance(node, PickleNode):
            return put_pickle
        if isinstance(node, ValueNode):
            return put_value
        return put_bytes if isinstance(node, BytesNode) else put_text

    def put_sparse(self, node: SparseNode, place: str) -> Put:
        def put(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            if not is_sparse(value) or SPARSE_LAYOUTS[value.layout] != node.layout:
                raise MismatchError(number, place, f"a sparse {node.layout} tensor", describe(value))
            value = value.detach().cpu()
            for name, (_, part, _dim) in zip(node.parts, sparse_parts(value), strict=True):
                out[name] = part.contiguous()
            flag = value.layout == torch.sparse_coo and value.is_coalesced()
            out[node.about] = torch.tensor([*value.shape, int(flag)], dtype=torch.int64)

        return put

    def put_dict(self, node: DictNode, place: str) -> Put:
        parts = [(key, self.put(item, f"{place}[{key!r}]")) for key, item in zip(node.keys, node.items, strict=True)]
        expected = frozenset(node.keys)

        def put(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            if not isinstance(value, Mapping):
                raise MismatchError(number, place, "a dict", describe(value))
            if value.keys() != expected:
                check_keys(number, place, node.keys, list(value))
            for key, part in parts:
                part(value[key], data, store, out, number)

        return put

    def put_list(self, node: ListNode, place: str) -> Put:
        parts = [self.put(item, f"{place}[{at}]") for at, item in enumerate(node.items)]

        def put(value: Any, data: BaseData, store: BaseStorage, out: dict[str, Any], number: int) -> None:
            if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(parts):
                raise MismatchError(
                    number, place, f"a list of {len(parts)} values", describe(value),
                    "give every sample's list the same length (PyG cuts the longer ones, without a word)",
                )
            for item, part in zip(value, parts, strict=True):
                part(item, data, store, out, number)

        return put


class _Key:
    """What `check_stores` asks of a store."""

    def __init__(self, key: Any) -> None:
        self._key = key


def _facts(value: Any) -> Tensor:
    """What an `Index` (dim_size, sorted) or `EdgeIndex` (rows, columns, order, undirected) knows; -1 for None."""

    def number(item: Any) -> int:
        return -1 if item is None else int(item)

    if isinstance(value, Index):
        return torch.tensor([number(value._dim_size), int(value._is_sorted), 0, 0])
    order = value._sort_order.value if value._sort_order is not None else None
    rows, columns = value._sparse_size
    return torch.tensor([number(rows), number(columns), SORT_ORDERS.index(order), int(value._is_undirected)])
