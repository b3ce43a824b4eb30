"""The command line: `python -m peers --help`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from . import schedule
from .sets import SETS
from .settings import FULL, SHORT
from .systems import OURS, SYSTEMS

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m peers", description="fencepost against other systems, one record a peer and set")
    parser.add_argument("--peer", action="append", choices=[name for name in SYSTEMS if name != OURS], help="again for more; all of the plan by default")
    parser.add_argument("--set", action="append", choices=list(SETS), help="again for more; all of the plan by default, qm9 with --short")
    parser.add_argument("--short", action="store_true", help="fewer and shorter rounds, a tenth of the samples, no cells that need a limit")
    parser.add_argument("--scale", type=float, help="this part of the samples")
    parser.add_argument("--records", type=Path, help="where records go: benches/records/peers, or target/peers/records with --short or --scale")
    parser.add_argument("--work", type=Path, help="a folder for files on a local disk; they are removed")
    parser.add_argument("--again", action="store_true", help="measure what has been recorded, too")
    parser.add_argument("--minutes", type=float, help="begin no pair after so many minutes")
    parser.add_argument("--outlook", action="store_true", help="say what is left and how long it takes, and end")
    options = parser.parse_args()
    settings = SHORT if options.short else FULL
    scale = options.scale or (0.1 if options.short else 1.0)
    # A kill by name ends it as Ctrl-C does: files and processes go away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    published = settings is FULL and scale == 1.0
    with tempfile.TemporaryDirectory(prefix="fencepost-peers-", dir=options.work) as work:
        job = schedule.Job(
            sets=tuple(options.set or (["qm9"] if options.short else schedule.PLAN)),
            peers=tuple(options.peer or ()),
            settings=settings,
            scale=scale,
            records=options.records or (ROOT / "benches/records/peers" if published else ROOT / "target/peers/records"),
            work=Path(work),
            again=options.again,
            minutes=options.minutes,
        )
        if options.outlook:
            print("\n".join(schedule.outlook(job)))
            return 0
        without = schedule.run(job)
    if options.short:
        from .report.table import plain

        print(plain(job.records))
    return 1 if without and options.peer else 0


if __name__ == "__main__":
    sys.exit(main())
