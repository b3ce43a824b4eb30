"""Databases that ASE wrote: SQLite, JSON and LMDB."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fencepost.convert import SourceError, from_ase

from .support import holds, refused

ase = pytest.importorskip("ase")
pytest.importorskip("ase_db_backends")

import ase.db  # noqa: E402
from ase.calculators.singlepoint import SinglePointCalculator  # noqa: E402
from ase.constraints import FixAtoms  # noqa: E402


def systems(count: int) -> list[tuple[Any, dict[str, Any], dict[str, Any]]]:
    """Atoms, key-value pairs and data; number 2 has no results, number 3 tags, number 4 no data."""
    rng = np.random.default_rng(1)
    out = []
    for index in range(count):
        n = 1 + index % 5
        atoms = ase.Atoms(rng.integers(1, 90, n), positions=rng.random((n, 3)), cell=rng.random((3, 3)), pbc=[True, False, index % 2])
        if index == 3:
            atoms.set_tags(range(n))
            atoms.set_initial_charges(rng.random(n))
            atoms.set_constraint(FixAtoms([0]))
        if index != 2:
            results = {"energy": -1.5 * n, "forces": rng.random((n, 3)), "stress": rng.random(6)}
            atoms.calc = SinglePointCalculator(atoms, **results)
        pairs = {"label": f"system {index}", "relaxed": index % 2 == 0, "gap": 2 if index == 0 else 0.25 * index}
        data = {} if index == 4 else {"spectrum": rng.random(index), "grid": rng.integers(0, 9, (index, 2)), "note": "n" * index}
        out.append((atoms, pairs, data))
    return out


def expected(number: int, atoms: Any, pairs: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    values = {
        "id": np.int64(number), "numbers": atoms.numbers.astype(np.int64), "positions": atoms.positions,
        "cell": atoms.cell.array, "pbc": atoms.pbc, "label": pairs["label"], "relaxed": np.bool_(pairs["relaxed"]),
        "gap": np.float64(pairs["gap"]),
    }  # fmt: skip
    if atoms.calc is not None:
        values |= {"energy": np.float64(atoms.calc.results["energy"]), "forces": atoms.calc.results["forces"], "stress": atoms.calc.results["stress"]}
    if atoms.has("tags"):
        values |= {"tags": atoms.get_tags().astype(np.int64), "initial_charges": atoms.get_initial_charges()}
    return values | {f"data.{name}": value for name, value in data.items()}


def database(path: Path, given: Any) -> Path:
    with ase.db.connect(path) as db:
        for atoms, pairs, data in given:
            db.write(atoms, data=data, **pairs)
    return path


@pytest.mark.parametrize("kind", ["db", "json", "aselmdb"])
def test_round_trip(tmp_path, kind):
    given = systems(12)
    path = database(tmp_path / f"a.{kind}", given)
    dataset = from_ase(path, tmp_path / "a.fence")
    holds(dataset, [expected(index + 1, *each) for index, each in enumerate(given)])
    schema = dataset.schema
    assert schema["forces"].shape == ("nodes", 3) and schema["stress"].shape == (6,) and schema["data.grid"].shape == ("data.grid", 2)
    assert {item.name for item in schema.attributes if item.optional} == {
        "energy", "forces", "stress", "data.spectrum", "data.grid", "data.note", "initial_charges", "tags",
    }  # fmt: skip
    batch = dataset.batch([0, 1, 5])
    assert batch["batch"].tolist() == [0, 1, 1, 2]


def test_pages_of_a_large_database_and_gaps(tmp_path, monkeypatch):
    monkeypatch.setattr("fencepost.convert._ase.PAGE", 4)
    given = systems(11)
    path = database(tmp_path / "a.db", given)
    with ase.db.connect(path) as db:
        db.delete([1, 5, 6, 7, 8])
    dataset = from_ase(path, tmp_path / "a.fence")
    holds(dataset, [expected(number, *given[number - 1]) for number in (2, 3, 4, 9, 10, 11)])


def test_selection_and_skip(tmp_path):
    given = systems(12)
    path = database(tmp_path / "a.db", given)
    dataset = from_ase(path, tmp_path / "a.fence", selection="gap>1.6,relaxed=True", skip=("data.grid", "energy"))
    chosen = [number for number in range(1, 13) if given[number - 1][1]["gap"] > 1.6 and given[number - 1][1]["relaxed"]]
    assert dataset["id"].tolist() == chosen and len(chosen) == 3
    assert "energy" not in dataset.schema and "data.grid" not in dataset.schema and "data.spectrum" in dataset.schema


def test_a_schema_saves_the_first_reading(tmp_path, monkeypatch):
    path = database(tmp_path / "a.db", systems(5))
    schema = from_ase(path, tmp_path / "a.fence").schema
    monkeypatch.setattr("fencepost.convert._ase.Survey", None)
    again = from_ase(path, tmp_path / "b.fence", schema=schema)
    assert (tmp_path / "a.fence").read_bytes() == (tmp_path / "b.fence").read_bytes() and again.schema == schema


def test_what_cannot_be_stored(tmp_path):
    for data, match in [
        ({"nested": {"a": 1}}, "row 1: data.nested: expected numbers, strings.*found dict.*skip="),
        ({"ragged": [[1], [2, 3]]}, "row 1: data.ragged"),
    ]:
        path = database(tmp_path / f"{next(iter(data))}.db", [(ase.Atoms("H"), {}, data)])
        refused(lambda out, path=path: from_ase(path, out), tmp_path, SourceError, match)
    path = database(tmp_path / "b.db", [(ase.Atoms("H"), {"a": 1}, {}), (ase.Atoms("H"), {"a": "text"}, {})])
    refused(lambda out: from_ase(path, out), tmp_path, SourceError, r"row 2: a: expected i64 of shape \[\].*found utf8")


def test_hostile(tmp_path):
    refused(lambda out: from_ase(tmp_path / "none.db", out), tmp_path, FileNotFoundError, "none.db: expected a database of ASE")
    assert not (tmp_path / "none.db").exists()
    path = database(tmp_path / "a.db", systems(40))
    whole = path.read_bytes()
    for size in (50, 4096, len(whole) // 2):
        path.write_bytes(whole[:size])
        error = refused(lambda out: from_ase(path, out), tmp_path, SourceError, "a database of ASE")
        assert error.path == str(path)
    path.write_bytes(whole)
    with sqlite3.connect(path) as connection:
        connection.execute("update systems set positions = x'0011' where id = 7")
    connection.close()
    refused(lambda out: from_ase(path, out), tmp_path, SourceError, "behind row 6: expected a database of ASE")
    (tmp_path / "a.json").write_text('{"1": {"numbers": [')
    refused(lambda out: from_ase(tmp_path / "a.json", out), tmp_path, SourceError, "expected a database of ASE")
    assert sorted(os.listdir(tmp_path)) == ["a.db", "a.json", "out"]


def test_an_empty_database(tmp_path):
    path = database(tmp_path / "a.db", systems(1))
    with ase.db.connect(path) as db:
        db.delete([1])
    assert len(from_ase(path, tmp_path / "a.fence")) == 0
