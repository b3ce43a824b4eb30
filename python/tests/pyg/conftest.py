from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from .support import BACKINGS  # noqa: E402


@pytest.fixture(params=BACKINGS)
def backing(request: pytest.FixtureRequest) -> str:
    return str(request.param)
