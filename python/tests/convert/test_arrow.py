"""Arrow, IPC and Parquet, by pyarrow: both ways, what is copied and what is not, and tables of strangers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import BACKINGS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fencepost
from fencepost import Attribute, Schema, Writer
from fencepost.convert import SourceError, from_arrow, from_parquet, to_arrow, to_ipc, to_parquet

from .support import equal, graphs, holds, refused

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset  # noqa: E402
import pyarrow.feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

NUMBERS = {
    "bool": "?", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f16": "f2",
    "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16", "bf16": "u2", "f8e4m3": "u1", "f8e5m2": "u1",
}  # fmt: skip
AXES = ["nodes", "edges", "rows"]


# Any file -------------------------------------------------------------------------------------------------------------


@st.composite
def files(draw: Any) -> tuple[Schema, list[tuple[dict[str, Any], dict[str, int]]]]:
    """A schema of any dtypes and shapes, and samples of it with random bits."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    attributes = []
    for index in range(draw(st.integers(1, 4))):
        dtype = draw(st.sampled_from([*NUMBERS, "utf8", "bytes"]))
        shape = draw(st.lists(st.sampled_from([*AXES, 0, 1, 2, 3]), max_size=3))
        optional = draw(st.booleans())
        increment = "nodes" if dtype == "i64" and shape and draw(st.booleans()) else None
        attributes.append(Attribute(f"a{index}", dtype, shape, optional=optional, increment=increment))
    if draw(st.booleans()):
        attributes += [Attribute("i", "i32", ["rows"], increment={"attribute": "h"}), Attribute("h", "i32", [], hidden=True)]
    samples = []
    for _ in range(draw(st.integers(0, 5))):
        axes = {axis: int(rng.integers(0, 4)) for axis in AXES}
        values = {}
        for item in attributes:
            if item.optional and rng.random() < 0.5:
                continue
            shape = [axes[dim] if isinstance(dim, str) else dim for dim in item.shape]
            values[item.name] = _random(rng, item.dtype, shape)
        samples.append((values, axes))
    return Schema(attributes, axes=AXES), samples


def _random(rng: np.random.Generator, dtype: str, shape: list[int]) -> Any:
    if dtype in NUMBERS:
        kind = np.dtype(NUMBERS[dtype])
        bits = rng.integers(0, 2 if dtype == "bool" else 256, int(np.prod(shape, dtype=int)) * kind.itemsize, dtype=np.uint8)
        return bits.view(kind).reshape(shape)
    words = ["", "a", "é€", "long " * 5] if dtype == "utf8" else [b"", b"\0", b"\xff\xfe"]
    if not shape:
        return words[rng.integers(len(words))]
    array = np.empty(shape, object)
    for place in np.ndindex(*shape):
        array[place] = words[rng.integers(len(words))]
    return array


def write(path: Path, schema: Schema, samples: Any) -> fencepost.Dataset:
    with Writer(path, schema, metadata={"any": [1, "two"]}, check_indices=False) as writer:
        for values, axes in samples:
            writer.append(values, axes=axes)
    return fencepost.open(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files())
def test_any_file_comes_back_byte_by_byte(tmp_path, case):
    dataset = write(tmp_path / "a.fence", *case)
    expected = (tmp_path / "a.fence").read_bytes()
    table = to_arrow(dataset)
    table.validate(full=True)
    from_arrow(table, tmp_path / "b.fence")
    assert (tmp_path / "b.fence").read_bytes() == expected
    to_parquet(dataset, tmp_path / "a.parquet")
    from_parquet(tmp_path / "a.parquet", tmp_path / "b.fence")
    assert (tmp_path / "b.fence").read_bytes() == expected
    to_ipc(dataset, tmp_path / "a.arrow")
    from_arrow(tmp_path / "a.arrow", tmp_path / "b.fence")
    assert (tmp_path / "b.fence").read_bytes() == expected


