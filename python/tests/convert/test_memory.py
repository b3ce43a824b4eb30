"""Memory does not grow with the set: importers of 192 MiB, and an exporter, measured in processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the anonymous memory of a process is read from /proc")

MIB = 1 << 20
SAMPLES, ROWS = 768, 1024  # 256 KiB each
#: The writer's buffers are 32 MiB of it; a Parquet file is made by row groups, encoded and compressed beside.
LIMIT, EXPORT_LIMIT = 112 * MIB, 160 * MIB

MEASURE = """
import sys, threading, time
import fencepost.convert
def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))
function, source, out = sys.argv[1:]
function = getattr(fencepost.convert, function)
{warm}
before, peak, done = anonymous(), [0], threading.Event()
def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())
thread = threading.Thread(target=watch)
thread.start()
function(source, out)
done.set()
thread.join()
print(max(peak[0], anonymous()) - before)
"""


def grown(function: str, source: Path, out: Path, warm: str) -> int:
    """Anonymous memory that a call took beyond what its libraries have."""
    result = run(MEASURE.format(warm=warm), function, source, out)
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


def hdf5(path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["nodes_offsets"] = np.arange(SAMPLES + 1) * ROWS
        x = file.create_dataset("x", (SAMPLES * ROWS, 64), np.float32)
        for start in range(0, len(x), 1 << 16):
            x[start : start + (1 << 16)] = np.full((1 << 16, 64), start, np.float32)


def parquet(path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    schema = pa.schema([("x", pa.list_(pa.list_(pa.float32(), 64)))])
    flat = pa.array(np.arange(SAMPLES * ROWS * 64, dtype=np.float32))
    rows = pa.ListArray.from_arrays(np.arange(SAMPLES + 1, dtype=np.int32) * ROWS, pa.FixedSizeListArray.from_arrays(flat, 64))
    table = pa.table([rows.cast(schema.field("x").type)], schema=schema)
    # All of it in one row group, as a careless writer has it.
    pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=SAMPLES)


@pytest.mark.parametrize(
    ("make", "function", "warm"),
    [(hdf5, "from_hdf5", "import h5py"), (parquet, "from_parquet", "import pyarrow.parquet")],
    ids=["hdf5", "parquet"],
)
def test_importers(tmp_path: Path, make: Any, function: str, warm: str) -> None:
    source = tmp_path / "source"
    make(source)
    assert source.stat().st_size > 192 * MIB
    assert grown(function, source, tmp_path / "a.fence", warm) < LIMIT


def test_an_exporter(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import fencepost

    with fencepost.Writer(tmp_path / "a.fence") as writer:
        writer.extend({"x": np.full((ROWS, 64), index, np.float32)} for index in range(SAMPLES))
    assert grown("to_parquet", tmp_path / "a.fence", tmp_path / "a.parquet", "import pyarrow.parquet") < EXPORT_LIMIT
