"""Data sets of other formats to files, and back.

    from fencepost.convert import from_lmdb, from_parquet, to_arrow

    dataset = from_lmdb("is2re/train", "is2re.fence", allow_pickle=True)
    table = to_arrow(dataset)

| format | in | out | library |
| --- | --- | --- | --- |
| `.pt` of PyTorch Geometric | `from_pt` | `fencepost.pyg.export` | torch, torch_geometric |
| LMDB (Open Catalyst, OGB; numpy, JSON, raw) | `from_lmdb` | | lmdb |
| ASE (`.db`, `.json`, `.aselmdb`) | `from_ase` | | ase |
| AtomPack (`.atp`) | `from_atompack` | | atompack-db |
| HDF5, arrays with offsets | `from_hdf5` | | h5py |
| Arrow, its IPC files | `from_arrow` | `to_arrow`, `to_ipc` | pyarrow |
| Parquet | `from_parquet` | `to_parquet` | pyarrow |
| Hugging Face datasets | `from_huggingface` | `to_huggingface` | datasets |

All stream: memory does not grow with the set. A file appears under its name when it is complete; what fails leaves what was there.
A source from a stranger runs no code: pickles are refused unless `allow_pickle=True`. The libraries are imported by the functions that
need them. numpy's files are read and written by the command line (`fencepost import npz`).
"""

from __future__ import annotations

from ._arrow_in import from_arrow, from_parquet
from ._arrow_out import to_arrow, to_ipc, to_parquet
from ._ase import from_ase
from ._atompack import from_atompack
from ._errors import PickleError, SourceError
from ._hdf5 import from_hdf5
from ._huggingface import from_huggingface, to_huggingface
from ._lmdb import from_lmdb
from ._pt import from_pt
from ._write import WriteOptions

__all__ = [
    "PickleError",
    "SourceError",
    "WriteOptions",
    "from_arrow",
    "from_ase",
    "from_atompack",
    "from_hdf5",
    "from_huggingface",
    "from_lmdb",
    "from_parquet",
    "from_pt",
    "to_arrow",
    "to_huggingface",
    "to_ipc",
    "to_parquet",
]