@pytest.mark.parametrize("backing", BACKINGS)
@pytest.mark.parametrize("narrow", [False, True])
def test_values_as_arrow_sees_them(tmp_path, backing, narrow):
    """What pyarrow itself makes of the columns, for whole files and views."""
    samples = graphs(40)
    with Writer(tmp_path / "a.fence", narrow=narrow) as writer:
        writer.extend(samples)
    dataset = fencepost.open(tmp_path / "a.fence", backing)
    order = [7, 3, 3, 39, 0]
    for view, rows in [(dataset, range(40)), (dataset[5:25], range(5, 25)), (dataset[order], order)]:
        found = to_arrow(view).to_pylist()
        assert len(found) == len(rows)
        for row, index in zip(found, rows, strict=True):
            assert row.pop("num_nodes", 0) == len(samples[index]["x"])
            assert row == {name: value if isinstance(value, str) else value.tolist() for name, value in samples[index].items()}
    assert to_arrow(dataset.project(["y", "z"])).column_names == ["z", "y"]
    assert to_arrow(dataset.project(["edge_index"])).column_names == ["edge_index", "num_nodes"]


def test_what_is_not_copied(tmp_path):
    schema = Schema(
        [
            Attribute("x", "f32", ["nodes", 3]), Attribute("edge_index", "i64", [2, "edges"]), Attribute("pair", "f64", ["nodes", "nodes"]),
            Attribute("y", "f64", [2]), Attribute("c", "c64", ["nodes"]), Attribute("b", "bool", ["nodes"]), Attribute("o", "i32", [], optional=True),
        ]
    )  # fmt: skip
    rng = np.random.default_rng(0)
    with Writer(tmp_path / "a.fence", schema, check_indices=False) as writer:
        for n in range(1, 30):
            writer.append(
                {
                    "x": rng.random((n, 3), dtype=np.float32), "edge_index": rng.integers(0, n, (2, 2 * n)), "pair": rng.random((n, n)),
                    "y": rng.random(2), "c": rng.random(n).astype(np.complex64), "b": rng.random(n) < 0.5, "o": np.int32(n),
                }
            )  # fmt: skip
    for backing in ("mapped", "resident"):
        dataset = fencepost.open(tmp_path / "a.fence", backing)
        table = to_arrow(dataset)
        borrowed = set()
        for name in table.column_names:
            leaf = table.column(name).chunk(0)
            while isinstance(leaf, (pa.LargeListArray, pa.FixedSizeListArray)):
                leaf = leaf.values
            if name != "o" and leaf.buffers()[1].address == dataset.arena(name).__array_interface__["data"][0]:
                borrowed.add(name)
        assert borrowed == {"x", "edge_index", "pair", "y", "c"}
        expected = dataset[28]["pair"].tolist()
        del dataset
        assert table.column("pair")[28].as_py() == expected  # the table keeps the file open


