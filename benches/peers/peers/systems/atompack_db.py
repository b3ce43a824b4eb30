"""AtomPack: molecules with positions, atomic numbers and properties."""

from __future__ import annotations

import atompack
import numpy as np

from ..system import System, as_data, groups


class Atompack(System):
    name = "atompack"
    title = "AtomPack"
    distribution = "atompack-db"
    use = (
        "positions from pos; atomic numbers, which no set has, as zeros; everything else as properties, of atoms or of the molecule; "
        "added by 1,000 in parallel, flushed once, Database.open as it comes; batches by get_molecules, because its flat batches refuse "
        "properties whose shape varies; spawned workers, because they hang in a forked one"
    )
    natural = "Molecule, lazy; its arrays are copies"
    natural_batch = "list of Molecules, by get_molecules"
    opens_in_worker = True
    start_method = "spawn"
    compression = "none"

    @classmethod
    def refuses(cls, fields):
        return None if any(field.name == "pos" for field in fields) else "its samples are atoms with positions, which this set has not"

    def write(self, samples, count):
        database = atompack.Database(str(self.folder / "data.atp"), compression=self.compression, overwrite=True)
        for group in groups(samples, 1000):
            database.add_molecules([self._molecule(sample) for sample in group])
        database.flush()

    def _molecule(self, sample):
        molecule = atompack.Molecule.from_arrays(sample["pos"], np.zeros(len(sample["pos"]), np.uint8))
        for field in self.fields:
            if field.name != "pos":
                scope = "atom" if field.along == "nodes" else "molecule"
                molecule.set_property(field.name, sample[field.name], scope=scope)
        return molecule

    def open(self):
        self.database = atompack.Database.open(str(self.folder / "data.atp"))

    def close(self):
        self.database = None

    def get(self, index):
        return self.database[int(index)]

    def arrays(self, sample):
        return {
            field.name: sample.positions if field.name == "pos" else sample.get_property(field.name) for field in self.fields
        }

    def batch(self, indices):
        return self.database.get_molecules([int(index) for index in indices])

    def data_list(self, indices):
        return [as_data(self.arrays(molecule)) for molecule in self.batch(indices)]


class AtompackZstd(Atompack):
    name = "atompack-zstd"
    title = "AtomPack, zstd"
    use = "the same with compression='zstd' at its default level"
    compression = "zstd"
