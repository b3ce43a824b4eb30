"""The page and its plots from a record that is small enough to reckon by hand."""

import xml.etree.ElementTree as tree

import pytest

from peers.report.losses import losses_lines, lost, reason, sizes_lines
from peers.report.page import page, pictures
from peers.report.read import read
from peers.report.table import entry, plain
from peers.pair import save
from peers.settings import FULL
from peers.statistics import ratio


def record(peer="lmdb", **cells):
    def written(title, size):
        about = {"title": title, "use": "as told", "natural": "views", "natural_batch": "list", "distribution": None}
        return {"about": about, "bytes": 1000, "file_bytes": size, "on_disk": size, "files": 1, "rate": 5e6, "peak": 1 << 20, "samples": 10}

    made = {
        name: {"ours": ours, "peer": theirs, "more": {"ours": [{"n": 1}] * len(ours), "peer": [{"n": 1}] * len(theirs)}, "failed": failed}
        for name, (ours, theirs, failed) in cells.items()
    }
    return {
        "format": 1,
        "set": {"name": "qm9", "title": "a set", "samples": 10, "bytes": 1000, "scale": 1.0},
        "peer": peer,
        "when": "2026-11-30",
        "took": 3.0,
        "machine": {"virtual": True, "cpu": "a processor", "cores": 2, "memory": 1 << 34, "kernel": "6", "filesystem": "ext4", "disk": "/dev/vda", "load": 0.1},
        "versions": {"python": "3.11", "torch": "2", "torch_geometric": "2", "numpy": "2"},
        "settings": FULL.record(),
        "written": {"ours": written("fencepost, mapped", 1100), "peer": written(f"system {peer}", 500)},
        "cells": made,
    }


@pytest.fixture
def records(tmp_path):
    one = record(
        epoch0=([100.0, 110.0, 120.0], [10.0, 10.0, 10.0], {}),
        get_data=([5.0, 5.0, 5.0], [10.0, 10.0, 10.0], {}),
        open=([1.0, 1.0, 1.0], [4.0, 4.0, 4.0], {}),
        limited=([7.0], [], {"peer": "killed by signal SIGKILL in limited"}),
        memory=([0.0, 0.0, 0.0], [3e6, 3e6, 3e6], {}),
    )
    save(one, tmp_path / "peers" / "qm9" / "lmdb.json")
    save(record("lance", epoch0=([100.0] * 3, [100.0] * 3, {})), tmp_path / "peers" / "qm9" / "lance.json")
    gone = {"format": 1, "set": {"name": "qm9", "scale": 1.0}, "peer": "bagz", "when": "2026-11-30", "settings": {}, "skipped": "it is not installed"}
    save(gone, tmp_path / "peers" / "qm9" / "bagz.json")
    return tmp_path


def test_ratios_say_how_many_times_better_ours_is(records):
    found = read(records / "peers")["qm9"]["lmdb"]
    assert (ratio(found, "epoch0").median, ratio(found, "get_data").median) == (11.0, 0.5)
    assert ratio(found, "open").median == 4.0, "less is better: their four milliseconds against our one"
    assert ratio(found, "limited") is None
    assert ratio(found, "epoch2") is None


def test_a_cell_without_figures_says_why(records):
    found = read(records / "peers")["qm9"]["lmdb"]
    assert entry(found, "limited") == "killed by signal SIGKILL in limited"
    assert entry(found, "epoch0").startswith("**11.0 [10.0, 12.0]**")


def test_losses_are_those_whose_whole_interval_is_below_one(records):
    found = read(records / "peers")
    assert [(cell, set_name, one["peer"]) for cell, set_name, one in lost(found)] == [("get_data", "qm9", "lmdb")]
    assert any("0.50 [0.50, 0.50]" in line and reason("get_data", "lmdb") in line for line in losses_lines(found))
    assert reason("epoch0", "lmdb") == "not looked into yet", "a loss that nobody expected"
    assert "2.20 times smaller" in sizes_lines(found)[2], "1,100 bytes against 500"


def test_where_ours_failed_and_the_other_did_not_is_a_loss(records):
    one = record("hdf5", limited=([], [5.0, 5.0, 5.0], {"ours": "killed by signal SIGKILL in limited"}))
    save(one, records / "peers" / "qm9" / "hdf5.json")
    assert any("system hdf5" in line and "SIGKILL" in line for line in losses_lines(read(records / "peers")))


def test_the_page_has_every_peer_and_reason(records):
    text = page(read(records / "peers"), records / "rust.json", "plots")
    for wanted in ("system lmdb", "system lance", "bagz on `qm9`: it is not installed.", "## Where we lose, and why", "## What to pick instead of us, when"):
        assert wanted in text, wanted
    assert "**missed**" not in text.split("InMemoryDataset")[0]


def test_pictures_are_well_formed(records):
    made = pictures(read(records / "peers"))
    assert set(made) == {"qm9-epoch0.svg", "qm9-get-data.svg"}
    for svg in made.values():
        assert tree.fromstring(svg).tag.endswith("svg")


def test_a_terminal_gets_a_line_a_peer(records):
    assert {"lmdb", "lance"} <= {line.split()[0] for line in plain(records / "peers").splitlines() if line}


def test_no_records_make_no_page(tmp_path):
    with pytest.raises(ValueError, match="no record"):
        page({}, tmp_path / "rust.json", "plots")


def test_a_record_of_another_format_is_refused(records):
    path = records / "peers" / "qm9" / "lmdb.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(ValueError, match="format 1"):
        read(records / "peers")
