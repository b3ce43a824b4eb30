"""The values of a sample in a file to the object that `InMemoryDataset` gives, or, if strict, to the one that was written."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data.data import BaseData
from torch_geometric.edge_index import EdgeIndex, SortOrder
from torch_geometric.index import Index

from . import values as plain
from .encode import SORT_ORDERS
from .profile import (
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
from .skeleton import filler

Take = Callable[[dict[str, Any]], Any]
_LAYOUTS = {"coo": torch.sparse_coo, "csr": torch.sparse_csr, "csc": torch.sparse_csc}
_ORDERS = tuple(None if order is None else SortOrder(order) for order in SORT_ORDERS)
_PYTHON: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool, "float64": np.float64}


def edge_index_of(value: Tensor, facts: list[int]) -> EdgeIndex:
    """An `EdgeIndex` with these facts, as PyG sets them when it takes a sample out of a collated set."""
    out = EdgeIndex(value)
    out._sparse_size = (None if facts[0] < 0 else facts[0], None if facts[1] < 0 else facts[1])
    out._sort_order = _ORDERS[facts[2]]
    out._is_undirected = bool(facts[3])
    return out


def index_of(value: Tensor, facts: list[int]) -> Index:
    out = Index(value)
    out._dim_size = None if facts[0] < 0 else facts[0]
    out._is_sorted = bool(facts[1])
    return out


def sparse_from(node: SparseNode, parts: list[Tensor], about: list[int]) -> Tensor:
    return plain.sparse_of(_LAYOUTS[node.layout], parts, about[:-1], bool(about[-1]))


def object_from(node: TextNode, data: Any) -> Any:
    """What a leaf that is no tensor holds. Whether pickle is allowed was settled when the file was opened."""
    if isinstance(node, PickleNode):
        return pickle.loads(bytes(data))
    if isinstance(node, ValueNode):
        return plain.decode(bytes(data))
    return data


def taker(node: Node, strict: bool) -> Take:
    """A function from a sample's values to what is at this place of the structure."""
    if isinstance(node, TensorNode):
        return _tensor_taker(node, strict)
    if isinstance(node, SparseNode):
        sparse = node
        return lambda fields: sparse_from(
            sparse, [fields[name] for name in sparse.parts], fields[sparse.about].tolist()
        )
    if isinstance(node, DictNode):
        parts = [(key, taker(item, strict)) for key, item in zip(node.keys, node.items, strict=True)]
        return lambda fields: {key: take(fields) for key, take in parts}
    if isinstance(node, ListNode):
        takes = [taker(item, strict) for item in node.items]
        if strict and node.tuple:
            return lambda fields: tuple(take(fields) for take in takes)
        return lambda fields: [take(fields) for take in takes]
    assert isinstance(node, TextNode)
    leaf = node
    if isinstance(leaf, (PickleNode, ValueNode)):
        return lambda fields: object_from(leaf, fields[leaf.name])
    return lambda fields: fields[leaf.name]


def _tensor_taker(node: TensorNode, strict: bool) -> Take:
    name, facts = node.name, node.facts
    if strict and isinstance(node, NumberNode) and node.python in _PYTHON:
        make, source = _PYTHON[node.python], node.exact or name
        return lambda fields: make(fields[source].item())
    if strict and node.zero_dim and node.dims == 1:
        return lambda fields: fields[name].reshape(())
    if node.wrap == "EdgeIndex":
        return lambda fields: edge_index_of(fields[name], fields[facts].tolist())  # type: ignore[index]
    if node.wrap == "Index":
        return lambda fields: index_of(fields[name], fields[facts].tolist())  # type: ignore[index]
    return lambda fields: fields[name]


class Decoder:
    """Makes samples. `fields` are the attributes to read, in the order in which `plain` needs them."""

    def __init__(self, profile: Profile, kind: type[BaseData], strict: bool) -> None:
        self.strict = strict
        self.fill = filler(kind, kind, profile.stores)
        nodes = [node for store in profile.stores for node in store.attributes.values()]
        self.fields = [name for node in nodes for name in node.fields()]
        if strict:
            self.fields += [name for node in nodes for name in node.strict_fields()]
        self.stores = [
            (
                [(key, taker(node, strict)) for key, node in store.attributes.items()],
                store.axis if store.explicit else None,
                [key for key in store.order if key in store.attributes or key == "num_nodes"],
            )
            for store in profile.stores
        ]
        #: The file's names are the keys, and each value is the attribute itself: nothing is left to do.
        self.plain = (
            len(profile.stores) == 1
            and not profile.stores[0].explicit
            and all(_is_plain(key, node, strict) for key, node in profile.stores[0].attributes.items())
        )
        #: Whether lengths of axes are needed, too.
        self.counts = any(store.explicit for store in profile.stores)

    def __call__(self, fields: dict[str, Any], axes: dict[str, int] | None) -> Any:
        if self.plain:
            return self.fill((fields,))
        return self.fill([self._mapping(fields, axes, *store) for store in self.stores])

    def _mapping(
        self, fields: dict[str, Any], axes: dict[str, int] | None, takes: list[tuple[str, Take]], axis: str | None, order: list[str]
    ) -> dict[str, Any]:
        mapping = {key: take(fields) for key, take in takes}
        if axis is not None:
            assert axes is not None
            # PyG puts it behind the others when it takes a sample out of a collated set.
            mapping["num_nodes"] = axes[axis]
            if self.strict:
                mapping = {key: mapping[key] for key in order}
        return mapping


def _is_plain(key: str, node: Node, strict: bool) -> bool:
    if type(node) is TextNode:
        return node.name == key
    if not isinstance(node, TensorNode) or node.wrap is not None or node.name != key:
        return False
    return not (strict and (isinstance(node, NumberNode) or node.zero_dim))
