"""Writing: what values are taken for, what is refused, and that nothing but finish leaves a file."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import graphs, same, write

import fencepost
from fencepost import Attribute, Schema


def roundtrip(tmp_path, sample: dict, schema: Schema | None = None) -> dict:
    path = tmp_path / "one.fence"
    with fencepost.Writer(path, schema) as writer:
        writer.append(sample)
    return fencepost.open(path).read(0)


@pytest.mark.parametrize(
    "dtype", ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
)  # fmt: skip
def test_every_dtype_of_numpy(tmp_path, dtype):
    values = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    same(roundtrip(tmp_path, {"x": values}), {"x": values})


def test_arrays_that_lie_otherwise_are_copied(tmp_path):
    base = np.arange(24, dtype=np.int32).reshape(4, 6)
    sample = {"t": base.T, "step": base[:, ::2], "back": base[::-1], "big": base.astype(">i4"), "f": np.asfortranarray(base)}
    expected = {name: np.ascontiguousarray(value, dtype="<i4") for name, value in sample.items()}
    same(roundtrip(tmp_path, sample), expected)


def test_python_values(tmp_path):
    found = roundtrip(
        tmp_path,
        {
            "i": 7, "f": 0.5, "b": True, "c": 1 + 2j, "text": "grüß", "raw": b"\0\xff\0", "words": ["a", "", "ß"],
            "blobs": [b"", b"\0"], "table": [["a", "b"], ["c", "d"]], "numbers": [1, 2, 3], "scalar": np.float32(2.5),
        },
    )  # fmt: skip
    same(
        found,
        {
            "i": np.array(7), "f": np.array(0.5), "b": np.array(True), "c": np.array(1 + 2j), "text": "grüß", "raw": b"\0\xff\0",
            "words": ["a", "", "ß"], "blobs": [b"", b"\0"], "table": [["a", "b"], ["c", "d"]], "numbers": np.array([1, 2, 3]),
            "scalar": np.array(2.5, np.float32),
        },
    )  # fmt: skip


def test_numbers_take_the_declared_dtype_unless_that_would_change_them(tmp_path):
    schema = Schema([Attribute("y", "f32", []), Attribute("k", "u8", []), Attribute("l", "i16", ["n"])])
    found = roundtrip(tmp_path, {"y": 1, "k": 255, "l": [1, -2]}, schema)
    same(found, {"y": np.array(1, np.float32), "k": np.array(255, np.uint8), "l": np.array([1, -2], np.int16)})
    for sample in [{"k": 256}, {"k": -1}, {"k": 1.5}, {"l": [1.5]}, {"l": [70000]}, {"k": True}]:
        with pytest.raises((ValueError, TypeError), match="expected"):
            roundtrip(tmp_path, {"y": 0.0, "k": 0, "l": []} | sample, schema)


def test_bits_of_types_that_numpy_has_not(tmp_path):
    schema = Schema([Attribute("b", "bf16", ["n"]), Attribute("e", "f8e4m3", ["n"]), Attribute("g", "f8e5m2", ["n"])])
    sample = {"b": np.array([0x3F80, 0x7FC1], np.uint16), "e": np.array([1, 255], np.uint8), "g": np.array([0, 254], np.uint8)}
    same(roundtrip(tmp_path, sample, schema), sample)
    assert [a.dtype for a in schema.attributes] == ["bf16", "f8e4m3", "f8e5m2"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"x": object()}, TypeError),
        ({"x": []}, TypeError),
        ({"x": ["a", None]}, TypeError),
        ({"x": ["a", b"b"]}, TypeError),
        ({"x": [[1], [2, 3]]}, TypeError),
        ({"x": np.array([b"a\0"])}, TypeError),
        ({"x": np.array(["2020-01-01"], "M8[D]")}, TypeError),
        ({"x": np.zeros(2, "f8,i4")}, TypeError),
        ({1: np.zeros(2)}, TypeError),
        ([("x", 1)], TypeError),
    ],
)
def test_what_cannot_be_written_is_refused_and_the_writer_goes_on(tmp_path, value, error):
    path = tmp_path / "a.fence"
    with fencepost.Writer(path) as writer:
        with pytest.raises(error, match="expected|dtype|no dtype"):
            writer.append(value)
        writer.append({"x": np.zeros(3)})
    assert len(fencepost.open(path)) == 1


def test_a_sample_that_does_not_fit_is_named(tmp_path):
    with fencepost.Writer(tmp_path / "a.fence") as writer:
        writer.append({"x": np.zeros((3, 2), np.float32)})
        with pytest.raises(fencepost.SampleError, match=r"sample 1, attribute \"x\": expected f32") as caught:
            writer.append({"x": np.zeros((3, 2))})
        assert (caught.value.sample, caught.value.attribute) == (1, "x")
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, fencepost.Error)
        with pytest.raises(fencepost.SampleError):
            writer.append({})
        with pytest.raises(fencepost.SampleError):
            writer.append({"x": np.zeros((3, 2), np.float32), "more": 1})
        assert len(writer) == 1


def test_declared_indices_are_checked(tmp_path):
    schema = Schema(
        [Attribute("x", "f32", ["nodes", 1]), Attribute("edge_index", "i64", [2, "edges"], increment="nodes")]
    )
    bad = {"x": np.zeros((2, 1), np.float32), "edge_index": np.array([[0], [2]])}
    with fencepost.Writer(tmp_path / "a.fence", schema) as writer, pytest.raises(fencepost.SampleError):
        writer.append(bad)
    with fencepost.Writer(tmp_path / "a.fence", schema, check_indices=False) as writer:
        writer.append(bad)
    assert len(fencepost.open(tmp_path / "a.fence")) == 1


def test_optional_attributes_axes_and_metadata(tmp_path):
    schema = Schema([Attribute("y", "f64", [2], optional=True), Attribute("s", "utf8", ["n"], optional=True)], axes=["nodes"])
    path = tmp_path / "a.fence"
    metadata = {"name": "ü", "nested": {"list": [1, 2.5, None, True]}}
    with fencepost.Writer(path, schema, metadata=metadata) as writer:
        writer.append({"y": np.zeros(2), "s": None}, axes={"nodes": 3, "n": 0})
        writer.append({"s": ["a", "b"]}, axes={"nodes": 0})
    dataset = fencepost.open(path)
    assert dataset.metadata == metadata
    assert dataset[0]["s"] is None and dataset[1]["y"] is None and dataset[1]["s"] == ["a", "b"]
    assert dataset.axes_of(0) == {"nodes": 3, "n": 0} and dataset.axes_of(1) == {"nodes": 0, "n": 2}
    assert dataset.schema == schema and dataset.schema["y"].optional


def test_metadata_that_json_has_not(tmp_path):
    for metadata in [{"a": float("nan")}, {"a": object()}, [1]]:
        with pytest.raises((ValueError, TypeError)):
            fencepost.Writer(tmp_path / "a.fence", metadata=metadata)


def test_nothing_is_there_before_finish_and_nothing_after_an_exception(tmp_path):
    path = tmp_path / "a.fence"
    write(path, graphs(2))
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="stop"), fencepost.Writer(path) as writer:
        writer.append({"x": np.zeros(3)})
        raise RuntimeError("stop")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    writer = fencepost.Writer(path)
    writer.append({"x": np.zeros(3)})
    assert path.read_bytes() == before
    summary = writer.finish()
    assert (summary.samples, summary.path, summary.file_bytes) == (1, path, path.stat().st_size)
    for call in [writer.finish, lambda: writer.append({"x": np.zeros(3)})]:
        with pytest.raises(fencepost.WriterError, match="finished"):
            call()
    writer.abort()  # of no effect
    assert len(fencepost.open(path)) == 1


def test_overwriting_is_asked_for(tmp_path, path):
    before = path.read_bytes()
    with pytest.raises(fencepost.ExistsError) as caught:
        fencepost.Writer(path, overwrite=False)
    assert isinstance(caught.value, FileExistsError) and str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_no_samples_are_a_valid_file(tmp_path):
    with fencepost.Writer(tmp_path / "none.fence"):
        pass
    dataset = fencepost.open(tmp_path / "none.fence")
    assert len(dataset) == 0 and dataset.verify().ok and list(dataset) == []


def test_the_same_samples_are_the_same_bytes(tmp_path, samples):
    assert write(tmp_path / "a", samples).read_bytes() == write(tmp_path / "b", iter(samples)).read_bytes()


def test_any_mapping_is_a_sample(tmp_path):
    from types import MappingProxyType

    with fencepost.Writer(tmp_path / "a.fence") as writer:
        writer.append(MappingProxyType({"x": np.arange(3)}))
    same(fencepost.open(tmp_path / "a.fence").read(0), {"x": np.arange(3)})


def test_progress_goes_to_stderr(tmp_path):
    code = (
        "import sys, fencepost, numpy as np\n"
        "with fencepost.Writer(sys.argv[1], progress=True) as w: w.extend([{'x': np.zeros(2)}] * 300)\n"
    )
    for without in ["", "import sys; sys.modules['tqdm'] = None; sys.modules['tqdm.auto'] = None\n"]:
        run = subprocess.run([sys.executable, "-c", without + code, tmp_path / "a"], capture_output=True, text=True, check=True)
        assert run.stdout == "" and "300" in run.stderr and "writing a" in run.stderr


def test_schemas(tmp_path):
    attribute = Attribute("e", np.dtype("i4"), [2, "edges"], cat_dim=-1, increment=["a", None], optional=True)
    assert (attribute.dtype, attribute.shape, attribute.cat_dim, attribute.increment) == ("i32", (2, "edges"), 1, ["a", None])
    assert Attribute("x", float, []).dtype == "f64" and Attribute("x", str, []).dtype == "utf8"
    assert Attribute("x", bytes, []).dtype == "bytes" and Attribute("x", "float32", ["n"]).cat_dim == 0
    assert Attribute("x", "f32", ["n"], cat_dim=None).cat_dim is None
    assert Attribute("h", "i64", ["n"], increment={"attribute": "k"}).increment == {"attribute": "k"}
    schema = Schema([attribute], axes=["a"])
    names = {"Attribute": Attribute, "Schema": Schema}
    assert eval(repr(schema), names) == schema and hash(eval(repr(schema), names)) == hash(schema)
    assert json.loads(schema.to_json())["axes"] == ["a", "edges"]
    assert schema.axes == ["a", "edges"] and "e" in schema and len(schema) == 1
    with pytest.raises(KeyError, match="no attribute named"):
        schema["x"]
    for wrong in ["f128", "i4", "f8", object(), "datetime64[s]", 3]:
        with pytest.raises(TypeError, match="expected one of bool"):
            Attribute("x", wrong, [])
    with pytest.raises(fencepost.SchemaError, match="taken by another"):
        Schema([attribute, attribute])
    with pytest.raises(ValueError, match="cat_dim"):
        Attribute("x", "f32", ["n"], cat_dim=-2)
    with pytest.raises(TypeError, match="shape"):
        Attribute("x", "f32", [-1])


def test_narrow_storage_gives_the_same_values(tmp_path):
    samples = [
        {"id": np.array([1, 200 * i]), "flag": np.array([[0.0, 1.0]], np.float32), "half": np.float64(i / 2)}
        for i in range(300)
    ]
    plain = fencepost.open(write(tmp_path / "plain.fence", samples))
    narrow = fencepost.open(write(tmp_path / "narrow.fence", samples, narrow=True))
    assert {a.name: a.stored for a in narrow.schema.attributes} == {"id": "u16", "flag": "u8", "half": "f16"}
    assert {a.name: a.dtype for a in narrow.schema.attributes} == {a.name: a.dtype for a in plain.schema.attributes}
    for index in (0, 7, 299):
        same(narrow[index], plain[index])
        same(narrow.read(index), plain.read(index))
    some = [5, 299, 5]
    for name in ("id", "flag", "half"):
        one, other = narrow.batch(some)[name], plain.batch(some)[name]
        assert one.dtype == other.dtype and np.array_equal(one, other), name
        assert np.array_equal(narrow[name], plain[name])


@pytest.mark.parametrize("kind", ["bool_", "int16", "uint64", "float16", "float32", "float64", "complex64", "complex128"])
def test_numpy_scalars_have_their_own_dtype(tmp_path, kind):
    value = np.dtype(kind).type(1)
    [name, sample] = "v", {"v": value}
    same(fencepost.open(write(tmp_path / "a.fence", [sample]))[0], {name: np.asarray(value)})


def test_numbers_of_derived_classes_are_those_they_derive_from(tmp_path):
    class Degrees(float):
        pass

    class Count(int):
        pass

    written = fencepost.open(write(tmp_path / "a.fence", [{"a": Degrees(1.5), "b": Count(2)}]))
    same(written[0], {"a": np.asarray(1.5), "b": np.asarray(2)})


def test_a_list_of_no_strings_is_one_of_bytes_too(tmp_path):
    schema = fencepost.Schema([fencepost.Attribute("b", "bytes", ["n", 2])])
    with fencepost.Writer(tmp_path / "a.fence", schema) as writer:
        writer.append({"b": np.empty((0, 2), object)})
        writer.append({"b": np.array([[b"a", b""]], object)})
    dataset = fencepost.open(tmp_path / "a.fence")
    assert dataset[0]["b"] == [] and dataset[1]["b"] == [[b"a", b""]]
