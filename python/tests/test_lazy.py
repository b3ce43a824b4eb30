"""Lazy verification: damage is an exception when it is first read, not before, and nothing else is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import BACKINGS, ROOT, write

import fencepost

BLOCK = 65536
# Blocks of 16,384 values of f32 each; a sample has more than one block, so that the middle one's bytes are its own.
LENGTH = 3 * BLOCK // 4


@pytest.fixture
def damaged(tmp_path) -> Path:
    """Four samples; one bit in the middle of sample 2's values is another. The arena is the first section."""
    samples = [{"x": np.full(LENGTH, index, np.float32), "y": np.array([index])} for index in range(4)]
    path = write(tmp_path / "damaged.fence", samples)
    start, length, shape, _ = fencepost.open(path).locate(2)["x"]
    assert (length, shape) == (LENGTH * 4, (LENGTH,))
    content = bytearray(path.read_bytes())
    content[start + length // 2] ^= 1
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("backing", BACKINGS)
def test_a_flipped_bit_is_an_exception_at_the_first_touch_of_its_sample(damaged, backing):
    trusting = fencepost.open(damaged, backing)
    assert not np.array_equal(trusting[2]["x"], np.full(LENGTH, 2, np.float32))

    dataset = fencepost.open(damaged, backing, verify="lazy")
    assert len(dataset) == 4 and dataset.backing == backing
    for index in (0, 1, 3):
        assert np.array_equal(dataset[index]["x"], np.full(LENGTH, index, np.float32))
        assert np.array_equal(dataset.read(index)["x"], np.full(LENGTH, index, np.float32))
    # Each time, and by every way to it.
    for touch in (
        lambda: dataset[2],
        lambda: dataset[2],
        lambda: dataset[-2],
        lambda: dataset.read(2),
        lambda: dataset[1:][1],
        lambda: dataset.select([2])[0],
        lambda: dataset.project("x")[2],
        lambda: dataset["x"],
        lambda: dataset[2:3]["x"],
        lambda: list(dataset),
        lambda: dataset.head(),
    ):
        with pytest.raises(fencepost.FormatError, match="damaged.fence") as refused:
            touch()
        assert refused.value.code == "checksum" and isinstance(refused.value, ValueError)
    for batch in (lambda: dataset.batch([0, 2]), lambda: list(fencepost.Loader(dataset, 2))):
        with pytest.raises(fencepost.BatchError, match="sample 2") as refused:
            batch()
        assert isinstance(refused.value.__cause__, fencepost.FormatError) and refused.value.__cause__.code == "checksum"
    # What has no byte in the block is read: another attribute of the sample, and batches of others.
    assert dataset.project("y")[2]["y"] == 2
    assert dataset["y"].tolist() == [0, 1, 2, 3]
    assert dataset.batch([0, 1, 3])["y"].tolist() == [0, 1, 3]
    assert not dataset.verify().ok


@pytest.mark.parametrize("backing", BACKINGS)
def test_pickles_go_on_verifying(damaged, backing):
    view = pickle.loads(pickle.dumps(fencepost.open(damaged, backing, verify="lazy")[1:]))
    assert view[0]["y"] == 1
    with pytest.raises(fencepost.FormatError):
        view[1]
    assert pickle.loads(pickle.dumps(fencepost.open(damaged, backing)))[2]["y"] == 2


def test_what_is_read_does_not_depend_on_it(path, samples):
    plain, lazy = fencepost.open(path), fencepost.open(path, verify="lazy")
    for index in range(len(samples)):
        assert plain.axes_of(index) == lazy.axes_of(index) and plain.locate(index) == lazy.locate(index)
        assert all(np.array_equal(value, lazy[index][name]) for name, value in plain[index].items())


def test_a_damaged_table_of_checksums_is_refused_at_once():
    vector = ROOT / "format-spec" / "vectors" / "hostile" / "crc_of_table.fence"
    for backing in BACKINGS:
        assert len(fencepost.open(vector, backing)) > 0
        with pytest.raises(fencepost.FormatError, match="crc_of_table"):
            fencepost.open(vector, backing, verify="lazy")


def test_it_is_asked_for_by_its_name(path):
    for wrong in ("full", "LAZY", "", "none"):
        with pytest.raises(ValueError, match="verify"):
            fencepost.open(path, verify=wrong)
    for wrong in (True, 1):
        with pytest.raises(TypeError):
            fencepost.open(path, verify=wrong)
    with pytest.raises(TypeError):
        fencepost.open(path, "auto", "lazy")


WORKERS = """
import multiprocessing, sys
import fencepost

def touch(dataset):
    try:
        dataset[2]
    except fencepost.FormatError as error:
        return error.code

if __name__ == "__main__":
    dataset = fencepost.open(sys.argv[1], verify="lazy")
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(touch, [dataset]))
"""


def test_other_processes_verify_as_well(damaged, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    command = [sys.executable, script, damaged]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.stdout.splitlines() == ["['checksum']", "['checksum']"], result.stderr[-2000:]
