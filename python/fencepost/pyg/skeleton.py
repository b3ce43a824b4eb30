"""Objects of PyG's classes with their stores filled in, without running `__init__` where that is PyG's own.

`Data.__init__` and a `setattr` for each key cost more than reading the sample does; what they leave behind is a handful of
entries in `__dict__`, which `Data.__copy__` sets in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import BaseData

from .profile import Store

Fill = Callable[[Sequence[dict[str, Any]]], Any]


def filler(make: Callable[[], BaseData], base: type[BaseData], stores: Sequence[Store]) -> Fill:
    """A function from one mapping a store to an object; `make` gives an empty one, `base` is the class of a sample."""
    if base.__init__ is Data.__init__ and len(stores) == 1:
        return _fill_single(make())
    if base.__init__ is HeteroData.__init__:
        return _fill_hetero(make(), stores)
    # A class with an `__init__` of its own may set what nobody else knows of.
    return _fill_any(make, stores)


def _empty(make: Callable[[], BaseData], stores: Sequence[Store]) -> BaseData:
    out = make()
    for store in stores:
        if store.kind == "node":
            out.get_node_store(store.key)
        elif store.kind == "edge":
            out.get_edge_store(*(store.key or ()))
    return out


def _fill_any(make: Callable[[], BaseData], stores: Sequence[Store]) -> Fill:
    def fill(mappings: Sequence[dict[str, Any]]) -> Any:
        out = _empty(make, stores)
        for store, mapping in zip(out.stores, mappings, strict=True):
            store._mapping.update(mapping)
        return out

    return fill


def _fill_single(template: BaseData) -> Fill:
    kind = type(template)
    store_kind = type(template._store)
    rest = {key: value for key, value in template.__dict__.items() if key != "_store"}
    new = object.__new__

    def fill(mappings: Sequence[dict[str, Any]]) -> Any:
        out = new(kind)
        store = new(store_kind)
        inside = store.__dict__
        inside["_mapping"] = mappings[0]
        inside["_parent"] = ref(out)
        inside = out.__dict__
        inside.update(rest)
        inside["_store"] = store
        return out

    return fill


def _fill_hetero(template: BaseData, stores: Sequence[Store]) -> Fill:
    kind = type(template)
    filled = _empty(lambda: template, stores)
    kinds = [(store.kind, store.key, type(made)) for store, made in zip(stores, filled.stores, strict=True)]
    own = ("_global_store", "_node_store_dict", "_edge_store_dict")
    rest = {key: value for key, value in template.__dict__.items() if key not in own}
    new = object.__new__

    def fill(mappings: Sequence[dict[str, Any]]) -> Any:
        out = new(kind)
        parent = ref(out)
        inside = out.__dict__
        inside.update(rest)
        inside["_global_store"] = None
        nodes: dict[Any, Any] = {}
        edges: dict[Any, Any] = {}
        inside["_node_store_dict"], inside["_edge_store_dict"] = nodes, edges
        for (where, key, store_kind), mapping in zip(kinds, mappings, strict=True):
            store = new(store_kind)
            facts = store.__dict__
            facts["_mapping"] = mapping
            facts["_parent"] = parent
            if where == "global":
                inside["_global_store"] = store
                continue
            facts["_key"] = key
            (nodes if where == "node" else edges)[key] = store
        return out

    return fill
