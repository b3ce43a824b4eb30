"""Make, or find again, a virtual environment with the given requirements, and print its interpreter's path.

The environment lives outside the checkout, in ${XDG_CACHE_HOME:-~/.cache}/fencepost/venvs, under a name made from the
requirements and the interpreter: a second clean checkout uses it at once, a changed requirement makes another one, and
nothing has to be invalidated.

It is complete if and only if its stamp is there, and the stamp is written last. So a run that was killed half-way
leaves an environment without a stamp, which the next run removes and makes anew. Only the holder of a lock makes one, so
that two runs at once do not write into the same folder; the lock goes away with its process and the tools that it
started, however they end (they hold the lock's descriptor too: killing only this script leaves pip at work for a while).
(Building aside and renaming would do without a lock, but environments hold absolute paths and cannot be moved.)

Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import venv
from contextlib import contextmanager
from pathlib import Path


def say(text: str) -> None:
    print(f"python_env: {text}", file=sys.stderr, flush=True)


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG rules ask for relative values to be ignored.
    if base and os.path.isabs(base):
        return Path(base) / "fencepost" / "venvs"
    return Path.home() / ".cache" / "fencepost" / "venvs"


def key(requirements: list[Path]) -> str:
    """A name for exactly this set of packages on exactly this interpreter."""
    digest = hashlib.sha256()
    # An environment points at the interpreter it was made from, so the same version elsewhere is another one.
    facts = [sys.implementation.name, platform.python_version(), platform.machine(), sys.base_prefix]
    for fact in facts:
        digest.update(fact.encode() + b"\0")
    for file in requirements:
        content = file.read_bytes()
        digest.update(len(content).to_bytes(8, "little") + content)
    return f"py{sys.version_info.major}.{sys.version_info.minor}-{digest.hexdigest()[:16]}"


def interpreter(env: Path) -> Path:
    return env / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@contextmanager
def exclusively(path: Path):
    """Hold a lock on `path`. The file stays: removing it would let two processes lock two files of one name."""
    with open(path, "a+b") as file:
        if os.name == "nt":
            import msvcrt

            while True:
                try:
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # gives up after ten tries
                    break
                except OSError:
                    say("waiting for another run that is making the same environment")
        else:
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another run that is making the same environment")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def works(env: Path, stamp: Path) -> bool:
    """Complete, and its interpreter still runs (the one it was made from may have been removed)."""
    if not stamp.is_file():
        return False
    try:
        run = subprocess.run([interpreter(env), "-c", ""], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return False
    return run.returncode == 0


def make(env: Path, stamp: Path, requirements: list[Path], lock: int) -> None:
    def run(command: list[object]) -> None:
        # stdout of this script is the answer, so the tools' talk goes to stderr.
        keep = () if os.name == "nt" else (lock,)
        words = [str(part) for part in command]
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True, pass_fds=keep)

    if env.exists():
        say(f"removing an unfinished or broken environment: {env}")
        stamp.unlink(missing_ok=True)  # first: from here on nobody takes it for complete
        shutil.rmtree(env)
    say(f"making {env}")
    try:
        import ensurepip  # noqa: F401

        own_pip = True
    except ImportError:
        own_pip = False  # some distributions ship pip and ensurepip as packages of their own
    venv.EnvBuilder(with_pip=False, symlinks=os.name != "nt").create(env)
    python = interpreter(env)
    if own_pip:
        run([python, "-m", "ensurepip", "--upgrade", "--default-pip"])
        pip: list[object] = [python, "-m", "pip"]
    else:
        pip = [sys.executable, "-m", "pip", "--python", python]
    wanted: list[object] = []
    for file in requirements:
        wanted += ["-r", file]
    run([*pip, "install", "--quiet", "--no-input", *wanted])
    run([*pip, "check"])
    stamp.write_text("".join(f"{file.name}\n" for file in requirements), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="print the path of a Python that has the given requirements")
    parser.add_argument("requirements", nargs="+", type=Path, help="requirements files of pip")
    arguments = parser.parse_args()
    requirements = [file.resolve() for file in arguments.requirements]
    for file in requirements:
        if not file.is_file():
            say(f"no such file: {file}")
            return 2

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        say(f"cannot make the cache folder {folder}: {error.strerror}; set XDG_CACHE_HOME to a folder that can be written")
        return 2
    env = folder / key(requirements)
    stamp = env / "complete"
    if not works(env, stamp):
        with exclusively(folder / f"{env.name}.lock") as lock:
            if not works(env, stamp):  # another run may have made it while we waited
                try:
                    make(env, stamp, requirements, lock)
                except subprocess.CalledProcessError as error:
                    say(f"failed with exit code {error.returncode}: {' '.join(error.cmd)}")
                    say("the packages come from the index that pip is configured for; the next run starts afresh")
                    return 2
    print(interpreter(env))
    return 0


if __name__ == "__main__":
    sys.exit(main())
