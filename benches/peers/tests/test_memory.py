"""Files leave the page cache when they are told to, and it is seen when they do not."""

import mmap

import pytest

from peers import memory


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").write_bytes(bytes(8 << 20))
    return tmp_path


def test_a_file_that_nobody_has_mapped_leaves(folder):
    memory.forget(folder)


def test_a_file_that_somebody_has_mapped_is_named(folder):
    with open(folder / "data", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) == 0
        with pytest.raises(memory.StillCached, match="stay in the page cache"):
            memory.forget(folder)


def test_sizes_are_those_of_all_files(folder):
    (folder / "more").write_bytes(b"12345")
    assert memory.sizes(folder) | {"on_disk": 0} == {"files": 2, "file_bytes": (8 << 20) + 5, "on_disk": 0}
