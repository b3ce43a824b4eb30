"""Databases that AtomPack wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fencepost.convert import SourceError, from_atompack

from .support import holds, refused

atompack = pytest.importorskip("atompack")


def molecules(count: int) -> list[dict[str, Any]]:
    """Molecules; even ones have results, every third is periodic."""
    rng = np.random.default_rng(2)
    out = []
    for index in range(count):
        n = 1 + index % 4
        values: dict[str, Any] = {
            "positions": rng.random((n, 3), dtype=np.float32), "atomic_numbers": rng.integers(1, 90, n).astype(np.uint8),
            "site": rng.random(n), "kind": rng.integers(0, 9, (n, 2)), "id": np.int64(index), "source": f"run {index}",
            "tensor": rng.random((2, 2)).astype(np.float32),
        }  # fmt: skip
        if index % 2 == 0:
            values |= {"energy": np.float64(rng.random()), "forces": rng.random((n, 3), dtype=np.float32), "charges": rng.random(n)}
        if index % 3 == 0:
            values |= {"cell": rng.random((3, 3)), "pbc": np.array([True, False, True]), "stress": rng.random((3, 3))}
        out.append(values)
    return out


def database(path: Path, given: list[dict[str, Any]], **options: Any) -> Path:
    db = atompack.Database(str(path), overwrite=True, **options)
    for values in given:
        molecule = atompack.Molecule.from_arrays(values["positions"], values["atomic_numbers"])
        for name, value in values.items():
            if name in ("energy", "forces", "charges", "cell", "stress"):
                setattr(molecule, name, float(value) if name == "energy" else value)
            elif name == "pbc":
                molecule.pbc = tuple(bool(each) for each in value)
            elif name in ("site", "kind"):
                molecule.set_property(name, value, scope="atom")
            elif name not in ("positions", "atomic_numbers"):
                molecule.set_property(name, int(value) if name == "id" else value)
        db.add_molecule(molecule)
    db.flush()
    return path


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_round_trip(tmp_path, compression):
    given = molecules(15)
    path = database(tmp_path / "a.atp", given, compression=compression)
    dataset = from_atompack(path, tmp_path / "a.fence")
    holds(dataset, given)
    schema = dataset.schema
    assert schema["site"].shape == ("nodes",) and schema["kind"].shape == ("nodes", 2) and schema["tensor"].shape == (2, 2)
    assert {item.name for item in schema.attributes if item.optional} == {"energy", "forces", "charges", "cell", "pbc", "stress"}


def test_skip_and_schema(tmp_path):
    path = database(tmp_path / "a.atp", molecules(6))
    dataset = from_atompack(path, tmp_path / "a.fence", skip=("tensor", "positions"))
    assert not {"tensor", "positions"} & set(dataset.attributes)
    again = from_atompack(path, tmp_path / "b.fence", skip=("tensor", "positions"), schema=dataset.schema)
    assert again.schema == dataset.schema and (tmp_path / "a.fence").read_bytes() == (tmp_path / "b.fence").read_bytes()


def test_hostile(tmp_path):
    refused(lambda out: from_atompack(tmp_path / "none.atp", out), tmp_path, FileNotFoundError, "none.atp: expected a database")
    path = database(tmp_path / "a.atp", molecules(50))
    whole = path.read_bytes()
    for size in (0, 100, 5000, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(lambda out: from_atompack(path, out), tmp_path, SourceError, "a.atp: expected")
    path.write_bytes(b"no database" * 2000)
    refused(lambda out: from_atompack(path, out), tmp_path, SourceError, "expected a database of AtomPack")
