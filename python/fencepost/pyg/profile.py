"""The `pyg` profile: how the attributes of a file make up PyG objects. Kept as JSON under `pyg` in the file's metadata.

A profile is a list of stores (one for `Data`; global, nodes and edges for `HeteroData`), each a list of keys with a *node*: a
description of the structure below that key whose leaves name attributes of the file. Names of attributes are only
names: nothing is ever parsed out of them.

This module knows nothing of samples; `infer` makes profiles, `encode`, `decode` and `batch` follow them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from .errors import PygError

VERSION = 1

#: torch's dtypes by the format's names.
TORCH_DTYPES: dict[str, torch.dtype] = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
}
FORMAT_DTYPES = {dtype: name for name, dtype in TORCH_DTYPES.items()}
INTEGERS = frozenset("u8 u16 u32 u64 i8 i16 i32 i64".split())
SUMMABLE = INTEGERS | frozenset("f16 bf16 f32 f64 c64 c128".split())


@dataclass
class Increment:
    """What batching adds to a tensor's values so that they index into the batch."""

    #: `nodes`: by the lengths along `axes`. `max`: by the largest value and one. `user`: by what the class's `__inc__` gave.
    rule: str
    axes: list[str] = field(default_factory=list)
    #: The hidden attribute with one sample's increment, for `max` and `user`.
    hidden: str | None = None
    #: The shape of one sample's increment as PyG has it: `[]`, or `[2, 1]` for one by row.
    shape: list[int] = field(default_factory=list)
    #: PyG adds an int64 tensor with dimensions, so narrower integers come out as int64.
    wide: bool = False


@dataclass
class Node:
    """One place in the structure of a sample."""

    KIND: ClassVar[str] = ""

    def children(self) -> list[Node]:
        return []

    def fields(self) -> list[str]:
        """Attributes that a sample and a batch as PyG gives them are made of."""
        return [name for child in self.children() for name in child.fields()]

    def strict_fields(self) -> list[str]:
        """Attributes that only `strict=True` needs."""
        return [name for child in self.children() for name in child.strict_fields()]


@dataclass
class TensorNode(Node):
    KIND: ClassVar[str] = "tensor"
    #: The key that PyG's rules look at; of an entry of a dict the inner one.
    key: str
    name: str
    dtype: str
    #: Number of dimensions in the file; a 0-dim tensor that is concatenated has one there.
    dims: int
    cat_dim: int | None
    zero_dim: bool = False
    increment: Increment | None = None
    #: `Index` or `EdgeIndex`, whose own facts are in the attribute `facts`.
    wrap: str | None = None
    facts: str | None = None
    #: Samples had several dtypes, of which this is the common one.
    promoted: bool = False

    def fields(self) -> list[str]:
        return [self.name] + ([self.facts] if self.facts else [])


@dataclass
class NumberNode(TensorNode):
    """A Python number. PyG gives a tensor with one element."""

    KIND: ClassVar[str] = "number"
    #: The type it had: `int`, `float`, `bool`, `float64` (numpy's), or `mixed`.
    python: str = "int"
    #: The attribute with all the digits of a float, which PyG rounds to the default dtype.
    exact: str | None = None

    def strict_fields(self) -> list[str]:
        return [self.exact] if self.exact else []


@dataclass
class TextNode(Node):
    KIND: ClassVar[str] = "str"
    name: str

    def fields(self) -> list[str]:
        return [self.name]


@dataclass
class BytesNode(TextNode):
    KIND: ClassVar[str] = "bytes"


@dataclass
class ValueNode(TextNode):
    """Any value that `values` can store."""

    KIND: ClassVar[str] = "value"


@dataclass
class PickleNode(TextNode):
    KIND: ClassVar[str] = "pickle"


@dataclass
class SparseNode(Node):
    """A sparse tensor: `rowptr`, `col`, `value` of CSR (CSC: the other way round); `indices`, `value` of COO."""

    KIND: ClassVar[str] = "sparse"
    key: str
    layout: str
    #: Attributes: [indices, values] or [compressed, plain, values], then the one with the shape and the flags.
    parts: list[str]
    about: str

    def fields(self) -> list[str]:
        return [*self.parts, self.about]


@dataclass
class DictNode(Node):
    KIND: ClassVar[str] = "dict"
    keys: list[Any]
    items: list[Node]

    def children(self) -> list[Node]:
        return self.items


