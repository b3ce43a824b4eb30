"""Several files as one dataset: folders of shards, files that add attributes, and processes that write side by side."""

from __future__ import annotations

import filecmp
import os
import pickle
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import fencepost

BACKINGS = ["mapped", "positional", "resident", "auto"]


def sample(index: int) -> dict[str, np.ndarray]:
    nodes = index % 5
    return {
        "x": np.full((nodes, 2), index, np.float32),
        "id": np.int64(index),
        "edge_index": np.zeros((2, nodes), np.int64),
    }


def odd(index: int) -> dict[str, np.ndarray] | None:
    return sample(index) if index % 2 else None


def twice(index: int) -> list[dict[str, np.ndarray]]:
    return [sample(index), sample(index)]


def failing(index: int) -> dict[str, np.ndarray]:
    if index == 33:
        raise ValueError("no such molecule")
    return sample(index)


def slow(index: int) -> dict[str, np.ndarray]:
    time.sleep(0.002)
    return sample(index)


def ids(dataset: fencepost.Dataset) -> list[int]:
    return [int(dataset[i]["id"]) for i in range(len(dataset))]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "set"
    with fencepost.ShardedWriter(path, samples_per_shard=10) as writer:
        writer.extend(map(sample, range(35)))
    return path


@pytest.mark.parametrize("backing", BACKINGS)
def test_a_folder_is_a_dataset(folder, backing):
    dataset = fencepost.open(folder, backing)
    assert ids(dataset) == list(range(35))
    assert dataset.path == folder and dataset.nbytes == sum(file.stat().st_size for file in folder.iterdir())
    np.testing.assert_array_equal(dataset[34]["x"], sample(34)["x"])
    np.testing.assert_array_equal(dataset["id"], np.arange(35))
    assert dataset["x"].shape == (sum(i % 5 for i in range(35)), 2)
    assert len(dataset.offsets("nodes")) == 36
    batch = dataset.batch([34, 3, 12])
    assert batch["id"].tolist() == [34, 3, 12]
    assert batch["x"][:, 0].tolist() == [34.0] * 4 + [3.0] * 3 + [12.0] * 2
    assert ids(dataset[9:31:7]) == [9, 16, 23, 30]
    assert sorted(i for batch in fencepost.Loader(dataset, 8, shuffle=True) for i in batch["id"]) == list(range(35))
    files = dataset.files
    assert [file.samples for file in files] == [(0, 10), (10, 20), (20, 30), (30, 35)]
    assert files[3].shard == fencepost.Shard("set", 3, first=30, last=True)
    assert files[0].shard != files[3].shard and files[0].base is None
    assert dataset.stats["attributes"]["id"]["max"] == 34
    assert dataset.verify().ok
    again = pickle.loads(pickle.dumps(dataset[5:15]))
    assert ids(again) == list(range(5, 15))
    place = dataset.locate(12)["id"]
    assert os.fspath(place[3]).endswith("shard-00000001.fence")
    assert np.fromfile(place[3], np.int64, 1, offset=place[0]) == [12]


def test_lists_and_missing_shards(folder):
    paths = sorted(folder.iterdir())
    assert ids(fencepost.open([str(path) for path in paths])) == list(range(35))
    paths[1].unlink()
    with pytest.raises(fencepost.ShardsError, match="expected shard 1, found 2") as caught:
        fencepost.open(folder)
    assert str(paths[2]) in str(caught.value) and str(paths[2]) == os.fspath(caught.value.path)
    assert isinstance(caught.value, ValueError)
    partial = fencepost.open(folder, partial=True)
    assert ids(partial) == [*range(10), *range(20, 35)]
    assert ids(pickle.loads(pickle.dumps(partial))) == ids(partial)
    with pytest.raises(fencepost.NotFoundError, match=r"\.fence"):
        (folder / "nothing").mkdir()
        fencepost.open(folder / "nothing")
    with pytest.raises(TypeError, match="path or a list of paths"):
        fencepost.open(3)
    with pytest.raises(fencepost.Error, match="no path"):
        fencepost.open([])