def test_streams_in_batches(tmp_path, monkeypatch):
    samples = graphs(300)
    with Writer(tmp_path / "a.fence") as writer:
        writer.extend(samples)
    dataset = fencepost.open(tmp_path / "a.fence")
    monkeypatch.setattr("fencepost.convert._arrow_out.BYTES", dataset.nbytes // 7)
    monkeypatch.setattr("fencepost.convert._arrow_in.ROWS", 11)
    to_parquet(dataset, tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 8
    holds(from_parquet(tmp_path / "a.parquet", tmp_path / "b.fence"), samples)
    to_ipc(dataset, tmp_path / "a.arrow")
    assert pa.ipc.open_file(tmp_path / "a.arrow").num_record_batches == 8
    holds(from_arrow(tmp_path / "a.arrow", tmp_path / "b.fence"), samples)


# Tables of strangers --------------------------------------------------------------------------------------------------


def table(samples: list[dict[str, Any]], **types: Any) -> Any:
    columns = {}
    for name, first in samples[0].items():
        kind = types.get(name) or (pa.string() if isinstance(first, str) else pa.from_numpy_dtype(first.dtype))
        if name not in types:
            for _ in range(getattr(first, "ndim", 0)):
                kind = pa.list_(kind)
        columns[name] = pa.array([value if isinstance(value, str) else value.tolist() for value in (s[name] for s in samples)], kind)
    return pa.table(columns)


def full(count: int) -> list[dict[str, Any]]:
    """Graphs whose lists tell all their extents."""
    return [sample for sample in graphs(3 * count) if len(sample["x"])][:count]


def test_plain_lists(tmp_path):
    samples = full(40)
    dataset = from_arrow(table(samples), tmp_path / "a.fence")
    holds(dataset, samples)
    assert dataset.schema["x"].shape == ("x", 3) and dataset.schema["edge_index"].shape == (2, "edges")
    assert dataset.schema["edge_index"].increment == "nodes"


def test_sources_of_all_kinds(tmp_path):
    samples = full(30)
    whole = table(samples, x=pa.large_list(pa.list_(pa.float32(), 3)), name=pa.dictionary(pa.int32(), pa.string()))
    pq.write_table(whole, tmp_path / "a.parquet", row_group_size=7)
    with pa.ipc.new_stream(tmp_path / "stream.arrow", whole.schema) as out:
        out.write_table(whole, max_chunksize=4)
    pa.feather.write_feather(whole, tmp_path / "a.feather")

    class Foreign:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return whole.__arrow_c_stream__(requested_schema)

    sources: list[Any] = [
        whole, whole.combine_chunks().to_batches()[0], pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(3)),
        pyarrow.dataset.dataset(tmp_path / "a.parquet"), Foreign(), tmp_path / "stream.arrow", str(tmp_path / "a.feather"),
        pa.concat_tables([whole.slice(0, 11), whole.slice(11)]),
    ]  # fmt: skip
    for source in sources:
        holds(from_arrow(source, tmp_path / "a.fence"), samples)
    holds(from_arrow(whole.slice(9, 13), tmp_path / "a.fence"), samples[9:22])
    holds(from_arrow(Foreign(), tmp_path / "a.fence", optional=["y"]), samples)
    with pytest.raises(TypeError, match="schema instead"):
        from_arrow(pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches()), tmp_path / "a.fence", optional=["y"])
    with pytest.raises(TypeError, match="expected something of Arrow or a path, found list"):
        from_arrow([], tmp_path / "a.fence")


def test_nulls_are_absent_values(tmp_path):
    rows = {
        "a": pa.array([None, 1, None, 3], pa.int16()),
        "b": pa.array([[1.0], None, [], [2.0, 3.0]], pa.list_(pa.float64())),
        "c": pa.array([None, [1, 2], [3, 4], None], pa.list_(pa.int8(), 2)),
        "s": pa.array([None, "x", None, ""], pa.string()),
        "z": pa.array([0, 1, 2, 3], pa.uint8()),
    }
    dataset = from_arrow(pa.table(rows), tmp_path / "a.fence", optional=["a", "b", "c", "s"])
    found = [
        {name: value if value is None or isinstance(value, str) else value.tolist() for name, value in sample.items()} for sample in dataset
    ]
    assert found == pa.table(rows).to_pylist()
    assert [item.name for item in dataset.schema.attributes if item.optional] == ["a", "b", "c", "s"]
    back = to_arrow(dataset).select(list(rows)).to_pylist()
    assert back == found
    refused(lambda out: from_arrow(pa.table(rows), out), tmp_path, SourceError, r"Table: row \d: \w: expected .* found no value.*optional=")


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pa.array([[1], [2, None]]), "row 1: v: expected values throughout, found a null among them"),
        (pa.array([[[1]], [None]]), "row 1: v: expected values throughout"),
        (pa.array([[[1, 2]], [[1, 2], [3]]]), r"row 1: v: expected lists of one length, found lists of \[1, 2\] values"),
        (pa.array([[[1, 2]], [[1, 2, 3]]]), r"row 1: v: expected i64 of shape \[v, 2\]"),
        (pa.array([{"a": 1}]), "v: expected numbers, strings or lists of them, found struct.*flatten"),
        (pa.array([1, 2], pa.timestamp("s")), "v: expected numbers.*timestamp.*cast it"),
        (pa.array([[1]], pa.list_(pa.date32())), "v: expected numbers.*date32"),
        (pa.array([], pa.int64()), "at least one record"),
    ],
)
def test_columns_that_files_have_not(tmp_path, column, match):
    refused(lambda out: from_arrow(pa.table({"v": column}), out), tmp_path, SourceError, match)


