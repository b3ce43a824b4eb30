"""LMDB databases, written by py-lmdb: records of numpy, JSON and pickle, and what must not get in."""

from __future__ import annotations

import io
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fencepost
from fencepost.convert import PickleError, SourceError, from_lmdb

from .support import graphs, holds, refused

lmdb = pytest.importorskip("lmdb")


def database(path: Path, records: dict[bytes, bytes], *, subdir: bool = False) -> Path:
    with lmdb.open(str(path), subdir=subdir, map_size=1 << 28) as env, env.begin(write=True) as transaction:
        for key, value in records.items():
            transaction.put(key, value)
    return path


def npz(sample: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    np.savez(out, **{name: value for name, value in sample.items() if not isinstance(value, str)})
    return out.getvalue()


def npy(array: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def counted(values: list[bytes]) -> dict[bytes, bytes]:
    """Under keys as Open Catalyst has them, with the number of records beside."""
    return {b"%d" % index: value for index, value in enumerate(values)} | {b"length": pickle.dumps(len(values))}


class Bomb:
    """What a pickle can do to whoever reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


# Round trips ----------------------------------------------------------------------------------------------------------


def test_pickles_in_the_order_of_the_numbers(tmp_path):
    samples = graphs(25)
    path = database(tmp_path / "a.lmdb", counted([pickle.dumps(sample) for sample in samples]))
    holds(from_lmdb(path, tmp_path / "a.fence", allow_pickle=True), samples)


def test_numpys_archives(tmp_path):
    samples = [{name: value for name, value in sample.items() if name != "name"} for sample in graphs(12)]
    path = database(tmp_path / "folder", counted([npz(sample) for sample in samples]), subdir=True)
    holds(from_lmdb(path, tmp_path / "a.fence"), samples)


def test_single_arrays(tmp_path):
    arrays = [np.arange(index, dtype=">i4") for index in range(4)]
    path = database(tmp_path / "a.lmdb", counted([npy(array) for array in arrays]))
    holds(from_lmdb(path, tmp_path / "a.fence"), [{"value": array.astype("<i4")} for array in arrays])


def test_json_with_keys_and_what_some_records_lack(tmp_path):
    rows = [{"pos": [[0.5, 1.5]] * index, "charge": index, "smiles": "C" * index} for index in range(1, 5)]
    rows[2]["energy"] = -1.25
    path = database(tmp_path / "a.lmdb", {f"mol-{index}".encode(): json.dumps(row).encode() for index, row in enumerate(rows)})
    dataset = from_lmdb(path, tmp_path / "a.fence", key="key", optional=["energy"], metadata={"from": "json"})
    expected = [
        {
            "key": f"mol-{index}", "pos": np.array(row["pos"]), "charge": np.int64(row["charge"]), "smiles": row["smiles"],
            "energy": np.float64(row["energy"]) if "energy" in row else None,
        }
        for index, row in enumerate(rows)
    ]  # fmt: skip
    holds(dataset, expected)
    assert dataset.schema["energy"].optional and dataset.metadata == {"from": "json"}


def test_raw_records_in_lmdbs_order(tmp_path):
    records = {b"b": b"\x00\xff", b"a": b"", b"c": b"\x80\x04 no pickle"}
    path = database(tmp_path / "a.lmdb", records)
    holds(from_lmdb(path, tmp_path / "a.fence", decode="bytes", key="k"), [{"k": k.decode(), "value": records[k]} for k in sorted(records)])


def test_a_function_decodes(tmp_path):
    path = database(tmp_path / "a.lmdb", {b"%d" % index: bytes([index, index]) for index in range(11)})
    dataset = from_lmdb(path, tmp_path / "a.fence", decode=lambda key, value: {"k": int(key), "v": np.frombuffer(value, np.uint8)})
    holds(dataset, [{"k": np.int64(index), "v": np.array([index, index], np.uint8)} for index in range(11)])


def test_a_folder_of_databases_in_natural_order(tmp_path):
    samples = graphs(9)
    (tmp_path / "train").mkdir()
    for number, part in enumerate([samples[:2], samples[2:3], samples[3:]]):
        database(tmp_path / "train" / f"data.{number * 9}.lmdb", counted([pickle.dumps(sample) for sample in part]))
    holds(from_lmdb(tmp_path / "train", tmp_path / "a.fence", allow_pickle=True), samples)


def test_options_of_the_writer(tmp_path):
    path = database(tmp_path / "a.lmdb", counted([npz({"x": np.arange(index)}) for index in range(3)]))
    dataset = from_lmdb(path, tmp_path / "a.fence", narrow=True)
    assert dataset.schema["x"].stored == "u8"
    schema = fencepost.Schema([fencepost.Attribute("x", "i64", ["nodes"])])
    assert from_lmdb(path, tmp_path / "a.fence", schema=schema).schema == schema
    with pytest.raises(fencepost.ExistsError):
        from_lmdb(path, tmp_path / "a.fence", overwrite=False)


def test_the_source_stays_as_it_is(tmp_path):
    (tmp_path / "in").mkdir()
    path = database(tmp_path / "in" / "a.lmdb", counted([pickle.dumps({"x": 1})]))
    os.remove(f"{path}-lock")
    before = path.read_bytes()
    from_lmdb(path, tmp_path / "a.fence", allow_pickle=True)
    assert os.listdir(tmp_path / "in") == ["a.lmdb"] and path.read_bytes() == before


# Pickles --------------------------------------------------------------------------------------------------------------


def test_a_pickle_is_refused_and_does_nothing(tmp_path):
    touched = tmp_path / "touched"
    path = database(tmp_path / "a.lmdb", {b"0": pickle.dumps({"x": 1, "bomb": Bomb(touched)})})
    for decode in ("auto", "pickle"):
        error = refused(lambda out, decode=decode: from_lmdb(path, out, decode=decode), tmp_path, PickleError, "allow_pickle=True")
        assert (error.path, error.record) == (str(path), "record b'0'") and "runs whatever code" in str(error)
    assert not touched.exists()
    holds(from_lmdb(path, tmp_path / "a.fence", decode="bytes"), [{"value": pickle.dumps({"x": 1, "bomb": Bomb(touched)})}])
    assert not touched.exists()
    # The test can fail: with the user's word the code does run.
    from_lmdb(path, tmp_path / "a.fence", allow_pickle=True)
    assert touched.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_no_protocol_of_pickle_gets_in_later(tmp_path, protocol):
    touched = tmp_path / "touched"
    bomb = pickle.dumps(Bomb(touched), protocol)
    path = database(tmp_path / "a.lmdb", {b"0": npz({"x": np.arange(3)}), b"1": bomb})
    refused(lambda out: from_lmdb(path, out), tmp_path, SourceError, r"record b'1': expected an archive of numpy")
    assert not touched.exists()


def test_pickles_within_numpys_arrays_are_refused(tmp_path):
    touched = tmp_path / "touched"
    array = np.array([Bomb(touched)], object)
    for name, value in {"npy": npy(array, allow_pickle=True), "npz": npz({"x": array})}.items():
        path = database(tmp_path / f"{name}.lmdb", {b"0": value})
        refused(lambda out, path=path: from_lmdb(path, out), tmp_path, PickleError, "record b'0'.*allow_pickle=True")
    assert not touched.exists()


# Hostile --------------------------------------------------------------------------------------------------------------


def test_a_database_that_is_cut_off(tmp_path):
    path = database(tmp_path / "a.lmdb", {b"%d" % index: bytes(9000) for index in range(50)})
    whole = path.read_bytes()
    for size in (0, 100, 4096, 8192, len(whole) - 4096):
        path.write_bytes(whole[:size])
        refused(lambda out: from_lmdb(path, out), tmp_path, SourceError, "a.lmdb: expected")
    damaged = bytearray(whole)
    for page in range(2 * 4096, len(whole), 4096):
        if damaged[page + 10] & 3:  # a page of a tree, of a type that there is not
            damaged[page + 10] = 0x40
    path.write_bytes(damaged)
    refused(lambda out: from_lmdb(path, out), tmp_path, SourceError, "a.lmdb: expected a whole database, found pages that LMDB does not")
    path.write_bytes(b"no database at all" * 1000)
    refused(lambda out: from_lmdb(path, out), tmp_path, SourceError, "expected a database of LMDB")


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        ([pickle.dumps({"x": 1}), pickle.dumps({"x": 1})[:-3] + b"."], {}, "record b'1': expected a whole pickle"),
        ([pickle.dumps({"x": 1}), pickle.dumps({})], {}, "record b'1': x: expected i64 of shape .*found no value.*optional="),
        ([pickle.dumps({"x": 1}), pickle.dumps({"x": 1.5})], {}, "record b'1': attribute 'x': expected a value of i64, found 1.5"),
        ([pickle.dumps({"x": 1}), pickle.dumps({"x": 1, "q": 1})], {}, "record b'1': q: expected one of the attributes x"),
        ([pickle.dumps({"x": {"nested": 1}})], {}, "record b'0': attribute 'x': expected an array.*found dict"),
        ([pickle.dumps({3: 1})], {}, "record b'0'.*names"),
        ([npz({"x": np.arange(3)})[:-30]], {}, "record b'0': expected whole arrays of numpy"),
        ([npy(np.arange(3))[:-4]], {}, "record b'0': expected whole arrays of numpy"),
        ([b'{"x": [1, 2}'], {}, "record b'0': expected a JSON object"),
        ([b'{"x": [[1, 2], [3]]}'], {}, "record b'0': attribute 'x': .*rows of one length"),
        ([b'{"x": 1}', b"raw"], {}, "record b'1': expected a JSON object, as the first record is, found bytes.*decode="),
        ([b'{"x": 1}'], {"optional": ["y"]}, "each optional attribute, found none with y"),
        ([], {}, "at least one record"),
        ([b"x"], {"decode": "npy"}, "record b'0': expected whole arrays"),
    ],
)
def test_bad_records(tmp_path, values, options, match):
    path = database(tmp_path / "a.lmdb", counted(values))
    error = refused(lambda out: from_lmdb(path, out, allow_pickle=True, **options), tmp_path, SourceError, match)
    assert str(path) in str(error)


def test_bad_arguments(tmp_path):
    path = database(tmp_path / "a.lmdb", {b"0": b"x"})
    refused(lambda out: from_lmdb(tmp_path / "none", out), tmp_path, FileNotFoundError, "none: expected a database of LMDB")
    refused(lambda out: from_lmdb(path, out, decode="csv"), tmp_path, ValueError, "decode: expected auto, pickle")
    (tmp_path / "empty").mkdir()
    refused(lambda out: from_lmdb(tmp_path / "empty", out), tmp_path, SourceError, r"data.mdb, or files named \*.lmdb")
    ase = database(tmp_path / "b.lmdb", {b"0": b"x", b"deleted_ids": b"x", b"nextid": b"x"})
    refused(lambda out: from_lmdb(ase, out), tmp_path, SourceError, "from_ase")
