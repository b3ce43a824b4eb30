"""What the README shows of Python runs."""

from __future__ import annotations

import re

from conftest import ROOT, run


def test_the_example_runs(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## In Python")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert blocks, "the section has an example"
    result = run("\n".join(blocks), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "1000 samples, (18, 16)"


def test_the_version_is_the_workspaces():
    import fencepost

    [version] = re.findall(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)[:1]
    assert fencepost.__version__ == version
