"""A second writer of fencepost files, written from SPEC.md with the standard library alone.

It shares no code with the library and none with the reference reader: if both read what it writes, the specification is
enough to write by. It holds everything in memory and takes what it is given for granted.

    python second_writer.py FOLDER     # writes NAME.fence and NAME.json (SPEC.md 22) for each of its cases
"""

import itertools
import json
import math
import pathlib
import struct
import sys
import zlib

STRINGS = ("utf8", "bytes")
CODES = {
    "bool": "?", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip
SIZES = {"bf16": 2, "c64": 8, "c128": 16, "f8e4m3": 1, "f8e5m2": 1, "utf8": 1, "bytes": 1} | {
    dtype: struct.calcsize("<" + code) for dtype, code in CODES.items()
}


def align_up(offset, alignment):
    return -(-offset // alignment) * alignment


def pack(dtype, *values):
    """Numbers as little-endian bytes."""
    return struct.pack(f"<{len(values)}{CODES[dtype]}", *values)


def narrow(raw, dtype, stored):
    """Section 10, for the pairs that Python's struct can do; NaN is not among them."""
    values = struct.unpack(f"<{len(raw) // SIZES[dtype]}{CODES[dtype]}", raw)
    integers = stored[0] in "ui"
    result = pack(stored, *(int(value) if integers else value for value in values))
    back = struct.unpack(f"<{len(values)}{CODES[stored]}", result)
    assert pack(dtype, *back) == raw, f"{stored} does not hold every value"
    return result


class File:
    """Collects samples: each a dict from name to None, or (shape, bytes), or (shape, [bytes of each string])."""

    def __init__(self, attributes, axes=()):
        self.attributes = [{"cat_dim": None, "increment": None, **attribute} for attribute in attributes]
        self.axes = list(axes)
        for attribute in attributes:
            for dim in attribute["shape"]:
                if isinstance(dim, str) and dim not in self.axes:
                    self.axes.append(dim)
        self.samples = []
        self.lengths = {axis: [] for axis in self.axes}

    def push(self, values, **lengths):
        for attribute in self.attributes:
            value = values[attribute["name"]]
            if value is not None:
                for dim, extent in zip(attribute["shape"], value[0], strict=True):
                    if isinstance(dim, str):
                        assert lengths.setdefault(dim, extent) == extent, f"{dim} has two lengths"
                    else:
                        assert dim == extent
        for axis in self.axes:
            self.lengths[axis].append(lengths[axis])
        self.samples.append(values)

    # ------------------------------------------------------------------------------------------------- sections

    def _section(self, data):
        """Equal sections are written once."""
        if data not in self._sections:
            self._sections.append(data)
        return self._sections.index(data)

    def _table(self, entries, total):
        dtype = "u32" if total < 2**32 else "u64"
        return self._section(pack(dtype, *entries)), dtype

    def _axis(self, name):
        lengths = self.lengths[name]
        if len(set(lengths)) <= 1:
            constant = lengths[0] if lengths else 0
            return {"name": name, "total": sum(lengths), "constant": constant}
        section, stored = self._table(fenceposts(lengths), sum(lengths))
        return {"name": name, "total": sum(lengths), "offsets": section, "stored": stored}

    def _attribute(self, attribute):
        name, dtype, shape = attribute["name"], attribute["dtype"], attribute["shape"]
        stored = attribute.get("stored", dtype)
        ragged = [dim for dim in shape if isinstance(dim, str)]
        fixed = math.prod(dim for dim in shape if not isinstance(dim, str))
        optional = attribute.get("optional", False)
        entry = dict(attribute)
        arena, counts, sizes, ends, bits = bytearray(), [], [], [], 0
        for i, sample in enumerate(self.samples):
            value = sample[name]
            if value is None:
                count = 0 if ragged else fixed
                content = [b""] * count if dtype in STRINGS else bytes(count * SIZES[dtype])
            else:
                count, content = math.prod(value[0]), value[1]
                bits |= 1 << i
            before = len(arena)
            if dtype in STRINGS:
                for string in content:
                    arena += string
                    ends.append(len(arena))
            else:
                assert len(content) == count * SIZES[dtype]
                arena += content if stored == dtype else narrow(content, dtype, stored)
            counts.append(count)
            sizes.append(len(arena) - before)
        entry["total"] = sum(counts)
        entry["data"] = self._section(bytes(arena))
        if len(ragged) >= 2 or (ragged and optional):
            entry["offsets"], entry["offsets_stored"] = self._table(fenceposts(counts), sum(counts))
        if dtype in STRINGS:
            entry["bytes"], entry["bytes_stored"] = self._table(fenceposts(sizes), len(arena))
            if shape:
                entry["ends"], entry["ends_stored"] = self._table(ends, len(arena))
        if optional:
            entry["validity"] = self._section(bits.to_bytes(-(-len(self.samples) // 8), "little"))
        return entry

    # ------------------------------------------------------------------------------------------------- the file

    def to_bytes(self, alignment=64, metadata=None, minor=0, canonical=True, compact=True, extra=b"", root=None):
        """The file. What is not `canonical` or `compact` is legal and odd."""
        self._sections = []
        axes = [self._axis(axis) for axis in self.axes]
        attributes = [self._attribute(attribute) for attribute in self.attributes]
        if extra:
            self._section(extra)
        places, at = {}, 4096
        order = range(len(self._sections))
        for k in order if compact else reversed(order):
            if self._sections[k]:
                at = align_up(at, alignment) if compact else align_up(at + 1, alignment)
                places[k] = at
                at += len(self._sections[k])
        sections = [
            {"offset": places.get(k, 0), "length": len(data), "crc": zlib.crc32(data)}
            for k, data in enumerate(self._sections)
        ]
        document = {"alignment": alignment, "sections": sections, "axes": axes, "attributes": attributes}
        if metadata is not None:
            document["metadata"] = metadata
        document |= root or {}
        if canonical:
            text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        else:
            text = "\n\t " + json.dumps(document, indent=3) + "\r\n"
        directory = text.encode()
        blocks = [
            zlib.crc32(data[at : at + 65536]) for data in self._sections for at in range(0, len(data), 65536)
        ]
        table = pack("u32", *blocks)
        table_at = align_up(at, 64)
        directory_at = align_up(table_at + len(table), 64)
        copy_at = align_up(directory_at + len(directory), 64)
        header_copy_at = align_up(copy_at + len(directory), 64)
        length = header_copy_at + 4096
        header = bytes.fromhex("89464e43500d0a1a") + pack("u16", 1, minor) + pack("u32", 65536)
        header += pack("u64", 0, length, len(self.samples), directory_at, len(directory), copy_at)
        header += pack("u64", table_at, len(table)) + pack("u32", zlib.crc32(directory), zlib.crc32(table))
        header = header.ljust(4092, b"\0")
        header += pack("u32", zlib.crc32(header))
        result = bytearray(length)
        parts = [(0, header), (table_at, table), (directory_at, directory), (copy_at, directory)]
        parts += [(places[k], self._sections[k]) for k in places] + [(header_copy_at, header)]
        for at, data in parts:
            result[at : at + len(data)] = data
        return bytes(result)

    def expected(self, metadata=None):
        """What readers find, as in SPEC.md 22."""

        def show(attribute, value):
            if value is None:
                return None
            shape, content = value
            shown = {"dtype": attribute["dtype"], "shape": list(shape)}
            if attribute["dtype"] in STRINGS:
                return shown | {"strings": [string.hex() for string in content]}
            return shown | {"hex": content.hex()}

        keys = {"optional": False, "hidden": False}
        return {
            "samples": len(self.samples),
            "axes": self.lengths,
            "attributes": {
                a["name"]: {key: a.get(key, keys.get(key)) for key in ("dtype", "shape", "cat_dim", "increment", *keys)}
                for a in self.attributes
            },
            "refused": [],
            "metadata": metadata or {},
            "shard": None,
            "base": None,
            "values": [
                {a["name"]: show(a, sample[a["name"]]) for a in self.attributes} for sample in self.samples
            ],
        }


def fenceposts(lengths):
    return list(itertools.accumulate(lengths, initial=0))


# ---------------------------------------------------------------------------------------------------------- cases


def graphs():
    """Ragged, narrow, optional, strings, own tables, increments: everything at once."""
    file = File(
        [
            {"name": "x", "dtype": "f32", "shape": ["nodes", 2], "cat_dim": 0},
            {
                "name": "edge_index",
                "dtype": "i64",
                "stored": "u8",
                "shape": [2, "edges"],
                "cat_dim": 1,
                "increment": "nodes",
            },
            {"name": "distance", "dtype": "f64", "stored": "f16", "shape": ["nodes", "nodes"]},
            {"name": "y", "dtype": "f32", "stored": "i16", "shape": [], "optional": True},
            {"name": "charge", "dtype": "i16", "stored": "i8", "shape": ["nodes"], "cat_dim": 0, "optional": True},
            {"name": "smiles", "dtype": "utf8", "shape": []},
            {"name": "labels", "dtype": "utf8", "shape": ["nodes"], "cat_dim": 0},
            {"name": "tags", "dtype": "bytes", "shape": [2], "optional": True},
            {"name": "step", "dtype": "i64", "shape": [2], "hidden": True},
            {"name": "pairs", "dtype": "i64", "shape": [2, "pairs"], "increment": {"attribute": "step"}},
            {"name": "links", "dtype": "u32", "shape": [2, "pairs"], "increment": ["nodes", None]},
        ],
        axes=["ports"],
    )
    for i, nodes in enumerate([3, 0, 1, 4, 4]):
        edges = nodes * 2
        present = i % 2 == 0
        file.push(
            {
                "x": ((nodes, 2), pack("f32", *(k / 4 - i for k in range(nodes * 2)))),
                "edge_index": ((2, edges), pack("i64", *(k % max(nodes, 1) for k in range(2 * edges)))),
                "distance": ((nodes, nodes), pack("f64", *(k * 0.5 for k in range(nodes * nodes)))),
                "y": ((), pack("f32", -300.0 + i)) if present else None,
                "charge": ((nodes,), pack("i16", *range(-nodes, 0))) if not present else None,
                "smiles": ((), [["CCO", "", "ü", "\U0001f600\0x", "C"][i].encode()]),
                "labels": ((nodes,), [("é" * k).encode() for k in range(nodes)]),
                "tags": ((2,), [b"\xff\x00", b""]) if present else None,
                "step": ((2,), pack("i64", nodes, -i)),
                "pairs": ((2, i), pack("i64", *range(2 * i))),
                "links": ((2, i), pack("u32", *range(2 * i))),
            },
            ports=i * 7 % 3,
        )
    return file


def many_blocks():
    """Arenas of several blocks, so that the checksum table is more than one entry a section."""
    file = File(
        [
            {"name": "a", "dtype": "u16", "shape": ["rows", 3], "cat_dim": 0},
            {"name": "b", "dtype": "bytes", "shape": []},
        ]
    )
    for rows in [20000, 1, 0, 21845]:
        values = pack("u16", *(k * k % 65521 for k in range(rows * 3)))
        file.push({"a": ((rows, 3), values), "b": ((), [values[: rows * 4]])})
    return file


def nothing():
    return File([])


def no_samples():
    return File(graphs().attributes)


METADATA = {
    "second writer": {"π": 3.140625, "negative zero": -0.0, "least": -(2**63), "greatest": 2**63 - 1},
    "pyg": None,
    'quote " and \\ and \u0001 and \u2028': [True, None, [], {}],
}

CASES = {
    "plain": lambda: (graphs(), {}),
    "odd": lambda: (
        graphs(),
        {
            "alignment": 512,
            "metadata": METADATA,
            "canonical": False,
            "compact": False,
            "extra": b"a section that nothing refers to",
            "root": {"hereafter": {"number": 0}, "from a later version": [[1]]},
        },
    ),
    "later": lambda: (graphs(), {"minor": 7, "metadata": METADATA}),
    "many_blocks": lambda: (many_blocks(), {"alignment": 4096}),
    "nothing": lambda: (nothing(), {}),
    "no_samples": lambda: (no_samples(), {}),
}


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        file, options = case()
        (folder / f"{name}.fence").write_bytes(file.to_bytes(**options))
        text = json.dumps(file.expected(options.get("metadata")), ensure_ascii=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
