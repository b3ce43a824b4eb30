"""The process of one system: `python -m peers.child SYSTEM SET SCALE FOLDER`. Reads one command a line, answers one line each.

Its parent's side is `Child`. A child that dies, or says nothing for too long, is an answer too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any


class Failed(RuntimeError):
    """The child could not do it; the reason goes into the record."""


class Child:
    """A process that serves one system. Leave it by `stop`, or as a context manager."""

    def __init__(self, system: str, set_name: str, scale: float, folder: Path) -> None:
        self.system = system
        command = [sys.executable, "-W", "ignore", "-m", "peers.child", system, set_name, str(scale), str(folder)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).resolve().parents[1], start_new_session=True
        )

    def ask(self, do: str, patience: float = 120, **arguments: Any) -> dict[str, Any]:
        """Raises Failed."""
        self.tell(do, **arguments)
        return self.answer(do, patience)

    def tell(self, do: str, **arguments: Any) -> None:
        try:
            self.process.stdin.write(json.dumps({"do": do} | arguments).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has died, or was stopped; `answer` says what became of it

    def answer(self, do: str, patience: float = 120) -> dict[str, Any]:
        if self.process.stdout.closed:
            raise Failed(f"its process has ended before {do}")
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        if not ready:
            self.stop(kill=True)
            raise Failed(f"no answer to {do} in {patience:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            what = f"killed by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            raise Failed(f"{what} in {do}")
        told = json.loads(line)
        if "error" in told:
            raise Failed(told["error"])
        return told

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self, kill: bool = False) -> None:
        """Ends it, and the workers that it started: they are in its own session."""
        if not kill and self.alive:
            self.tell("exit")
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(name: str, set_name: str, scale: float, folder: Path) -> None:
    # Libraries print what they like; answers have a way of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    from . import limit, memory, workloads
    from .sets import SETS
    from .systems import load

    torch.set_num_threads(1)
    made = SETS[set_name]
    count, kind = made.scaled(scale), load(name)
    system = kind(made.fields, folder)

    def ready() -> dict[str, Any]:
        return {"pid": os.getpid()}

    def start() -> dict[str, Any]:
        memory.warm(folder)
        begin = time.perf_counter()
        system.open_anew()
        opened = time.perf_counter() - begin
        system.warm_up()
        return {"first_open_milliseconds": opened * 1e3}

    def write(part: int, folder: str) -> dict[str, Any]:
        return workloads.write(kind, made.fields, made.make(min(part, count)), Path(folder))

    commands = {
        "ready": ready,
        "start": start,
        "open": lambda **more: workloads.opening(system, **more),
        "get": lambda **more: workloads.get(system, count, **more),
        "batch": lambda **more: workloads.batch(system, count, **more),
        "epoch": lambda **more: workloads.epoch(system, count, **more),
        "cold": lambda **more: workloads.cold(system, count, **more),
        "touch": lambda **more: workloads.touch(system, count, **more),
        "memory": memory.proportional,
        "limited": lambda **more: workloads.limited(system, count, **more),
        "close": lambda: system.shut() or {},
        "write": write,
        "join": lambda procs: limit.join(procs) or {},
    }
    for line in sys.stdin:
        command = json.loads(line)
        do = command.pop("do")
        if do == "exit":
            break
        try:
            told = commands[do](**command)
        except Exception as error:
            traceback.print_exc()
            told = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        answers.write(json.dumps(told) + "\n")
        answers.flush()
    # Threads and pools of libraries may not want to end.
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4]))
