"""A native batch to the `Batch` that PyG would have made of the same samples.

The tensors are the native batch's own, without a copy. What PyG keeps beside them to take a batch apart again
(`_slice_dict`, `_inc_dict`) is made when somebody asks for it: training loops do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.data.collate import _collate as pyg_collate
from torch_geometric.data.data import BaseData
from torch_geometric.edge_index import CatMetadata as EdgeIndexMetadata
from torch_geometric.edge_index import EdgeIndex, SortOrder
from torch_geometric.index import CatMetadata as IndexMetadata
from torch_geometric.index import Index

from .decode import edge_index_of, index_of, object_from, sparse_from
from .profile import DictNode, ListNode, Node, PickleNode, Profile, SparseNode, TensorNode, TextNode, ValueNode
from .skeleton import filler


class LazyDict(dict):  # type: ignore[type-arg]
    """A dict that is filled when it is first looked at. Copies and pickles are plain dicts."""

    __slots__ = ("_fill",)

    def __init__(self, fill: Callable[[], dict[Any, Any]]) -> None:
        self._fill: Callable[[], dict[Any, Any]] | None = fill

    def _full(self) -> None:
        fill = self._fill
        if fill is not None:
            # A second thread that comes in between fills it with the same.
            dict.update(self, fill())
            self._fill = None

    def __getitem__(self, key: Any) -> Any:
        self._full()
        return dict.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._full()
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Any) -> None:
        self._full()
        dict.__delitem__(self, key)

    def __contains__(self, key: Any) -> bool:
        self._full()
        return dict.__contains__(self, key)

    def __iter__(self) -> Iterator[Any]:
        self._full()
        return dict.__iter__(self)

    def __reversed__(self) -> Iterator[Any]:
        self._full()
        return dict.__reversed__(self)

    def __len__(self) -> int:
        self._full()
        return dict.__len__(self)

    def __eq__(self, other: Any) -> bool:
        self._full()
        return dict.__eq__(self, other)

    def __ne__(self, other: Any) -> bool:
        self._full()
        return dict.__ne__(self, other)

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __repr__(self) -> str:
        self._full()
        return dict.__repr__(self)

    def keys(self) -> Any:
        self._full()
        return dict.keys(self)

    def values(self) -> Any:
        self._full()
        return dict.values(self)

    def items(self) -> Any:
        self._full()
        return dict.items(self)

    def get(self, key: Any, default: Any = None) -> Any:
        self._full()
        return dict.get(self, key, default)

    def pop(self, *args: Any) -> Any:
        self._full()
        return dict.pop(self, *args)

    def popitem(self) -> Any:
        self._full()
        return dict.popitem(self)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        self._full()
        return dict.setdefault(self, key, default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        self._full()
        dict.update(self, *args, **kwargs)

    def clear(self) -> None:
        self._fill = None
        dict.clear(self)

    def copy(self) -> dict[Any, Any]:
        self._full()
        return dict(dict.items(self))

    def __copy__(self) -> dict[Any, Any]:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> dict[Any, Any]:
        from copy import deepcopy

        return deepcopy(self.copy(), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (self.copy(),)


class _Parts:
    """One native batch, and what several attributes need of it."""

    __slots__ = ("_increments", "_slices", "count", "native", "tensors")

    def __init__(self, native: Any) -> None:
        self.native = native
        self.count: int = native.num_samples
        self.tensors: dict[str, Any] = native.torch()
        self._slices: dict[str, Tensor] | None = None
        self._increments: dict[str, Tensor] | None = None

    @property
    def slices(self) -> dict[str, Tensor]:
        if self._slices is None:
            self._slices = self.native.slices_torch()
        return self._slices

    @property
    def increments(self) -> dict[str, Tensor]:
        if self._increments is None:
            self._increments = self.native.increments_torch()
        return self._increments

    def steps(self) -> Tensor:
        return torch.arange(self.count + 1)


# Values, slices and increments of one place of the structure ---------------------------------------------------------


def _value(node: Node, parts: _Parts, template: Any) -> Any:
    if isinstance(node, TensorNode):
        value = parts.tensors[node.name]
        if node.increment is not None and node.increment.wide:
            value = value.to(torch.int64)
        if node.wrap == "EdgeIndex":
            return _edge_index(node, value, parts)
        if node.wrap == "Index":
            return _index(node, value, parts)
        return value
    if isinstance(node, DictNode):
        return {key: _value(item, parts, template) for key, item in zip(node.keys, node.items, strict=True)}
    if isinstance(node, ListNode):
        return [_value(item, parts, template) for item in node.items]
    if isinstance(node, SparseNode):
        return _sparse(node, parts, template)[0]
    assert isinstance(node, TextNode)
    if isinstance(node, (PickleNode, ValueNode)):
        return [object_from(node, item) for item in parts.tensors[node.name]]
    return parts.tensors[node.name]


def _slices(node: Node, parts: _Parts, template: Any) -> Any:
    if isinstance(node, TensorNode):
        return parts.slices[node.name]
    if isinstance(node, DictNode):
        return {key: _slices(item, parts, template) for key, item in zip(node.keys, node.items, strict=True)}
    if isinstance(node, ListNode):
        return [_slices(item, parts, template) for item in node.items]
    if isinstance(node, SparseNode):
        return _sparse(node, parts, template)[1]
    return parts.steps()


def _increments(node: Node, parts: _Parts) -> Any:
    if isinstance(node, TensorNode):
        if node.increment is None:
            return torch.zeros(parts.count, dtype=torch.int64)
        shape = [parts.count, *node.increment.shape]
        return parts.increments[node.name].to(torch.int64).reshape(shape)
    if isinstance(node, DictNode):
        return {key: _increments(item, parts) for key, item in zip(node.keys, node.items, strict=True)}
    if isinstance(node, ListNode):
        return [_increments(item, parts) for item in node.items]
    return None


def _sparse(node: SparseNode, parts: _Parts, template: Any) -> Any:
    about = parts.tensors[node.about].tolist()
    columns = []
    for place, name in enumerate(node.parts):
        slices = parts.slices[name]
        dim = 1 if node.layout == "coo" and place == 0 else 0
        columns.append(torch.split(parts.tensors[name], (slices[1:] - slices[:-1]).tolist(), dim))
    values = [sparse_from(node, list(column), facts) for column, facts in zip(zip(*columns, strict=True), about, strict=True)]
    # Putting sparse tensors together is PyG's own affair; it asks the first sample for nothing but `__cat_dim__`.
    return pyg_collate(node.key, values, [template], [template.stores[0]], True)


def _shifts(node: TensorNode, parts: _Parts) -> list[Any]:
    """What PyG adds to each sample: a number, or one for each row."""
    if node.increment is None:
        return [0] * parts.count
    increments: Tensor = _increments(node, parts)
    shifts: list[Any] = (increments.reshape([parts.count, -1]) if node.increment.shape else increments).tolist()
    return shifts


def _edge_index(node: TensorNode, value: Tensor, parts: _Parts) -> EdgeIndex:
    rows = parts.tensors[node.facts].tolist()  # type: ignore[index]
    slices = parts.slices[node.name]
    sizes: list[tuple[int | None, int | None]] = []
    orders, undirected = [], []
    for facts, shift in zip(rows, _shifts(node, parts), strict=True):
        one = edge_index_of(value[:, :0], facts)
        by = shift if isinstance(shift, list) else [shift, shift]
        by = by * 2 if len(by) == 1 else by
        row, column = one._sparse_size
        sizes.append((None if row is None else row + by[0], None if column is None else column + by[1]))
        orders.append(one._sort_order)
        undirected.append(one._is_undirected and by[0] == by[1])
    out = EdgeIndex(value)
    row_sizes, column_sizes = [size[0] for size in sizes], [size[1] for size in sizes]
    out._sparse_size = (_largest(row_sizes), _largest(column_sizes))
    out._is_undirected = all(undirected)
    out._cat_metadata = EdgeIndexMetadata((slices[1:] - slices[:-1]).tolist(), sizes, orders, undirected)
    if orders[0] is not None:
        if orders[0] == SortOrder.ROW and bool((value[0].diff() >= 0).all()):
            out._sort_order = SortOrder.ROW
        elif orders[0] == SortOrder.COL and bool((value[1].diff() >= 0).all()):
            out._sort_order = SortOrder.COL
    return out


def _index(node: TensorNode, value: Tensor, parts: _Parts) -> Index:
    rows = parts.tensors[node.facts].tolist()  # type: ignore[index]
    slices = parts.slices[node.name]
    sizes, is_sorted = [], []
    for facts, shift in zip(rows, _shifts(node, parts), strict=True):
        one = index_of(value[:0], facts)
        by = shift[0] if isinstance(shift, list) else shift
        sizes.append(None if one._dim_size is None else one._dim_size + by)
        is_sorted.append(one._is_sorted)
    out = Index(value)
    out._dim_size = _largest(sizes)
    out._cat_metadata = IndexMetadata((slices[1:] - slices[:-1]).tolist(), sizes, is_sorted)
    if is_sorted[0] and bool((value.diff() >= 0).all()):
        out._is_sorted = True
    return out


def _largest(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return max(known, default=0) if len(known) == len(sizes) else None


def _follow(slices: Any) -> tuple[Any, Any]:
    """`{key}_batch` and `{key}_ptr`: which sample a row belongs to, and where each begins."""
    if isinstance(slices, Tensor) and slices.dim() == 1:
        return torch.repeat_interleave(slices[1:] - slices[:-1]), slices.clone()
    if isinstance(slices, dict):
        both = {key: _follow(item) for key, item in slices.items()}
        return {key: item[0] for key, item in both.items()}, {key: item[1] for key, item in both.items()}
    if isinstance(slices, list) and slices and isinstance(slices[0], Tensor):
        pairs = [_follow(item) for item in slices]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return None, None


class Batcher:
    """Makes `Batch` objects out of the native batches of one file."""

    def __init__(
        self, profile: Profile, kind: type[BaseData], follow_batch: Iterable[str] = (), exclude_keys: Iterable[str] = ()
    ) -> None:
        self.follow, self.exclude = set(follow_batch), set(exclude_keys)
        self.stores = profile.stores
        self.hetero = [store.key is not None for store in profile.stores]
        self.fill = filler(lambda: Batch(_base_cls=kind), kind, profile.stores)
        self.template = kind()
        self.nodes = [
            {key: node for key, node in store.attributes.items() if key not in self.exclude} for store in profile.stores
        ]
        #: Axes whose batch vectors are made natively, and what the native batch calls them.
        axes = [str(store.axis) for store in profile.stores if store.batched or store.explicit]
        self.options: dict[str, Any] = {"node_axes": axes}
        self.names = {
            axis: (f"{axis}_batch", f"{axis}_ptr") if place else ("batch", "ptr") for place, axis in enumerate(axes)
        }
        #: Attributes that the native batches need to have.
        self.fields = [name for nodes in self.nodes for node in nodes.values() for name in node.fields()]
        #: The native batch's names are the keys: its dict of tensors is the mapping.
        self.plain = (
            len(profile.stores) == 1
            and not self.follow
            and not profile.stores[0].explicit
            and all(_is_plain(key, node) for key, node in self.nodes[0].items())
        )

    def __call__(self, native: Any) -> Any:
        parts = _Parts(native)
        if self.plain:
            out = self.fill((parts.tensors,))
            facts = out.__dict__["_store"].__dict__ if "_store" in out.__dict__ else out.stores[0].__dict__
        else:
            mappings, counts = [], []
            for store, nodes in zip(self.stores, self.nodes, strict=True):
                mapping, count = self._mapping(store, nodes, parts)
                mappings.append(mapping)
                counts.append(count)
            out = self.fill(mappings)
            for made, count in zip(out.stores, counts, strict=True):
                if count is not None:
                    made.__dict__["_num_nodes"] = count
            facts = out.stores[0].__dict__
        facts["_num_graphs"] = parts.count
        facts["_slice_dict"] = LazyDict(lambda: self._dict(lambda node: _slices(node, parts, self.template)))
        facts["_inc_dict"] = LazyDict(lambda: self._dict(lambda node: _increments(node, parts)))
        return out

    def _mapping(self, store: Any, nodes: dict[str, Node], parts: _Parts) -> tuple[dict[str, Any], list[int] | None]:
        mapping: dict[str, Any] = {}
        count = None
        for key, node in nodes.items():
            mapping[key] = _value(node, parts, self.template)
            if key in self.follow:
                batch, ptr = _follow(_slices(node, parts, self.template))
                for name, value in ((f"{key}_batch", batch), (f"{key}_ptr", ptr)):
                    if value is not None:
                        mapping[name] = value
        if store.explicit and "num_nodes" not in self.exclude:
            ptr = parts.tensors[self.names[store.axis][1]]
            count = (ptr[1:] - ptr[:-1]).tolist()
            mapping["num_nodes"] = sum(count)
        if store.batched:
            batch, ptr = self.names[store.axis]
            mapping["batch"], mapping["ptr"] = parts.tensors[batch], parts.tensors[ptr]
        return mapping, count

    def _dict(self, of: Callable[[Node], Any]) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for store, nodes in zip(self.stores, self.nodes, strict=True):
            if store.key is None:
                out.update({key: of(node) for key, node in nodes.items()})
            elif nodes:
                out[store.key] = {key: of(node) for key, node in nodes.items()}
            else:
                # PyG leaves the store out and then fails to take the batch apart.
                out[store.key] = {}
        return out


def _is_plain(key: str, node: Node) -> bool:
    return (type(node) is TextNode and node.name == key) or (
        isinstance(node, TensorNode)
        and node.wrap is None
        and node.name == key
        and (node.increment is None or not node.increment.wide)
    )
