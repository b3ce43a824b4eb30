"""A flipped byte anywhere in a source: an error that names it, or a data set, and nothing else; never an exception of a library."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import fencepost
from fencepost import convert

from .support import graphs


def arrow(path: Path) -> Any:
    pytest.importorskip("pyarrow")
    with fencepost.Writer(path.with_suffix(".fence")) as writer:
        writer.extend(graphs(60))
    convert.to_ipc(path.with_suffix(".fence"), path)
    return convert.from_arrow


def parquet(path: Path) -> Any:
    pytest.importorskip("pyarrow")
    with fencepost.Writer(path.with_suffix(".fence")) as writer:
        writer.extend(graphs(60))
    convert.to_parquet(path.with_suffix(".fence"), path)
    return convert.from_parquet


def sqlite(path: Path) -> Any:
    pytest.importorskip("ase_db_backends")
    from . import test_ase

    # ASE knows a database by its name.
    path.symlink_to(test_ase.database(path.with_suffix(".db"), test_ase.systems(20)))
    return lambda source, out: convert.from_ase(source.with_suffix(".db"), out)


def atompack(path: Path) -> Any:
    pytest.importorskip("atompack")
    from . import test_atompack

    test_atompack.database(path, test_atompack.molecules(20))
    return convert.from_atompack


@pytest.mark.parametrize("make", [arrow, parquet, sqlite, atompack])
def test_flipped_bytes(tmp_path, make):
    path = tmp_path / "source"
    function = make(path)
    whole, chance = path.read_bytes(), random.Random(5)
    ends = min(3000, len(whole))
    refused = 0
    for _ in range(40):
        damaged = bytearray(whole)
        place = chance.choice([chance.randrange(len(whole)), chance.randrange(ends), -1 - chance.randrange(ends)])
        damaged[place] ^= chance.randrange(1, 256)
        path.write_bytes(damaged)
        try:
            function(path, tmp_path / "out.fence")
        except convert.SourceError as error:
            assert str(tmp_path) in str(error)
            refused += 1
    assert 0 < refused < 40
    assert not [name for name in tmp_path.iterdir() if "tmp" in name.name]
