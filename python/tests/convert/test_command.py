"""`python -m fencepost.convert`."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import fencepost
from fencepost.convert.__main__ import main

from .support import graphs, holds


def test_help_names_every_format():
    result = subprocess.run([sys.executable, "-m", "fencepost.convert", "--help"], capture_output=True, text=True, check=True)
    for name in ("pt", "lmdb", "ase", "atompack", "hdf5", "arrow", "parquet", "huggingface", "to-arrow", "to-parquet"):
        assert f"\n    {name}" in result.stdout
    assert "usage: python -m fencepost.convert" in result.stdout


def test_parquet_and_back(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    samples = graphs(20)
    with fencepost.Writer(tmp_path / "a.fence") as writer:
        writer.extend(samples)
    first, second, third = (str(tmp_path / name) for name in ("a.fence", "a.parquet", "b.fence"))
    assert main(["to-parquet", first, second]) == 0
    assert main(["parquet", second, third, "--narrow"]) == 0
    assert capsys.readouterr().out == f"{second}\n{third}: 20 samples\n"
    dataset = fencepost.open(third)
    holds(dataset, samples)
    assert dataset.schema["z"].stored == "u8" and dataset.schema["edge_index"].stored == "u8"
    assert main(["parquet", second, third, "--no-clobber"]) == 2
    assert main(["to-parquet", first, second, "--no-clobber"]) == 2
    assert main(["parquet", first, third]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3 and all(line.startswith("error: ") for line in errors) and "expected a file of Parquet" in errors[2]


def test_options_of_formats(tmp_path, capsys):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["set/ends"], file["set/b_offsets"], file["set/v"], file["set/w"], file["set/odd"] = [0, 2, 4], [0, 1, 4], np.arange(4), np.arange(4), 1
    arguments = ["hdf5", str(tmp_path / "a.h5"), str(tmp_path / "a.fence")]
    options = ["--group", "set", "--table", "a=ends", "--along", "v=a", "--along", "w=b", "--skip", "odd"]
    assert main([*arguments, *options]) == 0
    assert fencepost.open(tmp_path / "a.fence")[1]["w"].tolist() == [1, 2, 3]
    assert main(arguments) == 1
    assert main(["hdf5", str(tmp_path / "none"), str(tmp_path / "a.fence")]) == 2
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--along", "v"])
    assert caught.value.code == 2
    capsys.readouterr()


def test_pickles_need_the_word(tmp_path, capsys):
    import pickle

    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(tmp_path / "a.lmdb"), subdir=False) as env, env.begin(write=True) as transaction:
        transaction.put(b"0", pickle.dumps({"x": 1}))
    arguments = ["lmdb", str(tmp_path / "a.lmdb"), str(tmp_path / "a.fence")]
    assert main(arguments) == 1 and "allow_pickle=True" in capsys.readouterr().err
    assert main([*arguments, "--allow-pickle", "--key", "k"]) == 0
    assert fencepost.open(tmp_path / "a.fence")[0] == {"k": "0", "x": 1}
