"""One file a system. `load` imports only the one that is asked for, so that no two libraries share a process."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..system import System

#: Name -> module and class, in the order in which they are measured.
SYSTEMS = {
    "fencepost": ("fencepost", "Mapped"),
    "pyg-inmemory": ("pyg_inmemory", "InMemory"),
    "pyg-inmemory-warm": ("pyg_inmemory", "InMemoryWarm"),
    "pyg-ondisk-schema": ("pyg_ondisk", "Schema"),
    "pyg-ondisk-pickle": ("pyg_ondisk", "Pickle"),
    "numpy-gather": ("numpy_memmap", "Gather"),
    "numpy-sample": ("numpy_memmap", "PerSample"),
    "packed-pread": ("packed_pread", "PackedPread"),
    "lmdb": ("lmdb_store", "Raw"),
    "lmdb-pickle": ("lmdb_store", "Pickled"),
    "atompack": ("atompack_db", "Atompack"),
    "atompack-zstd": ("atompack_db", "AtompackZstd"),
    "lance": ("lance_dataset", "Lance"),
    "hdf5": ("hdf5", "Hdf5"),
    "arrayrecord": ("arrayrecord", "ArrayRecord"),
    "bagz": ("bagz_file", "Bagz"),
    "pyarrow": ("arrow", "Arrow"),
    "hf-datasets": ("hf_datasets", "HuggingFace"),
    "tensordict": ("tensordict_memmap", "TensorDictMemmap"),
    "safetensors": ("safetensors_file", "Safetensors"),
    "litdata": ("litdata_chunks", "LitData"),
    "mds": ("mds", "Mds"),
    "webdataset": ("webdataset_tar", "WebDataset"),
    "fencepost-resident": ("fencepost", "Resident"),
    "fencepost-positional": ("fencepost", "Positional"),
    "fencepost-narrow": ("fencepost", "Narrow"),
    "fencepost-convert": ("fencepost", "Convert"),
}
OURS = "fencepost"


def load(name: str) -> type[System]:
    """Raises ImportError where the system's package is not installed."""
    module, kind = SYSTEMS[name]
    return getattr(importlib.import_module(f".{module}", __name__), kind)


def system(name: str, fields: tuple, folder: Path) -> System:
    return load(name)(fields, folder)