@dataclass
class ListNode(Node):
    """A list with a tensor in front. PyG gives lists for tuples, too."""

    KIND: ClassVar[str] = "list"
    items: list[Node]
    tuple: bool = False

    def children(self) -> list[Node]:
        return self.items


NODES: dict[str, type[Node]] = {
    kind.KIND: kind
    for kind in (TensorNode, NumberNode, TextNode, BytesNode, ValueNode, PickleNode, SparseNode, DictNode, ListNode)
}


@dataclass
class Store:
    """One storage object of a sample."""

    #: `single` (of Data), `global`, `node` or `edge` (of HeteroData).
    kind: str
    key: str | tuple[str, str, str] | None
    #: All keys as the first sample had them, `num_nodes` included.
    order: list[str]
    attributes: dict[str, Node]
    #: The axis with the number of nodes, if that can be told.
    axis: str | None = None
    #: Whether batches get `batch` and `ptr` for this store.
    batched: bool = False

    @property
    def explicit(self) -> bool:
        """Whether `num_nodes` is a key."""
        return "num_nodes" in self.order

    @property
    def label(self) -> str:
        if self.key is None:
            return ""
        return self.key if isinstance(self.key, str) else "__".join(self.key)


@dataclass
class Profile:
    module: str
    name: str
    stores: list[Store]
    #: Why batches cannot be made natively; None if they can.
    not_native: str | None = None
    #: What was stored: `data`, or a row of a database (`dict`, `tuple`, `value`).
    row: str = "data"

    def nodes(self) -> list[Node]:
        """All nodes, parents first."""
        out: list[Node] = [node for store in self.stores for node in store.attributes.values()]
        for node in out:
            out.extend(node.children())
        return out

    @property
    def pickled(self) -> bool:
        return any(isinstance(node, PickleNode) for node in self.nodes())

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "class": [self.module, self.name],
            "row": self.row,
            "not_native": self.not_native,
            "stores": [
                {
                    "kind": store.kind,
                    "key": list(store.key) if isinstance(store.key, tuple) else store.key,
                    "order": store.order,
                    "axis": store.axis,
                    "batched": store.batched,
                    "attributes": [[key, _node_json(node)] for key, node in store.attributes.items()],
                }
                for store in self.stores
            ],
        }

    @classmethod
    def from_json(cls, tree: Any, path: Any) -> Profile:
        """The profile of a file. A file of another program is an error that says so."""
        try:
            if tree["version"] != VERSION:
                raise PygError(
                    f"{path}: the pyg profile has version {tree['version']!r}, expected {VERSION}: update fencepost"
                )
            module, name = tree["class"]
            return cls(module, name, [_store(item) for item in tree["stores"]], tree["not_native"], tree["row"])
        except PygError:
            raise
        except Exception as error:
            raise PygError(
                f"{path}: metadata, member pyg: expected a profile as fencepost.pyg writes it, found something else "
                f"({type(error).__name__}: {error}); open the file with fencepost.open, or write it anew"
            ) from error


def _store(tree: dict[str, Any]) -> Store:
    key = tree["key"]
    key = tuple(key) if isinstance(key, list) else key
    if tree["kind"] not in ("single", "global", "node", "edge"):
        raise ValueError(f"a store of kind {tree['kind']!r}")
    attributes = {name: _node(item) for name, item in tree["attributes"]}
    return Store(tree["kind"], key, list(tree["order"]), attributes, tree["axis"], bool(tree["batched"]))


def _node_json(node: Node) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": node.KIND}
    for item in dataclasses.fields(node):
        value = getattr(node, item.name)
        if item.name == "items":
            value = [_node_json(child) for child in value]
        elif isinstance(value, Increment):
            value = dataclasses.asdict(value)
        # Defaults are left out: profiles are read by people as well.
        if item.default is dataclasses.MISSING or value != item.default:
            out[item.name] = value
    return out


def _node(tree: dict[str, Any]) -> Node:
    tree = dict(tree)
    kind = NODES[tree.pop("kind")]
    if "items" in tree:
        tree["items"] = [_node(child) for child in tree["items"]]
    if tree.get("increment") is not None:
        tree["increment"] = Increment(**tree["increment"])
    return kind(**tree)
