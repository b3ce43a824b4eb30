"""The command line: `python -m peers.report --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .page import page, pictures
from .read import read

ROOT = Path(__file__).resolve().parents[4]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m peers.report", description="BENCHMARKS.md and its plots, from records")
    parser.add_argument("--records", type=Path, default=ROOT / "benches/records", help="the folder with peers/ and rust.json")
    parser.add_argument("--out", type=Path, default=ROOT / "BENCHMARKS.md")
    parser.add_argument("--plots", type=Path, default=ROOT / "benches/plots")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is not what the records make")
    options = parser.parse_args()
    records = read(options.records / "peers")
    try:
        text = page(records, options.records / "rust.json", options.plots.relative_to(options.out.parent).as_posix())
    except ValueError as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    made = {options.out: text} | {options.plots / name: svg for name, svg in pictures(records).items()}
    if options.check:
        stale = [str(path) for path, content in made.items() if not path.exists() or path.read_text() != content]
        for path in stale:
            print(f"report: {path} is not what the records make: run make bench-report", file=sys.stderr)
        return 1 if stale else 0
    options.plots.mkdir(parents=True, exist_ok=True)
    for path, content in made.items():
        path.write_text(content)
    print(f"report: {options.out} and {len(made) - 1} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
