"""Every system writes 50 graphs, reads them and gives what went in: each in a process of its own, as in a measured run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from peers.sets import SETS
from peers.systems import SYSTEMS

HARNESS = Path(__file__).resolve().parents[1]
PROGRAM = """
import sys, json, pathlib, warnings
warnings.simplefilter("ignore")
from peers.check import check, check_epoch
from peers.sets import SETS
from peers.systems import system
name, set_name, folder = sys.argv[1:]
made = SETS[set_name]
refusal = type(one).refuses(made.fields) if (one := system(name, made.fields, pathlib.Path(folder))) else None
if refusal:
    print("refused:", refusal)
    sys.exit()
source = made.make(50)
one.prepare(source[0])
one.write(iter(source), 50)
one.open_anew()
print("compared", check(one, source), check_epoch(one, source))
one.shut()
"""


@pytest.mark.parametrize("set_name", ["qm9", "b3db"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_gives_back_what_it_was_given(name, set_name, tmp_path):
    command = [sys.executable, "-c", PROGRAM, name, set_name, str(tmp_path)]
    result = subprocess.run(command, cwd=HARNESS, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr[-3000:]
    last = result.stdout.strip().splitlines()[-1]
    if last.startswith("refused:"):
        assert name.startswith("atompack") and set_name == "b3db", last
    else:
        compared, graphs = map(int, last.split()[1:])
        assert compared >= 50 and graphs == 50
