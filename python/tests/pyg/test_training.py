"""The example that trains on both data sets: it fails unless the losses are equal in every bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_example_gives_the_same_losses():
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / "python" / "train_gin.py"), "--epochs", "2"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("1000 molecules, 52 features, 2 classes\n")
