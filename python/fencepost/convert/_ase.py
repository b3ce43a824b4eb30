"""Databases of ASE: SQLite, JSON, and with `ase-db-backends` also LMDB (`.aselmdb`) and servers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Unpack

import fencepost
import numpy as np

from ._atoms import Shape, Survey
from ._errors import SourceError, existing
from ._library import library
from ._write import Path, Record, WriteOptions, write

#: What every row has: attribute to dtype and shape.
ALWAYS: dict[str, tuple[str, Shape]] = {
    "id": ("i64", []), "numbers": ("i64", ["nodes"]), "positions": ("f64", ["nodes", 3]), "cell": ("f64", [3, 3]), "pbc": ("bool", [3]),
}  # fmt: skip
#: What a row may have for each atom, besides results of its calculator.
OF_ATOMS = ("tags", "masses", "momenta", "initial_magmoms", "initial_charges")
PER_ATOM = {*OF_ATOMS, "forces", "stresses", "charges", "magmoms", "energies", "born_effective_charges"}
#: Results that have one shape whatever the atoms.
FIXED = {"stress", "dipole", "dielectric_tensor", "polarization"}
#: Rows that are read at once.
PAGE = 256


def from_ase(
    path: Path,
    out: Path,
    *,
    selection: str = "",
    skip: tuple[str, ...] = (),
    **options: Unpack[WriteOptions],
) -> fencepost.Dataset:
    """Writes the rows of a database of ASE to a file, and opens it.

    A row becomes `id`, `numbers` [nodes], `positions` [nodes, 3], `cell` [3, 3], `pbc` [3], and what of this it has: values for
    each atom (`tags`, `momenta`, …), results of its calculator (`energy`, `forces`, `stress`, …), its key-value pairs, and each
    entry of its data as `data.NAME`. What some rows lack is an optional attribute: unless a schema is given, the rows are read
    twice, first for what there is. Constraints, the calculator's name and parameters, user and times are left out.

    Args:
        path: the file, as `ase.db.connect` takes it.
        selection: which rows, in ASE's own words (`"energy<0,pbc=TTT"`).
        skip: attributes to leave out.
        options: see `WriteOptions`.

    Raises:
        SourceError: the database or a row is damaged, or a value has no place in a file.
    """
    library("ase.db", "ase", "from_ase")
    rows = _Rows(os.fspath(path), selection, skip)
    schema = None
    if options.get("schema") is None:
        survey = Survey(ALWAYS, lambda name: "nodes" if name in PER_ATOM else None if name in FIXED else name)
        for record in rows:
            survey.add(record)
        schema = survey.schema(rows.path, skip)
    return write(lambda: rows, out, options, source=path, total=len(rows), schema=schema)


class _Rows:
    """The rows of a database as records."""

    def __init__(self, path: str, selection: str, skip: tuple[str, ...]) -> None:
        self.path, self.selection, self.skip = path, selection, set(skip)
        self.results = set(library("ase.calculators.calculator", "ase", "from_ase").all_properties)
        if "://" not in path:
            existing(path, "a database of ASE")
        more = {}
        if path.endswith(".aselmdb"):
            library("ase_db_backends", "ase-db-backends", "from_ase")
            more["readonly"] = True
        try:
            self.database = library("ase.db", "ase", "from_ase").connect(path, use_lock_file=False, **more)
            self.count = self.database.count(selection or None)
        except ImportError:  # of the library of a server, which says what it is
            raise
        except Exception as error:  # of whichever database is behind it
            raise self._damaged(error) from error

    def _damaged(self, error: Exception, place: str = "") -> SourceError:
        return SourceError(self.path, place, "", "a database of ASE", f"one that it does not read ({type(error).__name__}: {error})")

    def __len__(self) -> int:
        return int(self.count)

    def __iter__(self) -> Iterator[Record]:
        last = 0
        try:
            for row in self._select():
                last = row.id
                yield Record(self.path, f"row {last}", self._values(row))
        except fencepost.Error:
            raise
        except Exception as error:
            raise self._damaged(error, f"behind row {last}") from error

    def _select(self) -> Iterator[Any]:
        if type(self.database).__name__ != "SQLite3Database":
            yield from self.database.select(self.selection or None)
            return
        # ASE holds all rows of one selection in memory.
        last: int | None = 0
        while last is not None:
            above, last = f"id>{last}", None
            for row in self.database.select(f"{above},{self.selection}" if self.selection else above, limit=PAGE):
                last = row.id
                yield row

    def _values(self, row: Any) -> dict[str, Any]:
        values: dict[str, Any] = {
            "id": int(row.id),
            "numbers": np.asarray(row.numbers, np.int64),
            "positions": np.asarray(row.positions, np.float64),
            "cell": np.asarray(row.cell, np.float64).reshape(3, 3),
            "pbc": np.asarray(row.pbc, np.bool_),
        }
        for name in (*OF_ATOMS, *sorted(self.results)):
            value = row.get(name)
            if value is not None:
                # SQLite has tags in 32 bits, the others have them as ASE does.
                values[name] = np.asarray(value, np.int64) if name == "tags" else value
        values |= row.key_value_pairs
        values |= {f"data.{name}": value for name, value in row.data.items()}
        return {name: value for name, value in values.items() if name not in self.skip}