def test_skip_and_what_was_changed_since(tmp_path):
    samples = graphs(20)
    with Writer(tmp_path / "a.fence") as writer:
        writer.extend(samples)
    whole = to_arrow(tmp_path / "a.fence")
    less = [{name: value for name, value in sample.items() if name not in ("name", "x")} for sample in samples]
    holds(from_arrow(whole.drop_columns(["name", "x", "num_nodes"]), tmp_path / "b.fence"), less)
    holds(from_arrow(whole, tmp_path / "b.fence", skip=["name", "x", "num_nodes"]), less)
    assert whole.schema.metadata and from_arrow(whole, tmp_path / "b.fence", metadata={"a": 1}).metadata == {"a": 1}
    narrowed = whole.set_column(whole.column_names.index("y"), "y", whole.column("y").cast(pa.float32()))
    refused(lambda out: from_arrow(narrowed, out), tmp_path, SourceError, "row 0: y: expected f64.*found f32")
    junk = whole.replace_schema_metadata({"fencepost": "{no json"})
    assert len(from_arrow(junk, tmp_path / "b.fence")) == 20


def test_metadata_that_lies(tmp_path):
    """Whatever a table says of its own layout, what does not fit is an error, and nothing is taken for what it is not."""
    schema = Schema([Attribute("a", "f32", ["n", "m"]), Attribute("c", "c64", ["n"])], axes=["n", "m", "free"])
    with Writer(tmp_path / "a.fence", schema) as writer:
        for n in range(3):
            writer.append({"a": np.ones((n, 2), np.float32), "c": np.ones(n, np.complex64)}, axes={"m": 2, "free": n})
    whole = to_arrow(tmp_path / "a.fence")
    assert whole.column_names == ["a", "c", "num_m", "num_free"]

    def changed(name: str, column: Any) -> Any:
        return whole.set_column(whole.column_names.index(name), name, column)

    for source, match in [
        (changed("num_m", pa.array([2, None, 2])), "row 1: num_m: expected the length of an axis, found a null"),
        (changed("num_m", pa.array([2, -1, 2])), "row 1: num_m: expected the length of an axis, found -1"),
        (changed("num_m", pa.array([[2], [2], [2]])), r"row 0: num_m: expected the length of an axis, found \[2\]"),
        (changed("num_m", pa.array([2, 3, 2])), "row 1: "),
        (changed("a", pa.array([[], [1.0, 1.0], [1.0]], pa.list_(pa.float32()))), r"row 1: a: expected f32 of shape .*found f32 of shape \[2\]"),
        (changed("a", pa.array([None, [[1.0, 1.0]], []], pa.list_(pa.list_(pa.float32())))), "row 0: a: .*no value"),
        (changed("c", pa.array([[], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]], pa.list_(pa.float32()))), "row 0: c: expected c64.*found f32"),
        (changed("c", pa.array([1, 2, 3])), "row 0: c: expected c64"),
    ]:
        refused(lambda out, source=source: from_arrow(source, out), tmp_path, SourceError, match)
    good = whole.schema.metadata[b"fencepost"]
    for text in [b"[]", b"{}", b"3", b'{"schema": []}', good.replace(b'"f32"', b'"f99"'), good.replace(b'["n","m"]', b'3'), b"[" * 10**5]:
        source = whole.replace_schema_metadata({"fencepost": text})
        try:
            assert len(from_arrow(source, tmp_path / "b.fence")) == 3
        except SourceError:
            pass


