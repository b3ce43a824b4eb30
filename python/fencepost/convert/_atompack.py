"""Databases of AtomPack."""

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

#: What every molecule has, under AtomPack's own names.
ALWAYS: dict[str, tuple[str, Shape]] = {"atomic_numbers": ("u8", ["nodes"]), "positions": ("f32", ["nodes", 3])}
#: What a molecule may have, besides properties of the user's.
SOMETIMES = ("energy", "forces", "charges", "velocities", "cell", "stress", "pbc", "name")
PER_ATOM = {"forces", "charges", "velocities"}


def from_atompack(
    path: Path, out: Path, *, skip: tuple[str, ...] = (), **options: Unpack[WriteOptions]
) -> fencepost.Dataset:
    """Writes the molecules of an AtomPack database (`.atp`) to a file, and opens it.

    A molecule becomes `atomic_numbers` [nodes], `positions` [nodes, 3] and what of this it has: `energy`, `forces`, `charges`,
    `velocities`, `cell`, `stress`, `pbc`, and properties under their own names, those of atoms along `nodes`. What some molecules lack is an optional
    attribute: unless a schema is given, they are read twice, first for what there is. dtypes are AtomPack's.

    Args:
        path: the file.
        skip: attributes to leave out.
        options: see `WriteOptions`.

    Raises:
        SourceError: the database is damaged, or a value has no place in a file.
    """
    atompack = library("atompack", "atompack-db", "from_atompack")
    molecules = _Molecules(atompack, os.fspath(path), skip)
    schema = None
    if options.get("schema") is None:
        survey = Survey(ALWAYS, lambda name: "nodes" if name in molecules.per_atom else None)
        for record in molecules:
            survey.add(record)
        schema = survey.schema(molecules.path, skip)
    return write(lambda: molecules, out, options, source=path, total=len(molecules), schema=schema)


class _Molecules:
    """The molecules of a database as records."""

    def __init__(self, atompack: Any, path: str, skip: tuple[str, ...]) -> None:
        self.path, self.skip = path, set(skip)
        #: Names of what goes along the atoms, as far as they have been met. AtomPack has one schema for all molecules.
        self.per_atom = set(PER_ATOM)
        existing(path, "a database of AtomPack")
        try:
            self.database = atompack.Database.open(path)
            self.count = len(self.database)
        except BaseException as error:
            if not _failed(error):
                raise
            raise SourceError(path, "", "", "a database of AtomPack", f"one that it does not open ({error})") from error
        if self.count == 0:
            # What AtomPack opens when a file is cut off.
            raise SourceError(path, "", "", "molecules", "none: the file is empty or cut off")

    def __len__(self) -> int:
        return int(self.count)

    def __iter__(self) -> Iterator[Record]:
        for index in range(self.count):
            try:
                values = self._values(self.database[index])
            except BaseException as error:
                if not _failed(error):
                    raise
                raise SourceError(self.path, f"molecule {index}", "", "a whole record", f"one that is not read ({error})") from error
            yield Record(self.path, f"molecule {index}", values)

    def _values(self, molecule: Any) -> dict[str, Any]:
        values: dict[str, Any] = {"atomic_numbers": molecule.atomic_numbers, "positions": molecule.positions}
        for name in SOMETIMES:
            value = getattr(molecule, name, None)
            if value is not None:
                values[name] = np.array(value, np.bool_) if name == "pbc" else value
        self.per_atom.update(molecule.property_keys(scope="atom"))
        for name in molecule.property_keys():
            values[name] = molecule.get_property(name)
        return {name: value for name, value in values.items() if name not in self.skip}


def _failed(error: BaseException) -> bool:
    """Whether AtomPack failed, and nobody interrupted it: it also panics, which is no Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
