"""A small reader of fencepost files, written from SPEC.md. It needs numpy and nothing else.

It is made to be read beside the specification, not to be fast: section numbers are given where a rule is applied, and
every fault is a FenceError with the code of SPEC.md section 14.

    reader = Reader("molecules.fence")
    reader.samples                      # N
    reader.sample(0)["x"]               # Value(dtype="f32", shape=(3, 2), data=b"...")
    reader.verify()                     # list of FenceError, empty if all is well

On the command line: python reference_reader.py FILE [--json]. Exit code 0: the file is good; 1: it is not; 2: no answer.
"""

import json
import math
import os
import re
import struct
import sys
import zlib
from dataclasses import dataclass
from typing import NamedTuple, Optional

import numpy as np

MAGIC = bytes.fromhex("89464e43500d0a1a")
HEADER_SIZE = 4096
BLOCK_SIZE = 65536
KNOWN_CRITICAL = 0
MAX_DIRECTORY = 64 << 20
MAX_DEPTH = 32
MAX_NAME = 1024
MAX_RANK = 8
LIMIT = 2**63 - 1

# 9.1
SIZES = {
    "bool": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16, "f8e4m3": 1, "f8e5m2": 1,
    "utf8": 1, "bytes": 1,
}  # fmt: skip
STRINGS = ("utf8", "bytes")
INTEGERS = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64")

# 10
NARROW = {
    "u16": ("u8",),
    "u32": ("u8", "u16"),
    "u64": ("u8", "u16", "u32"),
    "i16": ("u8", "i8"),
    "i32": ("u8", "i8", "u16", "i16"),
    "i64": ("u8", "i8", "u16", "i16", "u32", "i32"),
    "f32": ("u8", "i8", "u16", "i16", "f16", "bf16"),
    "f64": ("u8", "i8", "u16", "i16", "u32", "i32", "f16", "bf16", "f32"),
}


class FenceError(Exception):
    """A broken rule: `code` is one of SPEC.md section 14."""

    def __init__(self, code, message, attribute=None):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.attribute = attribute


def need(condition, code, message, attribute=None):
    if not condition:
        raise FenceError(code, message, attribute)


class Value(NamedTuple):
    """One attribute of one sample. `data` is the widened elements as bytes, or a list with the bytes of each string."""

    dtype: str
    shape: tuple
    data: object


@dataclass
class Section:
    offset: int
    length: int
    crc: int


@dataclass
class Table:
    place: str
    section: int
    width: int
    total: int


@dataclass
class Axis:
    name: str
    total: int
    constant: Optional[int]
    table: Optional[Table]


@dataclass
class Attribute:
    name: str
    dtype: str
    stored: str
    shape: list
    cat_dim: Optional[int]
    increment: object
    optional: bool
    hidden: bool
    fixed: int
    total: int = 0
    data: int = 0
    own: Optional[Table] = None
    bytes: Optional[Table] = None
    ends: Optional[Table] = None
    validity: Optional[int] = None

    def ragged(self):
        return [dim for dim in self.shape if isinstance(dim, str)]


# --------------------------------------------------------------------------------------------------------- JSON (5)