def test_a_given_schema(tmp_path):
    """Also one that a writer inferred, which asks for the number of nodes and for increments by the greatest value."""
    samples = [{"x": np.ones((n, 2)), "edge_index": np.zeros((2, n), int), "my_batch": np.arange(n)} for n in range(1, 9)]
    with Writer(tmp_path / "a.fence") as writer:
        writer.extend(samples)
    dataset = fencepost.open(tmp_path / "a.fence")
    again = from_arrow(table(samples), tmp_path / "b.fence", schema=dataset.schema)
    assert (tmp_path / "a.fence").read_bytes() == (tmp_path / "b.fence").read_bytes()
    for name in ("edge_index", "my_batch"):
        equal(again.batch([1, 2])[name], dataset.batch([1, 2])[name], name)


# Files that are damaged -----------------------------------------------------------------------------------------------


def test_folders_of_parquet(tmp_path):
    samples = full(30)
    (tmp_path / "set").mkdir()
    for number, rows in enumerate([samples[:5], samples[5:6], samples[6:]]):
        pq.write_table(table(rows), tmp_path / "set" / f"part-{number * 5}.parquet")
    holds(from_parquet(tmp_path / "set", tmp_path / "a.fence"), samples)
    holds(from_parquet([tmp_path / "set" / f"part-{number}.parquet" for number in (5, 10)], tmp_path / "a.fence"), samples[5:])
    pq.write_table(table(samples[:3]).drop_columns(["y"]), tmp_path / "set" / "part-7.parquet")
    error = refused(lambda out: from_parquet(tmp_path / "set", out), tmp_path, SourceError, "expected the columns of .*part-0.parquet")
    assert error.path.endswith("part-7.parquet")
    pq.write_table(table([samples[0] | {"x": np.ones((1, 2), np.float32)}]), tmp_path / "set" / "part-7.parquet")
    error = refused(lambda out: from_parquet(tmp_path / "set", out), tmp_path, SourceError, r"row 0: x: expected f32 of shape \[x, 3\]")
    assert error.path.endswith("part-7.parquet")


def test_damaged_files(tmp_path):
    samples = graphs(500)
    with Writer(tmp_path / "a.fence") as writer:
        writer.extend(samples)
    to_parquet(tmp_path / "a.fence", tmp_path / "a.parquet")
    to_ipc(tmp_path / "a.fence", tmp_path / "a.arrow")
    for name, function in (("a.parquet", from_parquet), ("a.arrow", from_arrow)):
        path = tmp_path / name
        whole = path.read_bytes()
        for size in (0, 3, 100, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            refused(lambda out, path=path, function=function: function(path, out), tmp_path, SourceError, f"{name}: expected")
        refused(lambda out, function=function: function(tmp_path / "none", out), tmp_path, FileNotFoundError, "none: expected a file of")
        path.write_bytes(whole)
    # One flipped bit anywhere in the pages: their checksums, which `to_parquet` writes, find it.
    whole = (tmp_path / "a.parquet").read_bytes()
    page = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(0)
    place = page.data_page_offset + page.total_compressed_size // 2
    (tmp_path / "a.parquet").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    refused(lambda out: from_parquet(tmp_path / "a.parquet", out), tmp_path, SourceError, "a.parquet: behind row 0: expected whole record")


def test_exports_appear_whole_or_not_at_all(tmp_path, monkeypatch):
    with Writer(tmp_path / "a.fence") as writer:
        writer.extend(graphs(50))

    def broken(*_: Any) -> Any:
        raise RuntimeError("broken")

    for function in (to_parquet, to_ipc):
        function(tmp_path / "a.fence", tmp_path / "good")
        with pytest.raises(FileExistsError, match="good: already exists"):
            function(tmp_path / "a.fence", tmp_path / "good", overwrite=False)
        with monkeypatch.context() as patch:
            patch.setattr("fencepost.convert._arrow_out._Columns.batch", broken)
            refused(lambda out, function=function: function(tmp_path / "a.fence", out), tmp_path, RuntimeError, "broken")
        os.remove(tmp_path / "good")
    assert sorted(os.listdir(tmp_path)) == ["a.fence", "out"]
