from __future__ import annotations

import importlib.util

import pytest

collect_ignore_glob = []
if not all(importlib.util.find_spec(name) for name in ("torch", "torch_geometric")):
    # `make test` runs these in an environment that has both.
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(params=("mapped", "positional", "resident"))
def backing(request: pytest.FixtureRequest) -> str:
    return str(request.param)
