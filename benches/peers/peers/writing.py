"""The process that writes a whole set and checks what it wrote: `python -m peers.writing SYSTEM SET SCALE FOLDER`."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path


def main(name: str, set_name: str, scale: float, folder: Path) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    import torch

    from . import memory, workloads
    from .check import check
    from .sets import SETS
    from .systems import load

    def answer(told: dict) -> None:
        answers.write(json.dumps(told) + "\n")
        answers.flush()
        # Threads and pools of libraries may not want to end.
        os._exit(0)

    torch.set_num_threads(1)
    made = SETS[set_name]
    try:
        kind = load(name)
    except ImportError as error:
        answer({"refused": f"its package cannot be imported: {error}"})
    if refusal := kind.refuses(made.fields):
        answer({"refused": refusal})
    source = made.make(made.scaled(scale))
    told = workloads.write(kind, made.fields, source, folder)
    system = kind(made.fields, folder)
    system.open_anew()
    compared = check(system, source)
    system.shut()
    about = {key: getattr(system, key) for key in ("title", "use", "natural", "natural_batch", "distribution", "random_access")}
    told |= memory.sizes(folder) | {"compared": compared, "samples": len(source), "about": about}
    answer(told)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4]))
