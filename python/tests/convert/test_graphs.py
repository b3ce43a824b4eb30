"""Samples of PyTorch Geometric: `.pt` files that PyG wrote, and LMDB with pickles of them as Open Catalyst has it."""

from __future__ import annotations

import io
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch_geometric")

import fencepost.pyg  # noqa: E402
import torch  # noqa: E402
from fencepost.convert import PickleError, SourceError, from_arrow, from_lmdb, from_pt, to_arrow  # noqa: E402
from torch_geometric.data import Data, HeteroData, InMemoryDataset  # noqa: E402

from pyg.support import Reference, in_child, molecules, same  # noqa: E402
from .support import refused  # noqa: E402


def hetero(count: int) -> list[HeteroData]:
    out = []
    for n in range(1, count + 1):
        data = HeteroData()
        data["atom"].x = torch.randn(n, 3)
        data["ring"].x = torch.arange(n % 3)
        data["atom", "in", "ring"].edge_index = torch.zeros(2, n if n % 3 else 0, dtype=torch.long)
        data.name = f"set {n}"
        out.append(data)
    return out


def catalyst(count: int) -> list[Data]:
    """With the attributes of Open Catalyst's S2EF."""
    out = []
    for n in range(1, count + 1):
        out.append(
            Data(
                pos=torch.randn(n, 3), cell=torch.randn(1, 3, 3), atomic_numbers=torch.arange(n).float(), natoms=n, tags=torch.zeros(n).long(),
                fixed=torch.zeros(n), y=-1.5 * n, force=torch.randn(n, 3), sid=1000 + n, fid=n,
            )
        )  # fmt: skip
    return out


def holds(path: Path, samples: list[Any]) -> None:
    """As PyG's own data set of these samples gives them."""
    reference = Reference(samples)
    found = fencepost.pyg.open(path)
    assert len(found) == len(samples)
    for index in range(len(samples)):
        same(found[index], reference[index], f"sample {index}")


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


# .pt ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [molecules, hetero, catalyst])
@pytest.mark.parametrize("form", ["saved", "pair", "list", "old"])
def test_pt(tmp_path, make, form):
    samples = make(13)
    data, slices = InMemoryDataset.collate(samples)
    path = tmp_path / "data.pt"
    if form == "saved":
        InMemoryDataset.save(samples, path)
    else:
        content = {"pair": (data, slices), "list": samples, "old": (data, slices)}[form]
        torch.save(content, path, _use_new_zipfile_serialization=form != "old")
    dataset = from_pt(path, tmp_path / "a.fence", metadata={"from": "pt"})
    assert len(dataset) == 13 and dataset.metadata["from"] == "pt"
    holds(tmp_path / "a.fence", samples)


def test_a_class_of_the_users(tmp_path):
    InMemoryDataset.save([Own(x=torch.ones(n, 1), pair_index=torch.arange(n)) for n in range(1, 5)], tmp_path / "data.pt")
    refused(lambda out: from_pt(tmp_path / "data.pt", out), tmp_path, PickleError, r"data.pt: expected data only, found .*Own")
    from_pt(tmp_path / "data.pt", tmp_path / "a.fence", allow_pickle=True)
    assert fencepost.pyg.open(tmp_path / "a.fence", data_cls=Own)[2].pair_index.tolist() == [0, 1, 2]


class Own(Data):
    pass


def test_options_reach_the_writer(tmp_path):
    InMemoryDataset.save(molecules(5), tmp_path / "data.pt")
    assert from_pt(tmp_path / "data.pt", tmp_path / "a.fence", narrow=True).schema["edge_index"].stored == "u8"
    holds(tmp_path / "a.fence", molecules(5))
    with pytest.raises(fencepost.ExistsError):
        from_pt(tmp_path / "data.pt", tmp_path / "a.fence", overwrite=False)
    with pytest.raises(TypeError, match="optional: expected none for samples of PyG"):
        from_pt(tmp_path / "data.pt", tmp_path / "a.fence", optional=["x"])


def test_a_pickle_in_pt_is_refused_and_does_nothing(tmp_path):
    data, slices = InMemoryDataset.collate(molecules(3))
    for new in (True, False):
        torch.save((data, slices, Bomb(tmp_path / "touched")), tmp_path / "data.pt", _use_new_zipfile_serialization=new)
        error = refused(lambda out: from_pt(tmp_path / "data.pt", out), tmp_path, PickleError, "runs whatever code.*allow_pickle=True")
        assert error.path == str(tmp_path / "data.pt") and not (tmp_path / "touched").exists()


