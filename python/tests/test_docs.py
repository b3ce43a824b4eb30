"""What the user guide shows of Python runs: all blocks of a page, one after the other."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT, run

PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
NEEDS = {"torch.md": ["torch"], "pyg.md": ["torch_geometric"], "from-in-memory.md": ["torch_geometric"], "convert.md": ["torch_geometric", "lmdb", "ase", "h5py", "datasets"]}


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_pages_are_found():
    assert {"python.md", "loading.md", *NEEDS} <= set(PAGES)
    assert len(blocks("python.md")) >= 5


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_the_blocks_of_a_page_run(page, tmp_path):
    for module in NEEDS.get(page, []):
        pytest.importorskip(module)
    result = run("\n".join(blocks(page)), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
