"""Files with random changes, sealed again, and what the reference reader makes of them: for comparing two readers.

    python mutate.py FOLDER SEED COUNT     # writes NUMBER.fence, and outcomes.json

An outcome is {"open": code}, or {"access": {attribute: [codes]}, "verify": [codes]} with "contents" (SPEC.md 22) where nothing
is wrong. Only files of few samples are kept, so that all can be read.
"""

import copy
import json
import pathlib
import random
import struct
import sys
import zlib

SPEC = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SPEC))

from reference_reader import FenceError, Reader, contents  # noqa: E402

# What a member of the directory is replaced by: edges of every range, words and shapes that mean something elsewhere.
VALUES = [
    0, 1, 2, 3, 5, -1, 64, 128, 2**31, 2**32 - 1, 2**32, 2**60, 2**61, 2**62, 2**63 - 1, 1.5, -0.0, None, True, False,
    "x", "u32", "u64", "u8", "f64", "i64", "f32", "bool", "utf8", "bytes", "nodes", "edges", "raw",
    [], {}, [None], ["nodes"], ["nodes", "edges"], [2, "nodes"], ["nodes", 0], ["nodes", None], [2**62, 4, 0], [1] * 9,
    {"attribute": "step"}, {"attribute": "y"}, {"attribute": "x"},
]  # fmt: skip
KEYS = (
    "constant offsets optional hidden encoding requires stored validity ends bytes cat_dim increment data total".split()
)
U64S = [0, 1, 2**32, 2**62, 2**63 - 2, 2**63, 2**64 - 64, 2**64 - 1]


class Parts:
    """A file taken apart."""

    def __init__(self, data):
        self.minor = struct.unpack_from("<H", data, 10)[0]
        self.samples, offset, length = struct.unpack_from("<QQQ", data, 32)
        self.directory = json.loads(data[offset : offset + length])
        self.sections = [
            bytearray(data[section["offset"] :][: section["length"]]) for section in self.directory["sections"]
        ]

    def seal(self, random_source, change_list, change_header):
        def up(offset, alignment=64):
            return -(-offset // alignment) * alignment

        alignment = self.directory.get("alignment")
        alignment = alignment if alignment in (128, 256, 512, 4096) else 64
        places, end = [], 4096
        for section in self.sections:
            places.append(up(end, alignment) if section else 0)
            end = places[-1] + len(section) if section else end
        self.directory["sections"] = [
            {"offset": place, "length": len(section), "crc": zlib.crc32(section)}
            for place, section in zip(places, self.sections)
        ]
        if change_list:
            change_member(random_source, self.directory["sections"])
        text = json.dumps(self.directory, separators=(",", ":")).encode()
        blocks = [section[at : at + 65536] for section in self.sections for at in range(0, len(section), 65536)]
        table = b"".join(struct.pack("<I", zlib.crc32(block)) for block in blocks)
        table_at = up(end)
        directory_at = up(table_at + len(table))
        copy_at = up(directory_at + len(text))
        header_copy_at = up(copy_at + len(text))
        header = bytearray(4096)
        fields = (header_copy_at + 4096, self.samples, directory_at, len(text), copy_at, table_at, len(table))
        crcs = (zlib.crc32(text), zlib.crc32(table))
        magic = bytes.fromhex("89464e43500d0a1a")
        struct.pack_into("<8sHHIQ7QII", header, 0, magic, 1, self.minor, 65536, 0, *fields, *crcs)
        if change_header:
            at = random_source.choice(range(24, 80, 8))
            (old,) = struct.unpack_from("<Q", header, at)
            near = [old + 1, old - 1, old + 64, old - 64, old * 2]
            struct.pack_into("<Q", header, at, random_source.choice(U64S + near) % 2**64)
        header[4092:] = struct.pack("<I", zlib.crc32(header[:4092]))
        file = bytearray(header_copy_at + 4096)
        parts = [(0, header), (table_at, table), (directory_at, text), (copy_at, text), (header_copy_at, header)]
        for at, part in parts + [(place, section) for place, section in zip(places, self.sections) if section]:
            file[at : at + len(part)] = part
        return bytes(file)


def members(value):
    """Every (container, key) below a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from members(inner)


def change_member(random_source, value):
    found = list(members(value))
    if not found:
        return
    container, key = random_source.choice(found)
    kind = random_source.random()
    if kind < 0.15 and type(container[key]) is int:
        container[key] += random_source.choice([-2, -1, 1, 2, 7, 64])
    elif kind < 0.75:
        container[key] = copy.deepcopy(random_source.choice(VALUES))
    elif kind < 0.83:
        del container[key]
    elif kind < 0.92:
        other, other_key = random_source.choice(found)
        container[key] = copy.deepcopy(other[other_key])
    elif isinstance(container, dict):
        container[random_source.choice(KEYS)] = copy.deepcopy(random_source.choice(VALUES))
    else:
        container.append(copy.deepcopy(random_source.choice(container)))


def mutate(random_source, parts):
    """One file with something changed."""
    kind = random_source.random()
    filled = [section for section in parts.sections if section]
    if kind < 0.5:
        root = parts.directory
        value = root if random_source.random() < 0.2 else root[random_source.choice(["axes", "attributes"])]
        for _ in range(random_source.choice([1, 1, 1, 2, 3])):
            change_member(random_source, value)
    elif kind < 0.85 and filled:
        for _ in range(random_source.choice([1, 1, 2, 4])):
            section = random_source.choice(filled)
            at = random_source.randrange(len(section))
            near = [section[at] + 1, section[at] - 1, section[at] + 2]
            section[at] = random_source.choice([0, 1, 2, 0x7F, 0x80, 0xFF, 0xC3, 0xED, *near]) % 256
    elif kind < 0.9:
        near = [0, 1, parts.samples + 1, max(parts.samples - 1, 0), 2**40, 2**63 - 2]
        parts.samples = random_source.choice(near)
    return parts.seal(random_source, change_list=0.9 <= kind < 0.95, change_header=kind >= 0.95)


def outcome(data):
    try:
        reader = Reader(data)
    except FenceError as error:
        return {"open": error.code}
    if reader.samples > 1000:
        return None
    access = {}
    for attribute in reader.attributes:
        for i in range(reader.samples):
            try:
                reader.value(attribute.name, i)
            except FenceError as error:
                if not attribute.hidden:
                    access.setdefault(attribute.name, set()).add(error.code)
    found = {name: sorted(codes) for name, codes in access.items()}
    codes = sorted({fault.code for fault in reader.verify()})
    return {"access": found, "verify": codes} | ({} if codes else {"contents": contents(reader)})


def main(folder, seed, count):
    random_source = random.Random(int(seed))
    sources = [path for path in sorted((SPEC / "vectors" / "golden").glob("*.fence")) if path.stat().st_size < 30000]
    # What the hostile files are made from has something of everything.
    sources += [SPEC / "vectors" / "hostile" / "copy_header.fence"] * 8
    sources = [path.read_bytes() for path in sources]
    folder, outcomes = pathlib.Path(folder), {}
    for number in range(int(count)):
        data = mutate(random_source, Parts(random_source.choice(sources)))
        found = outcome(data)
        if found is not None:
            (folder / f"{number}.fence").write_bytes(data)
            outcomes[f"{number}.fence"] = found
    (folder / "outcomes.json").write_text(json.dumps(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