def test_hostile_pt(tmp_path):
    refused(lambda out: from_pt(tmp_path / "none.pt", out), tmp_path, FileNotFoundError, "none.pt: expected a file of torch.save")
    path = tmp_path / "data.pt"
    data, slices = InMemoryDataset.collate(molecules(9))
    for new in (True, False):
        torch.save((data, slices), path, _use_new_zipfile_serialization=new)
        whole = path.read_bytes()
        for size in (0, 3, 100, len(whole) // 2, len(whole) - 10):
            path.write_bytes(whole[:size])
            for allow in (False, True):
                refused(lambda out, allow=allow: from_pt(path, out, allow_pickle=allow), tmp_path, SourceError, "data.pt: expected a")
    for content in ({"x": torch.ones(3)}, (1, 2), (data, slices, data, 3), "text", [1, 2]):
        torch.save(content, path)
        refused(lambda out: from_pt(path, out), tmp_path, SourceError, "data.pt: .*expected")
    for name, table in {"x": slices["x"] * 3, "y": slices["y"][:4], "edge_index": -slices["edge_index"]}.items():
        torch.save((data, dict(slices) | {name: table}), path)
        error = refused(lambda out: from_pt(path, out), tmp_path, SourceError, r"data.pt: sample \d+: ")
        assert error.record.startswith("sample ")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the anonymous memory of a process is read from /proc")
def test_tensors_of_a_pt_file_stay_in_it(tmp_path):
    """Reading 96 MiB takes less anonymous memory than two thirds of that, the writer's buffers included: the tensors are mapped."""
    data = Data(x=torch.ones(1 << 20, 24), y=torch.arange(256))
    slices = {"x": torch.arange(257) << 12, "y": torch.arange(257)}
    torch.save((data, slices), tmp_path / "data.pt")
    del data

    def anonymous() -> int:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))

    def work() -> int:
        before, peak, done = anonymous(), [0], threading.Event()

        def watch() -> None:
            while not done.wait(0.002):
                peak[0] = max(peak[0], anonymous())

        thread = threading.Thread(target=watch)
        thread.start()
        assert len(from_pt(tmp_path / "data.pt", tmp_path / "a.fence")) == 256
        done.set()
        thread.join()
        return max(peak[0], anonymous()) - before

    code, text = in_child(work)
    assert code == 0, text
    assert int(text) < 64 << 20


# LMDB -----------------------------------------------------------------------------------------------------------------


def database(path: Path, values: list[bytes]) -> Path:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(path), subdir=False, map_size=1 << 28) as env, env.begin(write=True) as transaction:
        for index, value in enumerate(values):
            transaction.put(b"%d" % index, value)
        transaction.put(b"length", pickle.dumps(len(values), -1))
    return path


@pytest.mark.parametrize("make", [molecules, hetero, catalyst])
def test_pickles_of_samples(tmp_path, make):
    samples = make(23)
    path = database(tmp_path / "a.lmdb", [pickle.dumps(data, -1) for data in samples])
    refused(lambda out: from_lmdb(path, out), tmp_path, PickleError, "record b'0'.*allow_pickle=True")
    from_lmdb(path, tmp_path / "a.fence", allow_pickle=True)
    holds(tmp_path / "a.fence", samples)


def test_pickles_of_before_pyg_2(tmp_path):
    samples, old = catalyst(12), []
    for data in samples:
        legacy = Data.__new__(Data)
        legacy.__dict__.clear()
        legacy.__dict__.update({"x": None, "edge_index": None, "y": None, **data.to_dict(), "__num_nodes__": None})
        old.append(pickle.dumps(legacy, -1))
    from_lmdb(database(tmp_path / "a.lmdb", old), tmp_path / "a.fence", allow_pickle=True)
    reference = Reference(samples)
    for index, found in enumerate(fencepost.pyg.open(tmp_path / "a.fence")):
        expected = reference[index].to_dict()
        for key, value in found.to_dict().items():
            same(value, expected[key], f"sample {index}, {key}")


def test_samples_by_torch_save_need_no_pickle(tmp_path):
    samples, values = molecules(12), []
    for data in samples:
        out = io.BytesIO()
        torch.save(data, out)
        values.append(out.getvalue())
    from_lmdb(database(tmp_path / "a.lmdb", values), tmp_path / "a.fence")
    holds(tmp_path / "a.fence", samples)
    out = io.BytesIO()
    torch.save(Bomb(tmp_path / "touched"), out)
    path = database(tmp_path / "b.lmdb", [*values, out.getvalue()])
    refused(lambda out: from_lmdb(path, out), tmp_path, PickleError, "record b'12': expected data only, found objects that need pickle")
    assert not (tmp_path / "touched").exists()


def test_samples_of_a_function_and_samples_that_do_not_fit(tmp_path):
    path = database(tmp_path / "a.lmdb", [bytes([n]) for n in range(1, 9)])
    from_lmdb(path, tmp_path / "a.fence", decode=lambda key, value: Data(x=torch.ones(value[0], 2)))
    holds(tmp_path / "a.fence", [Data(x=torch.ones(n, 2)) for n in range(1, 9)])
    for odd, match in [
        (lambda n: Data(z=torch.ones(1)), r"record b'4'.*keys.*missing \['x'\]"),
        (lambda n: Data(x=torch.ones(1, 3)), "record b'4'.*x"),
        (lambda n: {"x": np.ones((1, 2))}, "record b'4': expected a sample of PyG, as the first is, found dict"),
    ]:
        decode = lambda key, value, odd=odd: odd(1) if key == b"4" else Data(x=torch.ones(value[0], 2))  # noqa: E731
        refused(lambda out, decode=decode: from_lmdb(path, out, decode=decode), tmp_path, SourceError, match)
    decode = lambda key, value: Data(x=torch.ones(1)) if key == b"4" else {"x": np.ones(1)}  # noqa: E731
    refused(lambda out: from_lmdb(path, out, decode=decode), tmp_path, SourceError, "record b'4': .*a sample of PyG; decode them alike")


# Arrow ----------------------------------------------------------------------------------------------------------------


class Paired(Data):
    """Whose increments are hidden attributes of the file."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return int(self.total) if key == "pairs" else super().__inc__(key, value, *args, **kwargs)


@pytest.mark.parametrize("make", [molecules, hetero, catalyst, lambda n: [Paired(pairs=torch.arange(i), total=3 * i) for i in range(1, n)]])
def test_files_of_samples_through_arrow(tmp_path, make):
    pytest.importorskip("pyarrow")
    fencepost.pyg.convert(make(17), tmp_path / "a.fence", progress=False)
    from_arrow(to_arrow(tmp_path / "a.fence"), tmp_path / "b.fence")
    assert (tmp_path / "a.fence").read_bytes() == (tmp_path / "b.fence").read_bytes()
