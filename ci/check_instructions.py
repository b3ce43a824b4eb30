"""Count the instructions of opening, getting and collating over fixed inputs, and hold them against the committed counts.

    python3 ci/check_instructions.py            the check of `make check`
    python3 ci/check_instructions.py --bless    write the counts of this commit into benches/instructions/expected.json

Counts do not drift with the machine's load, so a slower path is seen on any machine. Callgrind (valgrind) counts; where it is
not installed, or on another architecture than that of the committed counts, nothing is checked, and a loud line says so.
A count may leave its value by the tolerance in that file, and by the wider one when another compiler has made the program.
Fewer instructions than that fail too: a gain is committed, or the next loss hides behind it.

Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXPECTED = ROOT / "benches" / "instructions" / "expected.json"
CASES = ("open", "get", "read", "collate")
PACKAGE = "fencepost-instructions"


def skip(reason: str) -> None:
    print(f"check_instructions: NOT CHECKED: {reason}; so a slower path would not be seen by this run")


def build() -> Path:
    flags = os.environ.get("CARGO_FLAGS", "").split()
    command = ["cargo", "build", *flags, "--quiet", "--release", "--package", PACKAGE, "--message-format=json"]
    result = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = map(json.loads, result.stdout.splitlines())
    return next(Path(message["executable"]) for message in messages if message.get("executable"))


def compiler() -> str:
    """Version and commit: nightlies of one version differ."""
    told = subprocess.run(["rustc", "--version"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return told.strip()


def count(program: Path, case: str, folder: str) -> int:
    command = [
        "valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=fencepost_instructions::case_*",
        "--callgrind-out-file=/dev/null", str(program), case, folder,
    ]  # fmt: skip
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    collected = re.search(r"Collected\s*:\s*(\d+)", result.stderr)
    if result.returncode or not collected or not int(collected[1]):
        sys.exit(f"check_instructions: callgrind has not counted the case {case} (exit code {result.returncode}):\n{result.stderr}")
    return int(collected[1])


def measure() -> dict[str, int]:
    program = build()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "write", folder], check=True)
        return {case: count(program, case, folder) for case in CASES}


def compare(counts: dict[str, int], expected: dict[str, int], tolerance: float) -> list[str]:
    """A line for each count that is out of bounds."""
    return [
        f"{case}: {counts[case]:,} instructions, {counts[case] / expected[case] - 1:+.1%} of the committed {expected[case]:,}"
        for case in CASES
        if abs(counts[case] / expected[case] - 1) > tolerance
    ]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--bless", action="store_true", help="commit to the counts of now")
    options = arguments.parse_args()
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
        return 2 if options.bless else 0
    committed = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {"tolerance": 0.03, "other_compiler": 0.15}
    if not options.bless and committed["architecture"] != platform.machine():
        skip(f"the committed counts are of {committed['architecture']}, and this is {platform.machine()}")
        return 0
    counts, rustc = measure(), compiler()
    if options.bless:
        facts = {"architecture": platform.machine(), "compiler": rustc, "instructions": counts}
        EXPECTED.write_text(json.dumps(committed | facts, indent=2) + "\n")
        return 0
    tolerance = committed["tolerance"]
    if rustc != committed["compiler"]:
        tolerance = committed["other_compiler"]
        print(f"check_instructions: made by {rustc}, not by {committed['compiler']}: a tolerance of {tolerance:.0%} instead of "
              f"{committed['tolerance']:.0%}")  # fmt: skip
    wrong = compare(counts, committed["instructions"], tolerance)
    for line in wrong:
        print(f"check_instructions: {line}", file=sys.stderr)
    if wrong:
        print("check_instructions: look for the cause with callgrind_annotate; if the change is meant, run\n"
              "    python3 ci/check_instructions.py --bless\nand say in the commit why", file=sys.stderr)  # fmt: skip
        return 1
    told = ", ".join(f"{case} {counts[case] / committed['instructions'][case] - 1:+.1%}" for case in CASES)
    print(f"check_instructions: {len(CASES)} cases within {tolerance:.0%} ({told})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
