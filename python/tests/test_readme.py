"""What the README shows of Python runs."""

from __future__ import annotations

import re

from conftest import ROOT, run


def test_the_example_runs(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    sections = [text.split(f"## {title}")[1].split("\n## ")[0] for title in ("In Python", "Growing, and several processes")]
    blocks = [block for section in sections for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL)]
    assert len(blocks) >= len(sections), "each has an example"
    result = run("\n".join(blocks), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "1000 samples, (18, 16)"
    assert result.stdout.splitlines()[-1] == "1200 samples, doubled"


def test_the_version_is_the_workspaces():
    import fencepost

    [version] = re.findall(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)[:1]
    assert fencepost.__version__ == version
