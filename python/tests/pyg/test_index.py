"""Indexing of every kind, against `InMemoryDataset`: the same samples, or the same exception."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fencepost.pyg
import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Subset
from torch_geometric.data import Data

from .support import Reference, same


def samples() -> list[Data]:
    return [Data(x=torch.full((1, 1), float(i)), y=torch.tensor([i])) for i in range(10)]


@pytest.fixture
def both(tmp_path: Path) -> tuple[Any, Any]:
    fencepost.pyg.MappedDataset.save(samples(), tmp_path / "a.fence")
    return fencepost.pyg.open(tmp_path / "a.fence"), Reference(samples())


def outcome(dataset: Any, index: Any) -> Any:
    """What an index gives: an exception's type, a sample's number, or a subset's numbers and the type of its indices."""
    try:
        found = dataset[index]
    except Exception as error:
        return type(error)
    if isinstance(found, Data):
        return int(found.y)
    return type(found._indices), [int(data.y) for data in found]


ONE = [0, 3, -1, -10, np.int64(3), np.int8(-2), np.uint8(3), np.uint64(3), True, False, torch.tensor(3), torch.tensor(-1), torch.tensor(2, dtype=torch.uint8)]
MANY = [
    slice(None), slice(2, 5), slice(-3, None), slice(None, None, -1), slice(8, 2, -2), slice(5, 5),
    slice(None, 0.5), slice(0.25, 0.75), slice(-0.2, None), slice(np.float64(0.3), None), slice(None, None, 3),
    torch.tensor([1, 5, -1]), torch.tensor([[1, 2], [3, 4]]), torch.tensor([], dtype=torch.int64),
    np.array([1, 5, -1]), np.array([[1, 2], [3, 4]]), np.array([], dtype=np.int64),
    torch.arange(10) % 3 == 0, np.arange(10) % 3 == 0, torch.tensor([True, False, True]), np.array([True]),
    torch.tensor([False] * 12), [3, 1, 1], (2, -1), range(1, 8, 3), [True, False, True], [], [np.int64(4)], [torch.tensor(4)],
    np.array(3),
]  # fmt: skip
WRONG = [
    10, -11, np.int64(10), torch.tensor(10), torch.tensor(1.0), 1.5, None, "1", {1}, (i for i in [1]), object(),
    slice(None, None, 0.5), torch.tensor([1], dtype=torch.int32), torch.tensor([1], dtype=torch.uint8), np.array([1], dtype=np.int32),
    np.array([1.0]), torch.tensor([1.0]), [10], [-11], torch.tensor([10]), np.array([-11]), torch.tensor([True] * 12), [1.0], ["a"],
]  # fmt: skip


@pytest.mark.parametrize("index", ONE + MANY + WRONG, ids=lambda index: f"{type(index).__name__} {index!r}"[:60])
def test_an_index(both: tuple[Any, Any], index: Any) -> None:
    ours, theirs = (outcome(dataset, index) for dataset in both)
    assert ours == theirs
    if any(index is item for item in WRONG):
        assert isinstance(ours, type) and issubclass(ours, Exception)
    # And once more on a subset.
    ours, theirs = (outcome(dataset[2:9], index) for dataset in both)
    assert ours == theirs


def test_subsets_of_subsets(both: tuple[Any, Any]) -> None:
    for chain in ([slice(2, 9), [1, 3, 5], 1], [torch.tensor([9, 0, 4]), slice(None, None, -1)], [slice(None, 0.5), np.arange(5) > 1, [0]]):
        ours, theirs = both
        for index in chain[:-1]:
            ours, theirs = ours[index], theirs[index]
        assert outcome(ours, chain[-1]) == outcome(theirs, chain[-1])


def test_names_lengths_and_iteration(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    for index in (slice(None), slice(3), slice(1), slice(0)):
        mine, its = ours[index], theirs[index]
        assert len(mine) == len(its)
        assert repr(mine).replace("MappedDataset", "Reference") == repr(its)
        assert [int(data.y) for data in mine] == [int(data.y) for data in its]
        assert mine.indices() == its.indices()
    assert isinstance(ours[2:5].indices(), range)


def test_shuffle_draws_what_pyg_draws(both: tuple[Any, Any]) -> None:
    results = []
    for dataset in both:
        torch.manual_seed(5)
        shuffled, permutation = dataset.shuffle(return_perm=True)
        results.append((permutation.tolist(), [int(data.y) for data in shuffled], [int(data.y) for data in dataset[4:].shuffle()]))
    assert results[0] == results[1]


def test_get_is_by_place_in_the_file(both: tuple[Any, Any]) -> None:
    ours, _ = both
    assert int(ours[5:].get(2).y) == 2
    for wrong in (10, -11, 10**30):
        with pytest.raises(IndexError):
            ours.get(wrong)


def test_many_at_once_see_the_subset_and_the_transform(both: tuple[Any, Any]) -> None:
    """OnDiskDataset's own ignore the subset: a loader of `ds[5:8]` gives samples 0, 1, 2 (issue 10621 of PyG)."""
    ours, _ = both
    subset = ours[5:8]
    subset.transform = lambda data: Data(y=-data.y)
    assert [int(data.y) for data in subset.__getitems__([0, 2])] == [-5, -7]
    for indices in ([0, 2], torch.tensor([0, 2]), np.array([0, 2]), slice(0, 3, 2), range(0, 3, 2)):
        assert [int(data.y) for data in subset.multi_get(indices)] == [-5, -7]
    loader = torch.utils.data.DataLoader(subset, batch_size=2, collate_fn=list)
    assert [int(data.y) for batch in loader for data in batch] == [-5, -6, -7]


def test_helpers_of_torch(both: tuple[Any, Any]) -> None:
    ours, _ = both
    joined = ours[:2] + ours[8:]
    assert isinstance(joined, ConcatDataset) and [int(data.y) for data in joined] == [0, 1, 8, 9]
    assert [int(data.y) for data in Subset(ours, [4, 2]).__getitems__([0, 1])] == [4, 2]


def test_datapipe(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    for mine, its in zip(ours.to_datapipe(), theirs.to_datapipe(), strict=True):
        same(mine, its)
