"""Processes and threads: forks, spawns, signals, imports."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import BACKINGS, ROOT, run, same

import fencepost

FORKS = "fork" in multiprocessing.get_all_start_methods()


def test_importing_needs_numpy_alone():
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torch_geometric", "tqdm", "scipy", "pandas", "pyarrow"):
            raise ImportError(f"{name} was imported")
sys.meta_path.insert(0, Refuse())
import fencepost
for module in ("torch", "torch_geometric", "tqdm"):
    assert module not in sys.modules
try:
    import fencepost.torch
except ImportError as error:
    assert "pip install torch" in str(error), error
    print("told")
"""
    result = run(code)
    assert (result.returncode, result.stdout.strip()) == (0, "told"), result.stderr


def test_importing_does_not_import_torch_even_where_it_is_installed():
    result = run("import sys, fencepost; print('torch' in sys.modules, 'fencepost.torch' in sys.modules)")
    assert result.stdout.strip() == "False False", result.stderr


def test_no_call_imports_what_importing_could_have():
    """A fork in the middle of a thread's import leaves the child waiting for the module without end."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "python" / "src").glob("*.rs"))
    names = set(re.findall(r'\.import\((?:intern!\(py, )?"([\w.]+)"', sources))
    assert {"json", "fencepost._index", "fencepost._values"} <= names
    result = run("import sys, fencepost; print(*sorted(sys.modules))")
    # torch is imported by those who ask for tensors, and only then.
    assert names - set(result.stdout.split()) == {"fencepost._torch"}


def total(dataset: fencepost.Dataset) -> float:
    return sum(float(batch["x"].sum()) for batch in fencepost.Loader(dataset, 4, shuffle=True, num_workers=2))


def work(dataset: fencepost.Dataset, index: int) -> tuple[float, float, float]:
    return float(dataset[index]["x"].sum()), float(dataset.batch([index])["x"].sum()), total(dataset)


@pytest.mark.parametrize("method", [name for name in ("fork", "spawn", "forkserver") if name in multiprocessing.get_all_start_methods()])
def test_datasets_work_in_other_processes(path, method):
    for backing in BACKINGS if method == "fork" else ["mapped"]:
        dataset = fencepost.open(path, backing)
        expected = work(dataset, 4)
        iteration = iter(fencepost.Loader(dataset, 4, num_workers=3))
        next(iteration)  # threads of this process are at work while it forks
        with multiprocessing.get_context(method).Pool(2) as pool:
            # A worker that died would be replaced, and its task be waited for without end.
            found = pool.starmap_async(work, [(dataset, 4)] * 4, chunksize=1).get(timeout=60)
        assert found == [pytest.approx(expected, rel=1e-4)] * 4
        assert len(list(iteration)) == 12


@pytest.mark.skipif(not FORKS, reason="this system has no fork")
def test_fifty_forks_while_threads_are_at_work(path):
    """Whatever lock a thread holds at the moment of the fork, the child gets its batches and ends."""
    code = """
import os, signal, sys, threading, fencepost
signal.alarm(100)
dataset = fencepost.open(sys.argv[1], "mapped")
stop = threading.Event()
def busy():
    while not stop.is_set():
        dataset.batch(range(50)); dataset[3]
        for batch in fencepost.Loader(dataset, 4, num_workers=2): pass
threads = [threading.Thread(target=busy) for _ in range(2)]
loader = fencepost.Loader(dataset, 8, num_workers=2)
for thread in threads: thread.start()
for round in range(50):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        dataset.batch(range(9)); dataset.read(3)
        assert sum(batch.num_samples for batch in loader) == 50
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7, round
stop.set()
for thread in threads: thread.join()
print("fifty")
"""
    result = run(code, path, timeout=150)
    assert (result.returncode, result.stdout.strip()) == (0, "fifty"), result.stderr


@pytest.mark.skipif(not FORKS, reason="this system has no fork")
def test_forks_while_many_threads_wait(path):
    """A lock that keeps its waiters in a table of the process leaves the child with a table of threads that are not there."""
    code = """
