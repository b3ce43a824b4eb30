"""The parts of the reference reader where a slip would show in no file: JSON and the bits of conversions."""

import json
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest
import reference_reader
from reference_reader import FenceError, parse_json, widen

SPEC = pathlib.Path(reference_reader.__file__).parent


@pytest.mark.parametrize(
    "text, code",
    [
        (b'{"a":1,"a":2}', "duplicate"),
        (b'{"a":[{"b":1,"\\u0062":2}]}', "duplicate"),
        (b"9223372036854775808", "json"),
        (b"-9223372036854775809", "json"),
        (b"9" * 5000, "json"),
        (b"1e400", "json"),
        (b"NaN", "json"),
        (b"-Infinity", "json"),
        (b"[" * 33 + b"]" * 33, "json"),
        (b"[" * 100000, "json"),
        (b'{"a":{"":' * 5000, "json"),
        (b"", "json"),
        (b"\xff", "json"),
        (b"\xef\xbb\xbf{}", "json"),
        (b"{} {}", "json"),
        (b"[1,]", "json"),
        (b"[01]", "json"),
        (b"[1.]", "json"),
        (b"{'a':1}", "json"),
        (b'"\\ud800"', "json"),
        (b'{"\\ud800":1}', "json"),
        (b'"\x01"', "json"),
        (b'"open', "json"),
        (b"// comment\n1", "json"),
    ],
)
def test_json_that_is_refused(text, code):
    with pytest.raises(FenceError) as error:
        parse_json(text)
    assert error.value.code == code


def test_json_that_is_read():
    assert parse_json(b"[9223372036854775807,-9223372036854775808]") == [2**63 - 1, -(2**63)]
    assert parse_json(b"[" * 32 + b"]" * 32)
    assert parse_json(b'"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ \\" {{"') == "[" * 34 + ' " {{'
    assert parse_json(b'"\\ud83d\\ude00"') == "\U0001f600"
    assert type(parse_json(b"-0")) is float and type(parse_json(b"1.0")) is float
    assert parse_json(b" \t\r\n{}\n") == {}


def quiet(bits, kind):
    """SPEC.md 10, with Python's own conversions: numbers by struct, NaN by hand."""
    mantissa_bits, exponent_bits, layout = {"f16": (10, 5, "<e"), "bf16": (7, 8, None), "f32": (23, 8, "<f")}[kind]
    mantissa = bits & ((1 << mantissa_bits) - 1)
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    sign = bits >> (mantissa_bits + exponent_bits)
    if exponent == (1 << exponent_bits) - 1 and mantissa:
        return sign << 63 | 0x7FF8 << 48 | mantissa << (52 - mantissa_bits)
    if kind == "bf16":
        value = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    else:
        value = struct.unpack(layout, bits.to_bytes((mantissa_bits + exponent_bits + 1) // 8, "little"))[0]
    return struct.unpack("<Q", struct.pack("<d", value))[0]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_every_half_float_is_widened_exactly(kind):
    raw = np.arange(65536, dtype="<u2").tobytes()
    found = np.frombuffer(widen(raw, kind, "f64"), "<u8")
    assert [int(bits) for bits in found] == [quiet(bits, kind) for bits in range(65536)]
    # By way of f32 it is the same.
    assert widen(widen(raw, kind, "f32"), "f32", "f64") == found.tobytes()


def test_single_floats_are_widened_exactly():
    random = np.random.default_rng(0).integers(0, 2**32, 20000, dtype="u8")
    bits = [0, 1, 0x80000000, 0x007FFFFF, 0x7F800000, 0x7F800001, 0xFFC00001, 0x7FC00000, *map(int, random)]
    found = np.frombuffer(widen(np.array(bits, "<u4").tobytes(), "f32", "f64"), "<u8")
    assert [int(b) for b in found] == [quiet(b, "f32") for b in bits]


@pytest.mark.parametrize("dtype", reference_reader.NARROW)
def test_integers_are_widened_exactly(dtype):
    for stored in set(reference_reader.NARROW[dtype]) - {"f16", "bf16", "f32"}:
        info = np.iinfo(reference_reader.numpy_type(stored))
        values = [0, 1, info.min, info.max]
        raw = np.array(values, info.dtype).tobytes()
        found = np.frombuffer(widen(raw, stored, dtype), reference_reader.numpy_type(dtype))
        assert found.tolist() == values


def test_it_imports_nothing_but_numpy_and_the_standard_library():
    program = "import sys, reference_reader; print('\\n'.join({name.partition('.')[0] for name in sys.modules}))"
    bare = "import sys, numpy; print('\\n'.join({name.partition('.')[0] for name in sys.modules}))"

    def modules(text):
        return set(subprocess.run([sys.executable, "-c", text], cwd=SPEC, capture_output=True, text=True).stdout.split())

    assert modules(program) - modules(bare) - set(sys.stdlib_module_names) == {"reference_reader"}


def test_command_line(tmp_path):
    from second_writer import main

    main(tmp_path)

    def run(*arguments):
        command = [sys.executable, str(SPEC / "reference_reader.py"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")

    good = run(tmp_path / "plain.fence", "--json")
    assert good.returncode == 0
    assert json.loads(good.stdout) == json.loads((tmp_path / "plain.json").read_text(encoding="utf-8"))
    assert "5 samples" in run(tmp_path / "plain.fence").stdout
    (tmp_path / "bad.fence").write_bytes(b"\x89FNCP\n\x1a")
    bad = run(tmp_path / "bad.fence")
    assert (bad.returncode, bad.stdout) == (1, "") and "magic" in bad.stderr
    assert run(tmp_path / "missing.fence").returncode == 2
    assert run().returncode == 2
