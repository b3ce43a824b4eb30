"""Reading: samples, views, whole arenas, over all backings; errors; what keeps what alive."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest
from conftest import BACKINGS, graphs, run, same, write

import fencepost
from fencepost import Attribute, Schema


def test_samples_are_what_was_written(dataset, samples):
    assert len(dataset) == len(samples)
    for index, expected in enumerate(samples):
        for found in (dataset[index], dataset[index - len(samples)], dataset.read(index), dataset[np.int64(index)]):
            same(found, expected)
    for found, expected in zip(dataset, samples, strict=True):
        same(found, expected)
    assert [len(sample) for sample in dataset.head(3)] == [5, 5, 5]


def test_borrowed_arrays_are_read_only_and_owned_ones_are_not(dataset):
    for value in dataset[0].values():
        assert not value.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            value[...] = 0
        if dataset.backing != "positional":  # there it is a copy, which nobody else sees
            with pytest.raises(ValueError, match="WRITEABLE"):
                value.flags.writeable = True
    before = dataset.read(0)
    for value in dataset.read(0).values():
        value[...] = 1
    same(dataset.read(0), before)


@pytest.mark.parametrize("key", [50, -51, 2**62, np.int64(50)])
def test_an_index_beyond_is_an_index_error(dataset, key):
    with pytest.raises(IndexError, match="50 samples") as caught:
        dataset[key]
    assert isinstance(caught.value, fencepost.OutOfRangeError)


VIEWS = [
    slice(None), slice(10, 20), slice(-5, None), slice(None, None, -1), slice(3, 40, 7), slice(20, 10), slice(0, 10**12),
    [3, 1, 1, -1], [], range(5, 50, 9), range(0), (4, 2), np.array([7, -7]), np.array([2], np.uint8), np.array([], np.float64),
    np.arange(50) % 3 == 0, [index % 7 == 0 for index in range(50)],
]  # fmt: skip


@pytest.mark.parametrize("key", VIEWS, ids=str)
def test_views(dataset, samples, key):
    everything = np.arange(50)
    positions = everything[key] if isinstance(key, slice) else everything[np.asarray(key)] if len(key) else everything[:0]
    view = dataset[key]
    assert len(view) == len(positions)
    for index, position in enumerate(positions):
        same(view.read(index), samples[position])
    indices = view.indices
    assert (np.arange(50) if indices is None else indices).tolist() == positions.tolist()
    # A view of a view, and what becomes of it in another process.
    if len(view) > 1:
        inner = pickle.loads(pickle.dumps(view[[1, 0]]))
        same(inner.read(0), samples[positions[1]])


@pytest.mark.parametrize(
    "key", [True, np.True_, None, 1.5, np.array([1.5]), np.zeros((2, 2), int), b"x", {}, object(), np.array(["a"])]
)
def test_keys_that_mean_nothing(dataset, key):
    with pytest.raises(TypeError, match="expected"):
        dataset[key]


def test_masks_of_another_length_and_indices_beyond(dataset):
    with pytest.raises(fencepost.UnsupportedError, match="49 entries"):
        dataset[np.ones(49, bool)]
    for key in ([50], np.array([-51]), range(49, 51)):
        with pytest.raises(IndexError):
            dataset[key]


def test_whole_attributes(dataset, samples):
    for name, axis in [("x", 0), ("edge_index", 1), ("edge_attr", 0), ("y", 0), ("mask", 0)]:
        same({name: dataset[name]}, {name: np.concatenate([sample[name] for sample in samples], axis)})
        same({name: dataset[[4, 2]][name]}, {name: np.concatenate([samples[4][name], samples[2][name]], axis)})
    if dataset.backing != "positional":
        assert not dataset["x"].flags.owndata and not dataset["x"].flags.writeable
    with pytest.raises(KeyError, match="no attribute named \"z\": this dataset has x, "):
        dataset["z"]


def test_where_values_are_in_the_file(path, dataset, samples):
    file = path.read_bytes()
    for index, sample in enumerate(samples):
        places = dataset.locate(index)
        assert list(places) == list(sample)
        for name, (offset, length, shape, place) in places.items():
            assert (file[offset : offset + length], shape, place) == (sample[name].tobytes(), sample[name].shape, str(path))
    offset, length = dataset.arena_range("x")
    assert file[offset : offset + length] == dataset["x"].tobytes()
    if dataset.backing != "positional":
        assert dataset.arena("edge_index").tobytes() == b"".join(sample["edge_index"].tobytes() for sample in samples)
    nodes = np.cumsum([0] + [len(sample["x"]) for sample in samples])
    assert dataset.offsets("nodes").tolist() == nodes.tolist()
    assert dataset[10:13].offsets("nodes").tolist() == (nodes[10:14] - nodes[10]).tolist()
    assert dataset.axes_of(7)["nodes"] == len(samples[7]["x"])


def test_narrow_attributes_are_widened(tmp_path):
    schema = Schema([Attribute("a", "i64", ["n"], stored="i8"), Attribute("b", "f64", ["n"]), Attribute("c", "f32", ["n"], stored="f16")])
    samples = [{"a": np.arange(-n, n), "b": np.arange(2.0 * n), "c": np.zeros(2 * n, np.float32)} for n in range(5)]
    path = write(tmp_path / "a.fence", samples, schema=schema)
    for backing in BACKINGS:
        dataset = fencepost.open(path, backing)
        for index, sample in enumerate(samples):
            same(dataset[index], sample)
            same(dataset.read(index), sample)
        assert list(dataset.locate(3)) == ["b"]
        assert dataset["a"].tolist() == [value for sample in samples for value in sample["a"]]


def test_strings(tmp_path):
    samples = [{"s": "ü" * n, "l": [str(i) for i in range(n)], "b": b"\0" * n} for n in (2, 0, 3)]
    path = write(tmp_path / "a.fence", samples)
    for backing in BACKINGS:
        dataset = fencepost.open(path, backing)
        assert list(dataset) == samples
        assert dataset["s"] == [sample["s"] for sample in samples]


def test_projections(dataset, samples):
    view = dataset.project(["y", "x"])
    assert view.attributes == ["x", "y"] and list(view[0]) == ["x", "y"]
    assert dataset.project("y").attributes == ["y"]
    assert pickle.loads(pickle.dumps(view)).attributes == ["x", "y"]
    with pytest.raises(KeyError, match="no attribute"):
        dataset.project(["z"])


def test_arrays_keep_the_file_open(path):
    for backing in BACKINGS:
        dataset = fencepost.open(path, backing)
        alive = weakref.ref(dataset)
        sample = dataset[4]
        expected = {name: value.copy() for name, value in sample.items()}
        del dataset
        gc.collect()
        assert (alive() is None) == (backing == "positional")
        same(sample, expected)
        part = sample["x"][1:]
        del sample
        gc.collect()
        assert part.tobytes() == expected["x"][1:].tobytes()
        del part
        gc.collect()
        assert alive() is None


def test_pickles_know_their_file(path, samples, tmp_path):
    dataset = fencepost.open(path, "resident")
    again = pickle.loads(pickle.dumps(dataset))
    assert (again.backing, again.fingerprint, again.path) == ("resident", dataset.fingerprint, dataset.path)
    text = pickle.dumps(fencepost.open(path)[3:9])
    write(path, samples[:-1])
    with pytest.raises(fencepost.ChangedError, match="expected fingerprint .*, found .*; restore"):
        pickle.loads(text)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="cannot"):
        pickle.loads(text)


def test_relative_paths_survive_a_change_of_folder(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = pickle.dumps(fencepost.open(path.name))
    monkeypatch.chdir("/")
    assert len(pickle.loads(text)) == 50


def test_opening(path, tmp_path):
    dataset = fencepost.open(path)
    assert dataset.backing in ("mapped", "positional") and "filesystem" in dataset.backing_reason
    assert fencepost.open(str(path), "resident").backing_reason == "asked for"
    with pytest.raises(ValueError, match="backing: expected"):
        fencepost.open(path, "fast")
    with pytest.raises(FileNotFoundError) as caught:
        fencepost.open(tmp_path / "no.fence")
    assert isinstance(caught.value, fencepost.Error) and caught.value.filename == str(tmp_path / "no.fence") and caught.value.errno == 2
    with pytest.raises(fencepost.NotFoundError, match="no file in it has a name that ends in .fence"):
        (tmp_path / "empty").mkdir()
        fencepost.open(tmp_path / "empty")
    assert len(fencepost.open(tmp_path)) == len(dataset), "a folder of one file"
    (tmp_path / "text").write_text("hello " * 2000)
    for backing in BACKINGS:
        with pytest.raises(fencepost.FormatError, match="not a fencepost file") as caught:
            fencepost.open(tmp_path / "text", backing)
        assert caught.value.code == "magic" and isinstance(caught.value, ValueError)


def test_what_there_is_to_know(dataset, path, samples):
    text = repr(dataset)
    for part in (str(path), "50 samples", dataset.backing, "edge_index", "i64[2, edges]", "index into nodes"):
        assert part in text
    html = dataset._repr_html_()
    assert html.startswith("<div>") and "edge_index" in html
    assert "a view" in repr(dataset[1:])
    statistics = dataset.stats["attributes"]["x"]
    whole = dataset["x"]
    assert statistics["count"] == whole.size and statistics["nan"] == 0
    assert statistics["min"] == whole.min() and statistics["mean"] == pytest.approx(whole.mean(), rel=1e-5)
    assert dataset.stats["axes"]["nodes"]["max"] == max(len(sample["x"]) for sample in samples)
    memory = dataset.memory()
    assert memory["file_bytes"] == path.stat().st_size == dataset.nbytes
    assert dataset.metadata == {} and dataset.refused_attributes == {}
    assert dataset.attribute_nbytes("x") == dataset["x"].nbytes


def test_html_is_escaped(tmp_path):
    path = write(tmp_path / "<b>.fence", [{"<i>": 1}])
    html = fencepost.open(path)._repr_html_()
    assert "<i>" not in html and "&lt;i&gt;" in html and "<b>.fence" not in html


def test_verify(path, dataset):
    report = dataset.verify(threads=1, progress=False)
    assert report.ok and bool(report) and report.bad_blocks == [] and report.problems == [] and report.blocks > 0
    offset, _ = dataset.arena_range("x")
    damaged = bytearray(path.read_bytes())
    damaged[offset + 9] ^= 1
    path.unlink()  # another file: nobody writes into one that is open
    path.write_bytes(damaged)
    report = fencepost.open(path, dataset.backing).verify()
    assert not report.ok and not report
    [bad] = report.bad_blocks
    assert bad.attributes == ["x"] and bad.bytes[0] == offset and bad.samples[0][0] == 0 and bad.expected != bad.found
    assert "1 of" in repr(report)


def test_a_mapped_file_that_is_cut_off_is_an_error_not_a_signal(path):
    code = """
