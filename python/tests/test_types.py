"""The package is typed, its stubs are those of what was built, and users' code is checked by them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import ROOT

import fencepost

pytest.importorskip("mypy")
pytest.importorskip("torch")  # fencepost.torch is checked against torch's own types

PACKAGE = Path(fencepost.__file__).parent


def python(*arguments: object) -> subprocess.CompletedProcess:
    environment = os.environ | {"MYPYPATH": str(PACKAGE.parent), "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent, env=environment, check=False, timeout=600)


def mypy(*arguments: object, tmp_path) -> subprocess.CompletedProcess:
    cache = os.environ.get("FENCEPOST_MYPY_CACHE", tmp_path)
    return python("-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", cache, *arguments)


def test_the_package_is_well_typed(tmp_path):
    result = mypy("-p", "fencepost", tmp_path=tmp_path)
    assert result.returncode == 0, result.stdout
    assert (PACKAGE / "py.typed").is_file()


def test_the_stubs_are_those_of_the_module():
    result = python("-m", "mypy.stubtest", "--concise", "fencepost._fencepost")
    assert result.returncode == 0, result.stdout


def test_code_of_users_is_checked(tmp_path):
    good = """
        import numpy as np
        import fencepost

        with fencepost.Writer("a.fence", metadata={"a": 1}) as writer:
            writer.append({"x": np.zeros(3)}, axes={"nodes": 3})
        dataset: fencepost.Dataset = fencepost.open("a.fence", backing="mapped")
        view: fencepost.Dataset = dataset[10:20]
        x: dict[str, object] = dataset[3]
        other: fencepost.Dataset = dataset[np.ones(3, bool)]
        for batch in fencepost.Loader(dataset, batch_size=3, max_per_batch={"nodes": 3}):
            total: int = batch.num_samples
    """
    bad = """
        import fencepost

        fencepost.open("a.fence", backing="fast")
        fencepost.Loader(fencepost.open("a"), batchsize=3)
        fencepost.open("a").ok
    """
    (tmp_path / "good.py").write_text(textwrap.dedent(good))
    (tmp_path / "bad.py").write_text(textwrap.dedent(bad))
    # Not what pyproject names as packages, but these files.
    options = ["-m", "mypy", "--config-file", os.devnull, "--strict", "--cache-dir", os.environ.get("FENCEPOST_MYPY_CACHE", tmp_path)]
    result = python(*options, tmp_path / "good.py")
    assert result.returncode == 0, result.stdout
    result = python(*options, tmp_path / "bad.py")
    errors = [line for line in result.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 3 and all("bad.py" in line for line in errors), result.stdout
