"""The worked example of SPEC.md, made from the golden file that it shows.

    python example.py            # prints it
    python example.py --write    # puts it into SPEC.md
"""

import json
import struct
import sys

from conftest import SPEC
from reference_reader import Reader

START, END = "<!-- example -->\n", "<!-- /example -->\n"
FIELDS = [
    (8, "magic", "8s"), (2, "major", "H"), (2, "minor", "H"), (4, "block_size", "I"), (8, "critical", "Q"),
    (8, "file_length", "Q"), (8, "samples", "Q"), (8, "directory_offset", "Q"), (8, "directory_length", "Q"),
    (8, "directory_copy_offset", "Q"), (8, "checksums_offset", "Q"), (8, "checksums_length", "Q"),
    (4, "directory_crc", "I"), (4, "checksums_crc", "I"),
]  # fmt: skip
WHAT = {
    0: "arena of `x`: 12 f32, six rows of two",
    1: "arena of `edge_index`: 12 u8, which stand for i64",
    2: "arena of `y`: three f64",
    3: "arena of `smiles`: the strings CCO, C, C#N",
    4: "table of `smiles` in bytes: 0 3 4 7",
    5: "table of axis `nodes`: 0 3 4 6",
    6: "table of axis `edges`: 0 4 4 6",
}


def line(offset, data, note=""):
    return f"{offset:08x}  {data.hex(' '):<47}  {note}".rstrip()


def dump(offset, data):
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield line(offset + at, part, f"|{text}|")


def zeros(start, end, what):
    return f"{start:08x}  {end - start} zero bytes: {what}"


def hexdump(data, reader):
    yield "header"
    at = 0
    for size, name, code in FIELDS:
        part = data[at : at + size]
        value = "" if code == "8s" else struct.unpack("<" + code, part)[0]
        if name.endswith("_crc"):
            value = f"{value:08x}"
        yield line(at, part, f"{name} {value}")
        at += size
    yield zeros(at, 4092, "reserved")
    yield line(4092, data[4092:4096], f"header_crc {struct.unpack('<I', data[4092:4096])[0]:08x}")
    end = 4096
    parts = [(s.offset, s.length, f"section {k}, {WHAT[k]}") for k, s in enumerate(reader.sections)]
    parts += [
        (reader.checksums_offset, reader.checksums_length, "checksum table: one block for each of the seven sections"),
        (reader.directory_offset, reader.directory_length, "directory"),
        (reader.directory_copy_offset, reader.directory_length, "the directory's copy"),
        (len(data) - 4096, 4096, "the header's copy"),
    ]
    for offset, length, what in parts:
        if offset > end:
            yield zeros(end, offset, "padding")
        yield ""
        yield what
        if what == "directory":
            lines = list(dump(offset, data[offset : offset + length]))
            yield from lines[:4]
            yield f"...       {length} bytes in all, see below"
            yield lines[-1]
        elif "copy" in what:
            yield f"{offset:08x}  {length} bytes, the same as above"
        else:
            yield from dump(offset, data[offset : offset + length])
        end = offset + length


def wrap(text, width=118):
    """Breaks behind commas."""
    lines = [""]
    for piece in text.split(","):
        piece += ","
        if len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)[:-1]


def example():
    path = SPEC / "vectors" / "golden" / "three_samples.fence"
    data = path.read_bytes()
    reader = Reader(data)
    directory = data[reader.directory_offset :][: reader.directory_length].decode()
    assert json.loads(directory)
    wrapped = wrap(directory)
    assert wrapped.replace("\n", "") == directory, "wrapping must lose nothing"
    nodes, edges = reader.axis_range("nodes", 2), reader.axis_range("edges", 2)
    x, edge_index = reader.sections[0].offset, reader.sections[1].offset
    smiles = reader.sections[3].offset
    start, end = reader._entries(reader.attributes[3].bytes, 2, 2)
    dump_text = "\n".join(hexdump(data, reader))
    return f"""\
`vectors/golden/three_samples.fence`: three molecules, with an alignment of 64. Attributes: `x`, f32, `[nodes, 2]`; `edge_index`, i64
stored as u8, `[2, edges]`, incremented by `nodes`; `y`, f64, `[]`; `smiles`, utf8, `[]`. {len(data)} bytes.

```text
{dump_text}
```

The directory, with line breaks that are not in the file:

```text
{wrapped}
```

To read sample 2:

- Axis `nodes` has its table in section 5, at {reader.sections[5].offset}, as u32. Entries 2 and 3 are at
  {reader.sections[5].offset} + 2 * 4 = {reader.sections[5].offset + 8}: {nodes[0]} and {nodes[1]}. So the sample has {nodes[1] - nodes[0]} nodes.
  `edges`, section 6, gives {edges[0]} and {edges[1]}: {edges[1] - edges[0]} edges.
- `x` has shape [2, 2]. F = 2, so it starts at element {nodes[0]} * 2 = {nodes[0] * 2}, which is byte {x} + {nodes[0] * 2} * 4 = {x + nodes[0] * 8},
  and has 4 elements, 16 bytes: `{reader.value("x", 2).data.hex(" ")}`, which is [[6, 0], [7, 0.25]].
- `edge_index` has shape [2, 2]. F = 2, so it starts at element {edges[0]} * 2 = {edges[0] * 2}, byte {edge_index} + {edges[0] * 2} =
  {edge_index + edges[0] * 2}: `{data[edge_index + edges[0] * 2 :][:4].hex(" ")}`, widened to i64 [[0, 1], [1, 0]].
- `y` has no ragged dimension: element 2 * 1, byte {reader.sections[2].offset} + 16 = {reader.sections[2].offset + 16}:
  `{reader.value("y", 2).data.hex(" ")}`, which is 2.5.
- `smiles`: entries 2 and 3 of section 4 are {start} and {end}, so its bytes are {smiles + start}..{smiles + end}: `{data[smiles + start : smiles + end].decode()}`.
"""


def main():
    if "--write" not in sys.argv:
        print(example(), end="")
        return
    path = SPEC / "SPEC.md"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    path.write_text(before + START + example() + END + after, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