import os, sys, fencepost
dataset = fencepost.open(sys.argv[1], "mapped")
os.truncate(sys.argv[1], os.path.getsize(sys.argv[1]) // 2)
calls = [lambda: dataset[49], lambda: dataset.read(49), lambda: dataset["x"], lambda: dataset.batch([1, 49]), lambda: dataset.axes_of(1),
         lambda: dataset.offsets("nodes"), lambda: dataset.verify(), lambda: dataset.arena("x"), lambda: dataset.locate(3),
         lambda: next(iter(dataset))]
for call in calls:
    try:
        call()
    except fencepost.FormatError as error:
        assert error.code == "truncated", error
    else:
        raise SystemExit("no error")
print("refused", len(calls))
"""
    result = run(code, path)
    assert (result.returncode, result.stdout.strip()) == (0, "refused 10"), result


def test_errors_pickle_and_show_their_message_alone(path):
    try:
        fencepost.open(path)["nothing"]
    except fencepost.UnknownNameError as error:
        assert str(error).startswith("no attribute named") and str(pickle.loads(pickle.dumps(error))) == str(error)
    bases = {
        fencepost.IoError: OSError, fencepost.FormatError: ValueError, fencepost.OutOfRangeError: IndexError,
        fencepost.UnknownNameError: KeyError, fencepost.SampleError: ValueError, fencepost.DTypeError: TypeError,
    }  # fmt: skip
    assert all(issubclass(ours, (base,)) and issubclass(ours, fencepost.Error) for ours, base in bases.items())


def test_dropping_everything_in_any_order_is_safe(path):
    """Under Python's debug allocator, which fills freed memory and checks its edges."""
    code = """
import gc, random, sys, fencepost
random.seed(1)
held = []
for round in range(300):
    dataset = fencepost.open(sys.argv[1], random.choice(["mapped", "resident", "positional"]))
    batch = dataset[::2].batch(range(20))
    held += [*dataset[random.randrange(50)].values(), *dict(batch.items()).values(), dataset, batch, dataset["x"], dataset.read(1)["x"]]
    random.shuffle(held)
    del held[60:]
    total = sum(float(value.sum()) for value in held if hasattr(value, "sum"))
print("done", total == total)
"""
    import os

    result = run(code, path, env=os.environ | {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"})
    assert (result.returncode, result.stdout.strip()) == (0, "done True"), result.stderr


def test_generated_samples(tmp_path):
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as some
    from hypothesis.extra import numpy as arrays

    dtypes = some.sampled_from(["?", "u1", "i2", "i8", "f4", "f8", "c8"])

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(some.data())
    def check(data):
        columns = data.draw(
            some.dictionaries(
                some.text(min_size=1, max_size=8), some.tuples(dtypes, some.integers(0, 2), some.integers(1, 3)), min_size=1, max_size=4
            )
        )
        schema = Schema([Attribute(name, np.dtype(dtype), ["n", *[extent] * rank]) for name, (dtype, rank, extent) in columns.items()])
        samples = []
        for _ in range(data.draw(some.integers(0, 6))):
            n = data.draw(some.integers(0, 4))
            shapes = {name: (n, *[extent] * rank) for name, (_, rank, extent) in columns.items()}
            samples.append({name: data.draw(arrays.arrays(np.dtype(columns[name][0]), shape)) for name, shape in shapes.items()})
        path = tmp_path / "generated.fence"
        write(path, samples, schema=schema)
        for backing in BACKINGS:
            dataset = fencepost.open(path, backing)
            for index, sample in enumerate(samples):
                same(dataset[index], sample)
            if samples:
                batch = dataset.batch(range(len(samples)))
                for name in columns:
                    assert batch[name].tobytes() == np.concatenate([sample[name] for sample in samples]).tobytes()

    check()


def test_many_graphs_stay_the_same_over_all_backings(tmp_path):
    path = write(tmp_path / "a.fence", graphs(300, seed=4))
    mapped, positional, resident = (fencepost.open(path, backing) for backing in BACKINGS)
    for index in np.random.default_rng(0).permutation(300):
        expected = {name: value.copy() for name, value in mapped[index].items()}
        same(positional[index], expected)
        same(resident[index], expected)
