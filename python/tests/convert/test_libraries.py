"""Without the libraries: importing works, and each function says what to install. Runs where only numpy is."""

from __future__ import annotations

import re

import pytest
from conftest import run

import fencepost.convert

NEEDS = {
    "from_pt": "torch torch_geometric", "from_lmdb": "lmdb", "from_ase": "ase", "from_atompack": "atompack-db", "from_hdf5": "h5py",
    "from_arrow": "pyarrow", "from_parquet": "pyarrow", "from_huggingface": "datasets", "to_arrow": "pyarrow", "to_ipc": "pyarrow",
    "to_parquet": "pyarrow", "to_huggingface": "datasets",
}  # fmt: skip


def test_each_function_is_known():
    assert set(NEEDS) == {name for name in fencepost.convert.__all__ if re.match("(from|to)_", name)}


def test_importing_needs_none_of_them_and_each_function_says_what_it_needs(path):
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torch_geometric", "lmdb", "ase", "atompack", "h5py", "pyarrow", "datasets"):
            raise ImportError(f"{name} was imported")
sys.meta_path.insert(0, Refuse())
import fencepost.convert as convert
for name in convert.__all__:
    if name.startswith(("from_", "to_")):
        arguments = [sys.argv[1]] if name in ("to_arrow", "to_huggingface") else [sys.argv[1], sys.argv[1] + ".out"]
        try:
            getattr(convert, name)(*arguments)
        except ImportError as error:
            print(error)
"""
    result = run(code, path)
    assert result.returncode == 0, result.stderr
    told = dict(re.findall(r"^fencepost\.convert\.(\w+) needs .*: pip install (.*)$", result.stdout, re.MULTILINE))
    assert told == NEEDS


def test_no_function_imports_what_the_package_could_have():
    """A fork in the middle of a thread's import leaves the child waiting for the module without end."""
    code = """
import sys, pkgutil, fencepost.convert as convert
print(*[name for _, name, _ in pkgutil.iter_modules(convert.__path__) if "fencepost.convert." + name not in sys.modules])
"""
    result = run(code)
    assert result.stdout.split() == ["__main__"], result.stderr


@pytest.mark.parametrize("name", ["from_pt", "from_lmdb"])
def test_pickles_are_off(name):
    import inspect

    assert inspect.signature(getattr(fencepost.convert, name)).parameters["allow_pickle"].default is False