def test_damage_names_the_file(folder):
    path = folder / "shard-00000002.fence"
    place = fencepost.open(path).locate(3)["id"]
    data = bytearray(path.read_bytes())
    data[place[0]] ^= 1
    path.write_bytes(data)
    (bad,) = fencepost.open(folder).verify().bad_blocks
    assert bad.path == path and bad.attributes == ["id"] and any(a <= 23 < b for a, b in bad.samples)


def test_writing_goes_on_after_a_crash(tmp_path):
    path = tmp_path / "set"
    with pytest.raises(RuntimeError, match="power"), fencepost.ShardedWriter(path, samples_per_shard=10) as writer:
        for index in range(25):
            writer.append(sample(index))
            writer.set_source(f"row {index}")
        raise RuntimeError("power")
    with pytest.raises(fencepost.ShardsError, match="expected a last shard"):
        fencepost.open(path)
    with fencepost.ShardedWriter(path, samples_per_shard=10, resume=True) as writer:
        assert len(writer) == 20 and writer.source == "row 19"
        assert "20 samples" in repr(writer)
        writer.extend(map(sample, range(20, 25)))
        assert writer.schema is not None
    assert ids(fencepost.open(path)) == list(range(25))
    with pytest.raises(fencepost.ExistsError):
        fencepost.ShardedWriter(path)
    with fencepost.ShardedWriter(path, samples_per_shard=10, resume=True) as writer:
        with pytest.raises(fencepost.SchemaError):
            writer.append({"other": np.zeros(3)})
        writer.append(sample(25))
        summary = writer.finish()
        assert (summary.samples, summary.shards, len(summary.written)) == (26, 4, 1)
        with pytest.raises(fencepost.WriterError, match="finished"):
            writer.append(sample(0))
    assert ids(fencepost.open(path)) == list(range(26))


@pytest.mark.parametrize("inferred", [True, False])
def test_attributes_are_added_in_a_file_of_their_own(tmp_path, inferred):
    base = tmp_path / "base.fence"
    with fencepost.Writer(base) as writer:
        writer.extend(map(sample, range(12)))
    dataset = fencepost.open(base)
    more = tmp_path / "more.fence"
    schema = None
    if not inferred:
        schema = fencepost.Schema([fencepost.Attribute("embedding", "f32", ["nodes", 4]), fencepost.Attribute("y", "f64", [])])
    with fencepost.Writer(more, schema, base=dataset) as writer:
        with pytest.raises(fencepost.UnsupportedError if inferred else fencepost.SampleError):
            writer.append({"x": np.zeros((0, 2), np.float32)})
        for index in range(12):
            writer.append({"embedding": np.full((index % 5, 4), index, np.float32), "y": index / 2})
        with pytest.raises(fencepost.SampleError, match="one more"):
            writer.append({"embedding": np.zeros((0, 4), np.float32), "y": 0.0})
    with pytest.raises(fencepost.ExistsError):
        fencepost.Writer(more, schema, base=dataset, overwrite=False)
    both = fencepost.open([base, more])
    assert both.attributes == ["x", "id", "edge_index", "embedding", "y"]
    assert both[7]["y"] == 3.5 and both[7]["id"] == 7 and both[7]["embedding"].shape == (2, 4)
    assert both.files[1].base == dataset.fingerprint
    assert both.batch([3, 7])["embedding"][:, 0].tolist() == [3.0] * 3 + [7.0] * 2
    assert pickle.loads(pickle.dumps(both))[7]["y"] == 3.5
    with pytest.raises(fencepost.SampleError, match="12 samples"), fencepost.Writer(tmp_path / "few.fence", schema, base=dataset) as writer:
        writer.append({"embedding": np.zeros((0, 4), np.float32), "y": 0.0})
    assert not (tmp_path / "few.fence").exists()
    with fencepost.Writer(base) as writer:
        writer.extend(map(sample, range(1, 13)))
    with pytest.raises(fencepost.ShardsError, match="not among the files"):
        fencepost.open([base, more])


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_processes_write_what_one_writes(tmp_path, context):
    if context not in __import__("multiprocessing").get_all_start_methods():
        pytest.skip(f"{context} is not there")
    alone = fencepost.write_shards(tmp_path / "alone", range(95), sample, items_per_shard=10, dataset="set")
    assert ids(alone) == list(range(95))
    fencepost.write_shards(tmp_path / "many", range(95), sample, items_per_shard=10, dataset="set", num_workers=3, mp_context=context)
    names = sorted(os.listdir(tmp_path / "alone"))
    same, different, failed = filecmp.cmpfiles(tmp_path / "alone", tmp_path / "many", names, shallow=False)
    assert same == names and len(names) == 10 and not different and not failed
    # What is there is not written again.
    before = {name: os.stat(tmp_path / "many" / name).st_mtime_ns for name in names}
    os.unlink(tmp_path / "many" / names[4])
    fencepost.write_shards(tmp_path / "many", range(95), sample, items_per_shard=10, dataset="set")
    after = {name: os.stat(tmp_path / "many" / name).st_mtime_ns for name in names}
    assert [name for name in names if before[name] != after[name]] == [names[4]]
    assert ids(fencepost.open(tmp_path / "many")) == list(range(95))


