"""What a writer that infers its schema adds to each sample by PyG's rules, for schemas that are known before.

A schema that came from such a file, or that names optional attributes besides, asks for the same: the number of nodes, and the
greatest value of what has `batch` in its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fencepost
import numpy as np

from ._layout import hidden_of, told_by
from ._names import along_last

#: Attributes whose rows are nodes, in the order that PyG asks them.
NODE_KEYS = ("x", "feat", "pos", "batch", "node_type", "n_id", "tf")


class Additions:
    """What samples of a schema get beside their own values."""

    def __init__(self, schema: fencepost.Schema) -> None:
        told = {axis for item in schema.attributes if not item.optional for axis in told_by(item)}
        self.counts_nodes = "nodes" in schema.axes and "nodes" not in told
        hidden = [(item.name, hidden_of(item)) for item in schema.attributes]
        self.maxima = [(name, source) for name, source in hidden if source == f"{name}__inc"]

    def complete(
        self, values: Mapping[str, Any], axes: Mapping[str, int] | None
    ) -> tuple[Mapping[str, Any], Mapping[str, int] | None]:
        """The values and lengths of axes with what is not among them yet."""
        missing = [(name, source) for name, source in self.maxima if source not in values and values.get(name) is not None]
        if missing:
            values = dict(values)
            for name, source in missing:
                array = np.asarray(values[name])
                values[source] = array.dtype.type(array.max() + 1 if array.size else 0)
        if self.counts_nodes and "nodes" not in (axes or {}):
            count = num_nodes(values)
            if count is not None:
                axes = {**(axes or {}), "nodes": count}
        return values, axes


def num_nodes(values: Mapping[str, Any]) -> int | None:
    """PyG's number of nodes: the rows of the first attribute of nodes, or the greatest index of one and one."""
    named = next((name for name in values if "node" in name), None)
    for name in (*NODE_KEYS, named):
        value = values.get(name) if name is not None else None
        shape = np.shape(value) if value is not None and not isinstance(value, (str, bytes)) else ()
        if shape:
            return int(shape[-1 if along_last(str(name)) else 0])
    for name in ("edge_index", "face"):
        if values.get(name) is not None:
            array = np.asarray(values[name])
            return max(0, int(array.max()) + 1) if array.size else 0
    return None
