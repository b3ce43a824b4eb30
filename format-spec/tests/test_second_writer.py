"""What a writer made from the specification alone writes, the reference reader reads."""

import json

import pytest
from reference_reader import FenceError, Reader, contents
from second_writer import CASES, METADATA, File, pack


@pytest.mark.parametrize("name", CASES)
def test_values_come_back(name):
    file, options = CASES[name]()
    reader = Reader(file.to_bytes(**options))
    assert reader.verify() == []
    assert contents(reader) == file.expected(options.get("metadata"))


def test_a_path_and_bytes_are_the_same(tmp_path):
    file, options = CASES["odd"]()
    path = tmp_path / "odd.fence"
    path.write_bytes(file.to_bytes(**options))
    with Reader(path) as reader:
        assert reader.verify() == []
        assert contents(reader) == contents(Reader(path.read_bytes()))


def test_metadata_survives():
    file, options = CASES["odd"]()
    found = Reader(file.to_bytes(**options)).metadata
    assert json.dumps(found) == json.dumps(METADATA)


def test_any_flipped_bit_is_found():
    file = File(
        [{"name": "x", "dtype": "u8", "shape": ["n"]}, {"name": "s", "dtype": "utf8", "shape": [], "optional": True}]
    )
    file.push({"x": ((3,), b"\1\2\3"), "s": ((), [b"abc"])})
    file.push({"x": ((1,), b"\4"), "s": None})
    data = file.to_bytes()
    for at in range(len(data)):
        bad = bytearray(data)
        bad[at] ^= 1 << at % 8
        try:
            faults = Reader(bad).verify()
        except FenceError:
            continue
        assert faults, f"a flipped bit in byte {at} is not found"


def test_every_truncation_is_refused():
    file, options = CASES["nothing"]()
    data = file.to_bytes(**options)
    for length in range(len(data)):
        with pytest.raises(FenceError) as error:
            Reader(data[:length])
        assert error.value.code == ("magic" if length < 8 else "truncated")


def test_the_writer_refuses_what_does_not_fit():
    file = File([{"name": "x", "dtype": "f32", "stored": "u8", "shape": []}])
    file.push({"x": ((), pack("f32", -0.0))})
    with pytest.raises(AssertionError):
        file.to_bytes()