def test_items_make_no_sample_or_several(tmp_path):
    dataset = fencepost.write_shards(tmp_path / "odd", range(50), odd, items_per_shard=7, filtered=True, num_workers=2)
    assert ids(dataset) == list(range(1, 50, 2))
    assert [file.shard.first for file in dataset.files] == [None] * 8
    dataset = fencepost.write_shards(tmp_path / "twice", range(5), twice, items_per_shard=2, filtered=True)
    assert ids(dataset) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    # Other datasets are written the same way.
    again = fencepost.write_shards(tmp_path / "again", dataset, items_per_shard=4)
    assert ids(again) == ids(dataset)
    assert len(fencepost.write_shards(tmp_path / "none", [], sample, items_per_shard=4)) == 0


def test_what_goes_wrong_is_named_and_nothing_is_lost(tmp_path):
    path = tmp_path / "set"
    for workers in (0, 2):
        with pytest.raises(ValueError, match="no such molecule") as caught:
            fencepost.write_shards(path, range(50), failing, items_per_shard=10, num_workers=workers)
        assert any("shard-00000003" in note and "item 33" in note for note in caught.value.__notes__), workers
    with pytest.raises(TypeError, match="mapping"):
        fencepost.write_shards(tmp_path / "none", range(4), odd, items_per_shard=2)
    with pytest.raises(fencepost.ExistsError, match="another source"):
        fencepost.write_shards(path, range(51), sample, items_per_shard=10)
    with pytest.raises(fencepost.ExistsError, match="another source"):
        fencepost.write_shards(path, range(50), sample, items_per_shard=5)
    with pytest.raises(ValueError, match="items_per_shard"):
        fencepost.write_shards(path, range(50), sample, items_per_shard=0)
    assert ids(fencepost.write_shards(path, range(50), sample, items_per_shard=10, num_workers=2)) == list(range(50))


KILLED = """
import sys
sys.path[:0] = {path!r}
import fencepost
from test_shards import slow
if __name__ == "__main__":
    print("begun", flush=True)
    fencepost.write_shards(sys.argv[1], range(120), slow, items_per_shard=8, num_workers=2, mp_context="fork")
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are Unix")
def test_killed_at_random_and_gone_on_with_nothing_is_lost_or_doubled(tmp_path):
    """FENCEPOST_KILLS says how often; few by default."""
    script = tmp_path / "writes.py"
    script.write_text(KILLED.format(path=[os.path.dirname(__file__), *sys.path]))
    seed = random.Random(int(os.environ.get("FENCEPOST_SEED", "1")))
    interrupted = 0
    for round_ in range(int(os.environ.get("FENCEPOST_KILLS", "4"))):
        path = tmp_path / f"set{round_}"
        command = [sys.executable, str(script), str(path)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert child.stdout is not None and child.stdout.readline() == b"begun\n"
        time.sleep(seed.uniform(0, 0.35))
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        # Its processes are killed as well, but not waited for, and hold the locks of their files until they are gone.
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                os.killpg(child.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.01)
        interrupted += not path.exists() or len([n for n in os.listdir(path) if n.startswith("shard")]) < 15
        assert ids(fencepost.write_shards(path, range(120), sample, items_per_shard=8)) == list(range(120))
        # The files that were being written are gone with the next write of their names.
        assert sorted(os.listdir(path)) == [f"shard-{number:08}.fence" for number in range(15)]
    assert interrupted > 0