def parse_json(raw):
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FenceError("json", f"not UTF-8 from byte {error.start}") from None
    depth = 0
    for token in re.finditer(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', text, re.DOTALL):
        if token[0] in "[{":
            depth += 1
            need(depth <= MAX_DEPTH, "json", f"nested deeper than {MAX_DEPTH}")
        elif token[0] in "]}":
            depth -= 1

    def integer(token):
        if token == "-0":
            return -0.0
        need(len(token) <= 20 and -(2**63) <= int(token) < 2**63, "json", f"{token[:40]} is beyond 64 bits")
        return int(token)

    def other_number(token):
        need(math.isfinite(float(token)), "json", f"{token[:40]} is not finite")
        return float(token)

    def constant(token):
        raise FenceError("json", f"{token} is no JSON")

    def members(pairs):
        result = {}
        for name, value in pairs:
            need(name not in result, "duplicate", f"key {name!r}")
            result[name] = value
        return result

    try:
        document = json.loads(
            text,
            object_pairs_hook=members,
            parse_int=integer,
            parse_float=other_number,
            parse_constant=constant,
        )
        json.dumps(document, ensure_ascii=False).encode("utf-8")  # Fails on a lone surrogate.
    except (json.JSONDecodeError, UnicodeEncodeError) as error:
        raise FenceError("json", str(error)) from None
    return document


# Typed members of the directory's objects. A member that is null counts as absent.


def is_integer(value):
    return type(value) is int


def get_object(value, place):
    need(type(value) is dict, "directory", f"{place} is no object")
    return value


def get_count(entry, key, place, limit=LIMIT):
    value = entry.get(key)
    need(is_integer(value) and 0 <= value <= limit, "directory", f"{place}.{key} is {value!r}, no integer in 0..={limit}")
    return value


def get_text(entry, key, place):
    value = entry.get(key)
    need(type(value) is str, "directory", f"{place}.{key} is {value!r}, no string")
    return value


def get_flag(entry, key, place):
    value = entry.get(key)
    need(value is None or type(value) is bool, "directory", f"{place}.{key} is {value!r}, no boolean")
    return bool(value)


def get_array(entry, key, place):
    value = entry.get(key)
    need(type(value) is list, "directory", f"{place}.{key} is no array")
    return value


def get_name(entry, place, seen):
    name = get_text(entry, "name", place)
    need(1 <= len(name.encode()) <= MAX_NAME, "directory", f"{place}.name has {len(name.encode())} bytes")
    need(name not in seen, "duplicate", f"{place}.name {name!r}")
    seen.add(name)
    return name


def product(*factors, place):
    """Python's integers are exact, so the order of the factors does not matter."""
    result = math.prod(factors)
    need(result <= LIMIT, "overflow", f"{place}: {result} is beyond 2^63 - 1")
    return result


# ---------------------------------------------------------------------------------------------- narrow storage (10)


def numpy_type(dtype):
    return {"u": "<u", "i": "<i", "f": "<f"}[dtype[0]] + str(SIZES[dtype])


def widen(raw, stored, dtype):
    if stored == dtype:
        return raw
    if stored in INTEGERS:
        return np.frombuffer(raw, numpy_type(stored)).astype(numpy_type(dtype)).tobytes()
    if stored == "f32":
        bits = np.frombuffer(raw, "<u4")
    elif stored == "bf16":
        bits = np.frombuffer(raw, "<u2").astype("<u4") << 16
    else:
        half = np.frombuffer(raw, "<u2").astype("<u4")
        sign, exponent, mantissa = (half & 0x8000) << 16, half >> 10 & 31, half & 0x3FF
        tiny = (mantissa.astype("<f4") * np.float32(2.0**-24)).view("<u4")
        finite = np.where(exponent == 0, tiny, (exponent + 112) << 23 | mantissa << 13)
        bits = sign | np.where(exponent == 31, 0x7F800000 | mantissa << 13, finite)
        bits = bits.astype("<u4")
    nan = bits & 0x7FFFFFFF > 0x7F800000
    bits = np.where(nan, bits | 0x00400000, bits).astype("<u4")
    if dtype == "f32":
        return bits.tobytes()
    wide = bits.astype("<u8")
    nans = (wide & 0x80000000) << 32 | 0x7FF8000000000000 | (wide & 0x7FFFFF) << 29
    numbers = np.where(nan, 0, bits).astype("<u4").view("<f4").astype("<f8").view("<u8")
    return np.where(nan, nans, numbers).astype("<u8").tobytes()


# -------------------------------------------------------------------------------------------------------- the reader


class Reader:
    """An open file. `source` is a path, or the file's bytes."""

    def __init__(self, source):
        if isinstance(source, (bytes, bytearray, memoryview)):
            self._bytes, self._file = bytes(source), None
            self.file_length = len(self._bytes)
        else:
            self._bytes, self._file = None, open(source, "rb")
            self.file_length = os.fstat(self._file.fileno()).st_size
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self):
        if self._file is not None:
            self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self, offset, length):
        """Bytes of the file. Every caller has proved that they are in it."""
        if self._file is None:
            found = self._bytes[offset : offset + length]
        else:
            self._file.seek(offset)
            found = self._file.read(length)
        if len(found) != length:
            raise OSError(f"the file became shorter: {length} bytes at {offset} are gone")
        return found

    # ------------------------------------------------------------------------------------ opening, in the order of 13.1

    def _open(self):
        start = self._read(0, min(self.file_length, HEADER_SIZE))
        need(start[:8] == MAGIC, "magic", f"the file begins with {start[:8].hex(' ') or 'nothing'}")  # 1
        need(len(start) == HEADER_SIZE, "truncated", f"{len(start)} bytes are no whole header")  # 2
        fields = struct.unpack_from("<8sHHIQQQQQQQQII", start)
        _, major, self.minor, block_size, critical, file_length, self.samples = fields[:7]
        self.directory_offset, self.directory_length, self.directory_copy_offset = fields[7:10]
        self.checksums_offset, self.checksums_length, self.directory_crc, self.checksums_crc = fields[10:]
        need(major == 1, "version", f"{major}.{self.minor}")  # 3
        (header_crc,) = struct.unpack_from("<I", start, HEADER_SIZE - 4)
        need(zlib.crc32(start[:-4]) == header_crc, "checksum", "of the header")  # 4
        need(self.file_length >= file_length, "truncated", f"{self.file_length} bytes of {file_length}")  # 5
        need(self.file_length <= file_length, "trailing-bytes", f"{self.file_length} bytes, not {file_length}")
        need(critical & ~KNOWN_CRITICAL == 0, "critical-feature", f"bits {critical:#x}")  # 6
        need(block_size == BLOCK_SIZE, "header", f"block_size {block_size}")  # 7
        need(self.minor > 0 or not any(start[88:-4]), "header", "reserved bytes are not zero")
        self._check_places()  # 8
        raw = self._read(self.directory_offset, self.directory_length)
        need(zlib.crc32(raw) == self.directory_crc, "checksum", "of the directory")  # 9
        root = get_object(parse_json(raw), "directory")  # 10, 11
        alignment = get_count(root, "alignment", "directory")
        need(
            64 <= alignment <= 1 << 30 and alignment & (alignment - 1) == 0,
            "directory",
            f"alignment {alignment}",
        )
        self._open_sections(get_array(root, "sections", "directory"), alignment)  # 12
        seen = set()
        self.axes = [self._open_axis(k, item, seen) for k, item in enumerate(get_array(root, "axes", "directory"))]  # 13
        self._axis = {axis.name: axis for axis in self.axes}
        self.attributes, self.refused = [], {}
        seen = set()
        for k, item in enumerate(get_array(root, "attributes", "directory")):  # 14
            entry = get_object(item, f"attributes[{k}]")
            name = get_name(entry, f"attributes[{k}]", seen)
            reason = self._reason_to_refuse(entry, f"attributes[{k}]")
            if reason:
                self.refused[name] = reason
            else:
                self.attributes.append(self._open_attribute(entry, name, f"attributes[{k}]"))
        self._attribute = {attribute.name: attribute for attribute in self.attributes}
        for attribute in self.attributes:  # 15
            self._check_schema(attribute)
        self.statistics_section = None  # 16
        if root.get("statistics") is not None:
            self.statistics_section = self._get_section(root, "statistics", "directory")
        self.metadata = {}
        if root.get("metadata") is not None:
            self.metadata = get_object(root["metadata"], "metadata")
        self.shard = None
        if root.get("shard") is not None:
            self.shard = self._open_shard(get_object(root["shard"], "shard"))
        self.base = None
        if root.get("base") is not None:
            self.base = self._open_base(get_object(root["base"], "base"))

    def _open_shard(self, entry):
        shard = {"dataset": get_text(entry, "dataset", "shard"), "number": get_count(entry, "number", "shard")}
        need(1 <= len(shard["dataset"].encode()) <= 1024, "directory", "shard.dataset: 1 to 1024 bytes")
        shard["first"] = None
        if entry.get("first") is not None:
            shard["first"] = get_count(entry, "first", "shard")
            need(shard["first"] + self.samples < 2**63, "overflow", "shard.first")
        shard["last"] = get_flag(entry, "last", "shard")
        shard["source"] = None
        if entry.get("source") is not None:
            shard["source"] = get_text(entry, "source", "shard")
        return shard

    def _open_base(self, entry):
        base = {key: get_count(entry, key, "base") for key in ("file_bytes", "samples")}
        base |= {key: get_count(entry, key, "base", 2**32 - 1) for key in ("directory_crc", "checksums_crc")}
        need(base["samples"] == self.samples, "directory", f"base.samples: not the file's {self.samples}")
        return base

    def _check_places(self):
        need(self.samples <= 2**63 - 2, "header", f"samples {self.samples}")
        need(self.directory_length <= MAX_DIRECTORY, "header", f"directory_length {self.directory_length}")
        low = HEADER_SIZE
        for field, offset, length in (
            ("checksums_offset", self.checksums_offset, self.checksums_length),
            ("directory_offset", self.directory_offset, self.directory_length),
            ("directory_copy_offset", self.directory_copy_offset, self.directory_length),
            ("file_length", self.file_length - HEADER_SIZE, HEADER_SIZE),
        ):
            need(offset >= low and offset % 64 == 0, "header", f"{field}: a part at {offset}")
            low = offset + length
            need(low <= self.file_length, "header", f"{field}: a part ends at {low}")

    def _open_sections(self, items, alignment):
        self.sections = []
        for k, item in enumerate(items):
            entry, place = get_object(item, f"sections[{k}]"), f"sections[{k}]"
            self.sections.append(
                Section(
                    get_count(entry, "offset", place),
                    get_count(entry, "length", place),
                    get_count(entry, "crc", place, 2**32 - 1),
                )
            )
        placed = []
        for k, section in enumerate(self.sections):
            if section.length == 0:
                need(section.offset == 0, "directory", f"sections[{k}] is empty but has an offset")
                continue
            need(
                HEADER_SIZE <= section.offset and section.offset + section.length <= self.checksums_offset,
                "section-bounds",
                f"sections[{k}]",
            )
            need(section.offset % alignment == 0, "section-alignment", f"sections[{k}] at {section.offset}")
            placed.append(section)
        placed.sort(key=lambda section: section.offset)
        for first, second in zip(placed, placed[1:]):
            need(first.offset + first.length <= second.offset, "section-overlap", f"at byte {second.offset}")
        blocks = sum(-(-section.length // BLOCK_SIZE) for section in self.sections)
        need(self.checksums_length == 4 * blocks, "header", f"checksums_length for {blocks} blocks")

    def _get_section(self, entry, key, place):
        index = get_count(entry, key, place)
        need(index < len(self.sections), "directory", f"{place}.{key}: there is no section {index}")
        return index

    def _need_size(self, section, length, place):
        found = self.sections[section].length
        need(found == length, "section-size", f"{place}: section {section} has {found} bytes, not {length}")

    def _get_table(self, entry, key, stored, place, entries, total):
        section = self._get_section(entry, key, place)
        width = "u32" if total < 2**32 else "u64"
        need(get_text(entry, stored, place) == width, "directory", f"{place}.{stored} must be {width}")
        place = f"{place}.{key}"
        table = Table(place, section, SIZES[width], total)
        self._need_size(section, product(entries, table.width, place=place), place)
        return table

    def _open_axis(self, k, item, seen):  # 8
        entry, place = get_object(item, f"axes[{k}]"), f"axes[{k}]"
        name = get_name(entry, place, seen)
        total = get_count(entry, "total", place)
        if entry.get("constant") is None:
            return Axis(name, total, None, self._get_table(entry, "offsets", "stored", place, self.samples + 1, total))
        need(entry.get("offsets") is None, "directory", f"{place} has both constant and offsets")
        constant = get_count(entry, "constant", place)
        expected = product(self.samples, constant, place=place)
        need(total == expected, "directory", f"{place}.total is {total}, not {expected}")
        return Axis(name, total, constant, None)

    @staticmethod
    def _reason_to_refuse(entry, place):  # 9.2
        if entry.get("encoding") is not None and get_text(entry, "encoding", place) != "raw":
            return f"unknown encoding {entry['encoding']!r}"
        if entry.get("requires") is not None and get_array(entry, "requires", place):
            return f"unknown requirement {entry['requires'][0]!r}"
        if get_text(entry, "dtype", place) not in SIZES:
            return f"unknown dtype {entry['dtype']!r}"
        if entry.get("stored") is not None and get_text(entry, "stored", place) not in SIZES:
            return f"unknown stored {entry['stored']!r}"
        return None

    def _open_attribute(self, entry, name, place):  # 9
        shape = get_array(entry, "shape", place)
        for dim in shape:
            known = dim in self._axis if type(dim) is str else is_integer(dim) and dim >= 0
            need(known, "directory", f"{place}.shape: {dim!r} is no extent and no axis")
        dtype = entry["dtype"]
        increment = entry.get("increment")
        if type(increment) is dict:
            increment = {"attribute": increment.get("attribute")}  # Other members are ignored.
            known = type(increment["attribute"]) is str
        else:
            rows = increment if type(increment) is list else [increment]
            known = all(row is None or type(row) is str for row in rows)
        need(known, "directory", f"{place}.increment is {increment!r}, which is of no known kind")
        attribute = Attribute(
            name=name,
            dtype=dtype,
            stored=entry.get("stored") or dtype,
            shape=shape,
            cat_dim=None if entry.get("cat_dim") is None else get_count(entry, "cat_dim", place),
            increment=increment,
            optional=get_flag(entry, "optional", place),
            hidden=get_flag(entry, "hidden", place),
            fixed=product(*(dim for dim in shape if is_integer(dim)), place=place),
        )
        product(attribute.fixed, SIZES[dtype], place=place)
        attribute.total = get_count(entry, "total", place)
        ragged = attribute.ragged()
        own = len(ragged) >= 2 or (len(ragged) == 1 and attribute.optional)  # 9.5
        if not own:  # 9.4
            count = self._axis[ragged[0]].total if ragged else self.samples
            expected = product(count, attribute.fixed, place=place)
            need(attribute.total == expected, "directory", f"{place}.total is {attribute.total}, not {expected}")
        attribute.data = self._get_section(entry, "data", place)
        if own:
            attribute.own = self._get_table(
                entry, "offsets", "offsets_stored", place, self.samples + 1, attribute.total
            )
        if dtype in STRINGS:  # 9.6
            length = self.sections[attribute.data].length
            attribute.bytes = self._get_table(entry, "bytes", "bytes_stored", place, self.samples + 1, length)
            if shape:
                attribute.ends = self._get_table(entry, "ends", "ends_stored", place, attribute.total, length)
        else:
            product(attribute.total, SIZES[dtype], place=place)
            self._need_size(attribute.data, product(attribute.total, SIZES[attribute.stored], place=place), place)
        if attribute.optional:  # 9.7
            attribute.validity = self._get_section(entry, "validity", place)
            self._need_size(attribute.validity, -(-self.samples // 8), f"{place}.validity")
        return attribute

    def _check_schema(self, attribute):
        def rule(condition, message):
            need(condition, "directory", f"attribute {attribute.name!r}: {message}")

        rule(len(attribute.shape) <= MAX_RANK, "too many dimensions")
        rule(attribute.cat_dim is None or attribute.cat_dim < len(attribute.shape), "cat_dim beyond the dimensions")
        pair = attribute.stored == attribute.dtype or attribute.stored in NARROW.get(attribute.dtype, ())
        rule(pair, f"{attribute.dtype} stored as {attribute.stored}")
        increment = attribute.increment  # 9.8
        rows = attribute.shape[0] if attribute.shape and is_integer(attribute.shape[0]) else None
        if increment is None:
            return
        if type(increment) is dict:
            name = increment["attribute"]
            rule(name in self._attribute or name in self.refused, "incremented by no attribute")
            if name in self.refused:
                return
            other = self._attribute[name]
            rule(
                other.dtype == attribute.dtype
                and other.dtype not in (*STRINGS, "bool")
                and not other.optional
                and not other.ragged()
                and (other.fixed == 1 or other.fixed == rows),
                f"{name!r} cannot be its increment",
            )
            return
        if type(increment) is list:
            rule(rows == len(increment), "increments for another number of rows")
        for axis in [increment] if type(increment) is str else increment:
            rule(axis is None or axis in self._axis, f"incremented by the axis {axis!r}")
        rule(attribute.dtype in INTEGERS, "only integers are incremented by axes")

    # -------------------------------------------------------------------------------------------------- access (13.2)

    def _entries(self, table, first, count):
        """Entries of a table, as Python integers."""
        raw = self._read(self.sections[table.section].offset + first * table.width, count * table.width)
        return [int(entry) for entry in np.frombuffer(raw, f"<u{table.width}")]

    def _range(self, table, i, attribute):
        start, end = self._entries(table, i, 2)
        need(start <= end <= table.total, "offsets", f"{table.place}: {start}..{end} of {table.total}", attribute)
        return start, end

    def axis_range(self, name, i, attribute=None):
        """Where sample `i` lies along an axis."""
        axis = self._axis[name]
        if axis.table is None:
            return i * axis.constant, (i + 1) * axis.constant
        return self._range(axis.table, i, attribute)

    def _bytes_of(self, section, start, length):
        return self._read(self.sections[section].offset + start, length) if length else b""

    def _is_absent(self, attribute, i):
        if not attribute.optional:
            return False
        return self._bytes_of(attribute.validity, i // 8, 1)[0] >> i % 8 & 1 == 0

    def value(self, name, i):
        """The Value of one attribute of sample `i`, or None where it is absent."""
        if not 0 <= i < self.samples:
            raise IndexError(f"there are {self.samples} samples, no sample {i}")
        if name in self.refused:
            raise FenceError("attribute-refused", f"{name!r}: {self.refused[name]}", name)
        attribute = self._attribute[name]
        if self._is_absent(attribute, i):
            return None
        ranges = {axis: self.axis_range(axis, i, name) for axis in attribute.ragged()}
        shape = tuple(dim if is_integer(dim) else ranges[dim][1] - ranges[dim][0] for dim in attribute.shape)
        count = math.prod(shape)
        if attribute.own:  # 9.5
            start, end = self._range(attribute.own, i, name)
            need(end - start == count, "offsets", f"own table of {name!r}: {end - start}, not {count}", name)
        elif ranges:
            (axis,) = ranges
            start = attribute.fixed * ranges[axis][0]
        else:
            start = attribute.fixed * i
        if attribute.dtype in STRINGS:
            return Value(attribute.dtype, shape, self._strings(attribute, i, start, count))
        size = SIZES[attribute.stored]
        raw = self._bytes_of(attribute.data, start * size, count * size)
        if attribute.dtype == "bool":
            need(not raw.translate(None, b"\x00\x01"), "bool", f"{name!r} of sample {i}", name)
        return Value(attribute.dtype, shape, widen(raw, attribute.stored, attribute.dtype))

    def _strings(self, attribute, i, start, count):  # 9.6
        low, high = self._range(attribute.bytes, i, attribute.name)
        ends = [high]
        if attribute.ends:
            ends = self._entries(attribute.ends, start, count) if count else []
            steps = [low, *ends]
            ascending = all(a <= b for a, b in zip(steps, ends))
            need(ascending and steps[-1] == high, "offsets", f"ends of {attribute.name!r}, sample {i}", attribute.name)
        strings = [self._bytes_of(attribute.data, a, b - a) for a, b in zip([low, *ends], ends)]
        if attribute.dtype == "utf8":
            for string in strings:
                try:
                    string.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise FenceError("utf8", f"{attribute.name!r} of sample {i}: {error}", attribute.name) from None
        return strings

    def sample(self, i):
        """All attributes of sample `i` that can be read, hidden ones included: name -> Value, or None where absent."""
        return {attribute.name: self.value(attribute.name, i) for attribute in self.attributes}

    # -------------------------------------------------------------------------------------------------- verify (13.3)

    def verify(self):
        """Every fault of the file, as a list of FenceError. Takes memory for one section at a time, and its time."""
        faults = []

        def check(condition, code, message, attribute=None):
            if not condition:
                faults.append(FenceError(code, message, attribute))

        checksums = self._read(self.checksums_offset, self.checksums_length)
        check(zlib.crc32(checksums) == self.checksums_crc, "checksum", "of the checksum table")
        expected = iter(struct.unpack(f"<{len(checksums) // 4}I", checksums))
        for k, section in enumerate(self.sections):
            data = self._bytes_of(k, 0, section.length)
            check(zlib.crc32(data) == section.crc, "checksum", f"of section {k}")
            for at in range(0, len(data), BLOCK_SIZE):
                check(zlib.crc32(data[at : at + BLOCK_SIZE]) == next(expected), "checksum", f"of section {k} at {at}")
        length = self.directory_length
        copy_at = self.file_length - HEADER_SIZE
        check(self._read(copy_at, HEADER_SIZE) == self._read(0, HEADER_SIZE), "copy", "of the header")
        same = self._read(self.directory_copy_offset, length) == self._read(self.directory_offset, length)
        check(same, "copy", "of the directory")
        parts = [(section.offset, section.length) for section in self.sections if section.length]
        parts += [(0, HEADER_SIZE), (copy_at, HEADER_SIZE), (self.checksums_offset, self.checksums_length)]
        parts += [(self.directory_offset, length), (self.directory_copy_offset, length)]
        at = 0
        for offset, part_length in sorted(parts):
            check(not any(self._read(at, max(offset - at, 0))), "padding", f"in bytes {at}..{offset}")
            at = max(at, offset + part_length)

        def check_table(table, attribute=None):
            raw = self._bytes_of(table.section, 0, self.sections[table.section].length)
            entries = np.frombuffer(raw, f"<u{table.width}")
            whole = entries[0] == 0 and entries[-1] == table.total and bool(np.all(entries[:-1] <= entries[1:]))
            check(whole, "offsets", table.place, attribute)

        for axis in self.axes:
            if axis.table:
                check_table(axis.table)
        for attribute in self.attributes:
            for table in (attribute.own, attribute.bytes):
                if table:
                    check_table(table, attribute.name)
            if attribute.optional and self.samples % 8:
                last = self._bytes_of(attribute.validity, self.samples // 8, 1)[0]
                check(last >> self.samples % 8 == 0, "padding", f"unused bits of {attribute.name!r}", attribute.name)
            if attribute.dtype == "bool":
                arena = self._bytes_of(attribute.data, 0, self.sections[attribute.data].length)
                check(not arena.translate(None, b"\x00\x01"), "bool", f"in {attribute.name!r}", attribute.name)
            for i in range(self.samples):
                # Reading checks the rest: own tables, ends, UTF-8.
                try:
                    if self.value(attribute.name, i) is None:
                        self._check_absent(attribute, i)
                except FenceError as fault:
                    faults.append(fault)
        return faults


    def _check_absent(self, attribute, i):  # 9.7
        for table in (attribute.own, attribute.bytes):
            if table:
                low, high = self._range(table, i, attribute.name)
                need(low == high, "offsets", f"{table.place}: {i} is absent but not empty", attribute.name)
        if attribute.ends and not attribute.own and attribute.fixed:
            ends = self._entries(attribute.ends, attribute.fixed * i, attribute.fixed)
            need(set(ends) == {high}, "offsets", f"ends of {attribute.name!r}: {i} is absent but not empty", attribute.name)


# -------------------------------------------------------------------------------------------------- the command line


def contents(reader):
    """What is in the file, in the form of the golden files' JSON (22)."""

    def show(value):
        if value is None:
            return None
        shown = {"dtype": value.dtype, "shape": list(value.shape)}
        if value.dtype in STRINGS:
            shown["strings"] = [string.hex() for string in value.data]
        else:
            shown["hex"] = value.data.hex()
        return shown

    def length(axis, i):
        start, end = reader.axis_range(axis, i)
        return end - start

    keys = ("dtype", "shape", "cat_dim", "increment", "optional", "hidden")
    return {
        "samples": reader.samples,
        "axes": {axis.name: [length(axis.name, i) for i in range(reader.samples)] for axis in reader.axes},
        "attributes": {a.name: {key: getattr(a, key) for key in keys} for a in reader.attributes},
        "refused": list(reader.refused),
        "metadata": reader.metadata,
        "shard": reader.shard,
        "base": reader.base,
        "values": [
            {name: show(value) for name, value in reader.sample(i).items()} for i in range(reader.samples)
        ],
    }


def main(arguments):
    paths = [argument for argument in arguments if argument != "--json"]
    if len(paths) != 1 or paths[0].startswith("-"):
        print("usage: reference_reader.py FILE [--json]", file=sys.stderr)
        return 2
    try:
        with Reader(paths[0]) as reader:
            faults = reader.verify()
            for fault in faults:
                print(f"{paths[0]}: {fault}", file=sys.stderr)
            if faults:
                return 1
            if "--json" in arguments:
                json.dump(contents(reader), sys.stdout)
                print()
                return 0
            print(f"{reader.samples} samples, {reader.file_length} bytes, version 1.{reader.minor}")
            for axis in reader.axes:
                print(f"axis {axis.name!r}: total {axis.total}")
            for attribute in reader.attributes:
                narrow = "" if attribute.stored == attribute.dtype else f", stored as {attribute.stored}"
                print(f"attribute {attribute.name!r}: {attribute.dtype} {attribute.shape}{narrow}")
            for name, reason in reader.refused.items():
                print(f"attribute {name!r}: cannot be read, {reason}")
            return 0
    except FenceError as fault:
        print(f"{paths[0]}: {fault}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{paths[0]}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
