"""Loaders: order, epochs, ranks, states, errors."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from conftest import graphs, write
from test_batch import check

import fencepost


def order(loader) -> list[int]:
    return [index for batch in loader for index in batch.indices.tolist()]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_every_sample_once_an_epoch(dataset, samples, workers):
    loader = fencepost.Loader(dataset, 8, shuffle=True, seed=5, num_workers=workers)
    epochs = []
    for _ in range(3):
        assert len(loader) == 7
        indices = []
        for batch in loader:
            check(batch, [samples[index] for index in batch.indices])
            indices += batch.indices.tolist()
        assert sorted(indices) == list(range(50))
        epochs.append(indices)
    assert epochs[0] != epochs[1] != epochs[2] and loader.epoch == 3
    loader.set_epoch(0)
    assert order(loader) == epochs[0]
    assert order(fencepost.Loader(dataset, 8, shuffle=True, seed=5, num_workers=2)) == epochs[0]
    assert order(fencepost.Loader(dataset, 8, shuffle=True, seed=6)) != epochs[0]


def test_orders(dataset):
    assert order(fencepost.Loader(dataset, 7)) == list(range(50))
    assert order(fencepost.Loader(dataset, 7, drop_last=True)) == list(range(49))
    assert order(fencepost.Loader(dataset, 7, indices=[4, -1, 4])) == [4, 49, 4]
    assert sorted(order(fencepost.Loader(dataset, 7, shuffle=True, indices=range(10, 20)))) == list(range(10, 20))
    blocks = order(fencepost.Loader(dataset, 5, block_shuffle=(5, 2)))
    assert sorted(blocks) == list(range(50)) and blocks != list(range(50))
    weights = np.zeros(50)
    weights[[3, 9]] = 1
    drawn = order(fencepost.Loader(dataset, 5, weights=weights, num_samples=40))
    assert len(drawn) == 40 and set(drawn) == {3, 9}
    assert order(fencepost.Loader(dataset[10:20], 3)) == list(range(10))


def test_batches_by_size(dataset, samples):
    nodes = [len(sample["x"]) for sample in samples]
    for batch in fencepost.Loader(dataset, max_per_batch={"nodes": 40, "edges": 90}):
        assert batch.ptr("nodes")[-1] <= 40 and batch.ptr("edges")[-1] <= 90
    assert max(len(batch.indices) for batch in fencepost.Loader(dataset, 2, max_per_batch={"nodes": 40})) == 2
    with pytest.raises(fencepost.Error, match="nodes"):
        list(fencepost.Loader(dataset, max_per_batch={"nodes": 5}))
    left = order(fencepost.Loader(dataset, max_per_batch={"nodes": 5}, oversize="skip"))
    assert sorted(left) == [index for index, count in enumerate(nodes) if count <= 5]
    near = fencepost.Loader(dataset, 5, shuffle=True, bucket_by="nodes")
    spread = [np.ptp([nodes[index] for index in batch.indices]) for batch in near]
    far = [np.ptp([nodes[index] for index in batch.indices]) for batch in fencepost.Loader(dataset, 5, shuffle=True)]
    assert np.mean(spread) < np.mean(far) / 2


def test_ranks_share_an_epoch(dataset):
    ranks = [order(fencepost.Loader(dataset, 4, shuffle=True, rank=rank, world_size=3)) for rank in range(3)]
    assert sorted(sum(ranks, [])) == list(range(50))
    padded = [fencepost.Loader(dataset, 4, shuffle=True, rank=rank, world_size=3, pad_ranks=True) for rank in range(3)]
    assert len({len(loader) for loader in padded}) == 1 and len({len(order(loader)) for loader in padded}) == 1


@pytest.mark.parametrize("taken", [0, 1, 4, 6, 7])
def test_states(dataset, taken):
    options = {"batch_size": 8, "shuffle": True, "seed": 3}
    whole = fencepost.Loader(dataset, **options)
    expected = [batch.indices.tolist() for _ in range(2) for batch in whole]
    loader = fencepost.Loader(dataset, num_workers=2, **options)
    found, iteration = [], iter(loader)
    for _ in range(taken):
        found.append(next(iteration).indices.tolist())
    state = json.loads(json.dumps(loader.state_dict()))
    del iteration
    again = fencepost.Loader(dataset, num_workers=0, **options)
    again.load_state_dict(state)
    while len(found) < len(expected):
        found += [batch.indices.tolist() for batch in again]
    assert found == expected
    other = fencepost.Loader(dataset, 8, shuffle=True, seed=4)
    with pytest.raises(fencepost.LoaderStateError, match="sampler"):
        other.load_state_dict(state)
    with pytest.raises(fencepost.LoaderStateError):
        other.load_state_dict({"a": 1})


@pytest.mark.parametrize(
    "options",
    [
        {"oversize": "x"}, {"on_error": "x"}, {"num_samples": 3}, {"weights": [1.0] * 50, "shuffle": True}, {"batch_size": 0},
        {"drop_last": True, "pad_ranks": True}, {"bucket_by": 3}, {"block_shuffle": 4}, {"weights": [1.0]}, {"rank": 2, "world_size": 2},
        {"indices": [50]}, {"max_per_batch": {"z": 3}}, {"follow_batch": ["z"]}, {"world_size": 0},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_cannot_be(dataset, options):
    with pytest.raises((ValueError, LookupError, fencepost.Error)):
        fencepost.Loader(dataset, **options)


def test_bad_samples_stop_or_are_skipped(path):
    dataset = fencepost.open(path)
    offset, *_ = dataset.locate(7)["mask"]
    damaged = bytearray(path.read_bytes())
    damaged[offset] = 7  # no bool
    path.unlink()
    path.write_bytes(damaged)
    dataset = fencepost.open(path)
    for workers in (0, 2):
        with pytest.raises(fencepost.BatchError, match="sample 7 cannot be batched.*expected 0 or 1") as caught:
            list(fencepost.Loader(dataset, 4, num_workers=workers))
        assert caught.value.sample == 7 and isinstance(caught.value.__cause__, fencepost.FormatError)
        loader = fencepost.Loader(dataset, 4, num_workers=workers, on_error="skip")
        assert order(loader) == [index for index in range(50) if index != 7]
        [(sample, reason)] = loader.skipped
        assert sample == 7 and "expected 0 or 1" in reason and loader.metrics().skipped == 1
    with pytest.raises(fencepost.FormatError) as caught:
        dataset[7]
    assert caught.value.code == "bool"
    with pytest.raises(fencepost.FormatError):
        dataset["mask"]


def test_metrics_and_ends(dataset):
    loader = fencepost.Loader(dataset, 8, resident_budget=1 << 20)
    iteration = iter(loader)
    assert iteration.__length_hint__() == 7
    next(iteration)
    iteration.close()
    assert list(iteration) == []
    assert loader.metrics().batches == 1 and "1 batches, 8 samples" in str(loader.metrics())
    assert repr(loader).startswith("Loader(50 samples")


def test_no_thread_starts_before_iteration_and_all_end_with_it(path):
    from pathlib import Path

    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir())) if Path("/proc/self/task").exists() else 0

    before = threads()
    dataset = fencepost.open(path)
    loader = fencepost.Loader(dataset, 4, num_workers=3)
    assert threads() == before
    iteration = iter(loader)
    next(iteration)
    if before:
        assert threads() == before + 3
    del iteration
    deadline = time.monotonic() + 10
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() == before


def test_larger_files_through_few_buffers(tmp_path):
    samples = graphs(3000, seed=2)
    dataset = fencepost.open(write(tmp_path / "a.fence", samples))
    places = set()
    for batch in fencepost.Loader(dataset, 10, num_workers=2, shuffle=True):
        places.add(batch["x"].__array_interface__["data"][0])
    assert len(places) < 100, "300 batches share the memory of those that are gone, whichever field it was of"
