"""A file's attributes as columns of Arrow, and what of the schema Arrow has no word for.

| attribute | column |
| --- | --- |
| dtype of numbers | the same; `bf16` and `f8…` as the integers that hold their bits, `c64` and `c128` as pairs |
| `utf8`, `bytes` | large_string, large_binary |
| a dimension along an axis | large_list |
| a dimension of fixed extent | fixed_size_list; of extent 0, which Arrow has not, large_list |
| an absent optional value | null |

A sample's values lie in C order in both, so only offsets have to be made. The schema as JSON, the user's metadata and the names of
columns that hold lengths of axes go into the Arrow schema's metadata under `fencepost`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fencepost
import numpy as np

KEY = b"fencepost"
#: The format's dtypes to the numpy dtype of Arrow's values, and how many of those make one of ours.
LEAVES = {
    "bool": ("bool", 1), "u8": ("uint8", 1), "u16": ("uint16", 1), "u32": ("uint32", 1), "u64": ("uint64", 1), "i8": ("int8", 1),
    "i16": ("int16", 1), "i32": ("int32", 1), "i64": ("int64", 1), "f16": ("float16", 1), "f32": ("float32", 1), "f64": ("float64", 1),
    "bf16": ("uint16", 1), "f8e4m3": ("uint8", 1), "f8e5m2": ("uint8", 1), "c64": ("float32", 2), "c128": ("float64", 2),
}  # fmt: skip


@dataclass
class Layout:
    """What the columns of a file are."""

    schema: fencepost.Schema
    metadata: dict[str, Any]
    #: Columns that hold the lengths of axes that no column's shape tells.
    counts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: fencepost.Schema, metadata: dict[str, Any]) -> Layout:
        """The layout of all attributes of a schema."""
        layout = cls(schema, metadata)
        told = {axis for item in schema.attributes if not item.optional for axis in told_by(item)}
        for axis in schema.axes:
            if axis not in told:
                name = f"num_{axis}"
                while name in schema or name in layout.counts:
                    name += "_"
                layout.counts[name] = axis
        return layout

    @classmethod
    def shown(cls, dataset: fencepost.Dataset) -> Layout:
        """The layout of what a data set, or a projection of it, shows, and of what adds to the indices of that."""
        names = set(dataset.attributes)
        names |= {hidden_of(item) for item in dataset.schema.attributes if item.name in names} - {""}
        attributes = [item for item in dataset.schema.attributes if item.name in names]
        axes = dataset.schema.axes
        if len(attributes) < len(dataset.schema):
            axes = [axis for axis in axes if any(axis in item.shape or _adds(item, axis) for item in attributes)]
        return cls.of(fencepost.Schema(attributes, axes), dataset.metadata)

    def dump(self) -> dict[bytes, bytes]:
        """For the metadata of an Arrow schema."""
        tree = {"schema": json.loads(self.schema.to_json()), "metadata": self.metadata, "counts": self.counts}
        return {KEY: json.dumps(tree).encode()}

    @classmethod
    def load(cls, metadata: Mapping[bytes, bytes] | None) -> Layout | None:
        """The layout in an Arrow schema's metadata, if it is there and whole."""
        try:
            tree = json.loads((metadata or {})[KEY])
            attributes = [
                fencepost.Attribute(
                    item["name"], item["dtype"], item["shape"], cat_dim=item["cat_dim"], increment=item["increment"],
                    optional=item.get("optional", False), hidden=item.get("hidden", False),
                )
                for item in tree["schema"]["attributes"]
            ]  # fmt: skip
            schema = fencepost.Schema(attributes, tree["schema"]["axes"])
            return cls(schema, dict(tree["metadata"]), dict(tree["counts"]))
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError):  # another program's, or of a version to come
            return None


def hidden_of(attribute: fencepost.Attribute) -> str:
    """The attribute that says by how much this one is incremented, or nothing."""
    rule = attribute.increment
    return rule["attribute"] if isinstance(rule, dict) else ""


def _adds(attribute: fencepost.Attribute, axis: str) -> bool:
    """Whether the lengths along an axis add to the indices of an attribute."""
    rule = attribute.increment
    return rule == axis or (isinstance(rule, list) and axis in rule)


def told_by(attribute: fencepost.Attribute) -> dict[str, int]:
    """The axes whose lengths lists of this shape tell in every row, and in which dimension: the inner lists of no list have no length."""
    told: dict[str, int] = {}
    for place, dim in enumerate(attribute.shape):
        if isinstance(dim, str):
            told.setdefault(dim, place)
            break
        if dim == 0:
            break
    return told


def counts_before(lengths: Any) -> Any:
    """Offsets of lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