import os, signal, sys, time, fencepost
signal.alarm(100)
dataset = fencepost.open(sys.argv[1])
waiting = [iter(fencepost.Loader(dataset, 1, num_workers=4, prefetch_factor=1)) for _ in range(10)]
for iteration in waiting: next(iteration)
time.sleep(0.2)  # until all 40 threads have nothing to do
for round in range(25):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        for workers in (1, 2, 4):
            assert sum(b.num_samples for b in fencepost.Loader(dataset, 1, num_workers=workers, prefetch_factor=1)) == 50
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7, round
print("all")
"""
    result = run(code, path, timeout=150)
    assert (result.returncode, result.stdout.strip()) == (0, "all"), result.stderr


@pytest.mark.skipif(not FORKS, reason="this system has no fork")
def test_an_iteration_of_the_parent_is_refused_in_the_child(path):
    code = """
import os, sys, fencepost
iteration = iter(fencepost.Loader(fencepost.open(sys.argv[1]), 4, num_workers=2))
next(iteration)
pid = os.fork()
if pid == 0:
    try:
        next(iteration)
    except fencepost.UnsupportedError as error:
        assert "forked" in str(error)
        del iteration
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert len(list(iteration)) == 12
print("refused")
"""
    result = run(code, path, timeout=60)
    assert (result.returncode, result.stdout.strip()) == (0, "refused"), result.stderr


def test_threads_share_a_dataset_and_an_iteration(path, samples):
    for backing in BACKINGS:
        dataset = fencepost.open(path, backing)
        seen, failures, lock = [], [], threading.Lock()
        iteration = iter(fencepost.Loader(dataset, 1, num_workers=2))

        def body(dataset=dataset, iteration=iteration, seen=seen, lock=lock, failures=failures):
            try:
                for batch in iteration:
                    index = int(batch.indices[0])
                    same(dataset.read(index), samples[index])
                    same(dataset[index], samples[index])
                    with lock:
                        seen.append(index)
            except BaseException as error:  # noqa: BLE001 - told by the test's own thread
                failures.append(error)

        threads = [threading.Thread(target=body) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failures and sorted(seen) == list(range(50))


def test_threads_share_a_writer(tmp_path, samples):
    path = tmp_path / "shared.fence"
    with fencepost.Writer(path) as writer:
        writer.append(samples[0])

        def body():
            for sample in samples[1:]:
                writer.append(sample)

        threads = [threading.Thread(target=body) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    dataset = fencepost.open(path)
    assert len(dataset) == 1 + 4 * 49 and dataset.verify().ok
    rows = sorted(sample["x"].tobytes() for sample in dataset[1:])
    assert rows == sorted(4 * [sample["x"].tobytes() for sample in samples[1:]])


@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind are not Windows'")
@pytest.mark.parametrize(
    "what",
    [
        "batches = iter(fencepost.Loader(dataset, 1, weights=[1.0] * len(dataset), num_samples=10**9, num_workers=1))\n"
        "for batch in batches: pass",
        "while True: dataset.verify()",
        "with fencepost.Writer(sys.argv[1] + '2') as w:\n    import itertools; w.extend(itertools.repeat(dataset.read(0)))",
    ],
)
def test_interrupts(path, what):
    code = f"import sys, fencepost\ndataset = fencepost.open(sys.argv[1])\nprint('ready', flush=True)\n{what}\n"
    process = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in errors
    assert not [name for name in os.listdir(path.parent) if name != path.name], "nothing of the writer is left"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind are not Windows'")
def test_waiting_for_a_batch_can_be_interrupted(path):
    code = """
import os, signal, sys, threading, time, fencepost
dataset = fencepost.open(sys.argv[1], "positional")
# One batch of a million samples that are read one by one: it takes much longer than the test waits.
rest = ["x", "edge_attr", "edge_index", "mask"]
loader = fencepost.Loader(dataset, 10**6, weights=[1.0] * 50, num_samples=10**6, num_workers=1, exclude_keys=rest)
iteration = iter(loader)  # kept: its end waits for the thread, which is not what is measured
told = []
def tell():
    told.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.2, tell).start()
try:
    next(iteration)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - told[0] < 1, loader.metrics().batches, flush=True)
    os._exit(0)
except fencepost.Error as error:
    print(error)
"""
    result = run(code, path, timeout=120)
    assert result.stdout.strip() == "interrupted True 0", (result.stdout, result.stderr)
    assert result.returncode == 0
