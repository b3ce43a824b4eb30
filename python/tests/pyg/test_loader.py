"""`DataLoader` against PyG's, native and not, with workers of every kind."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import fencepost.pyg
import pytest
import torch
import torch_geometric.loader
from fencepost.pyg import DataLoader, MappedDataset, PygError
from torch_geometric.data import Batch, Data, HeteroData

from .support import Reference, in_child, molecules, same, same_batch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    MappedDataset.save(molecules(50), tmp_path / "a.fence")
    return tmp_path / "a.fence"


OPTIONS: list[dict[str, Any]] = [
    {},
    {"batch_size": 7},
    {"batch_size": 7, "drop_last": True},
    {"batch_size": 7, "shuffle": True},
    {"batch_size": 64, "shuffle": True},
    {"batch_size": 7, "follow_batch": ["x", "edge_index"]},
    {"batch_size": 7, "exclude_keys": ["pos", "y"]},
    {"batch_size": 7, "num_workers": 0, "pin_memory": False},
    {"batch_size": 7, "sampler": [4, 4, 0, 49, 17]},
    {"batch_sampler": [[1, 2], [49], [3, 3, 3]]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("subset", [None, slice(5, 41, 3)])
def test_equal_to_pyg(path: Path, options: dict[str, Any], subset: slice | None, backing: str) -> None:
    ours, theirs = fencepost.pyg.open(path, backing=backing), Reference(molecules(50))
    if subset is not None:
        if "sampler" in options or "batch_sampler" in options:
            pytest.skip("indices of the whole set")
        ours, theirs = ours[subset], theirs[subset]
    loaders = DataLoader(ours, **options), torch_geometric.loader.DataLoader(theirs, **options)
    assert loaders[0].native
    assert len(loaders[0]) == len(loaders[1])
    for epoch in range(2):
        results = []
        for loader in loaders:
            torch.manual_seed(epoch)
            results.append(list(loader))
        assert len(results[0]) == len(results[1])
        for mine, its in zip(*results, strict=True):
            same_batch(mine, its)
            same(mine[0], its[0])


def test_generators_and_samplers(path: Path) -> None:
    ours, theirs = fencepost.pyg.open(path), Reference(molecules(50))
    for make in (
        lambda dataset: {"shuffle": True, "generator": torch.Generator().manual_seed(3)},
        lambda dataset: {"sampler": torch.utils.data.DistributedSampler(dataset, 3, 1, seed=4)},
        lambda dataset: {"sampler": torch.utils.data.WeightedRandomSampler(torch.arange(50.0), 20)},
        lambda dataset: {"sampler": torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=30)},
        lambda dataset: {"sampler": torch.utils.data.SubsetRandomSampler([3, 4, 5])},
    ):
        results = []
        for loader, dataset in ((DataLoader, ours), (torch_geometric.loader.DataLoader, theirs)):
            torch.manual_seed(9)
            results.append([batch.y for batch in loader(dataset, batch_size=8, **make(dataset))])
        for mine, its in zip(*results, strict=True):
            same(mine, its)


def test_batches_can_be_used_as_pyg_uses_them(path: Path) -> None:
    batch = next(iter(DataLoader(fencepost.pyg.open(path), batch_size=8)))
    theirs = next(iter(torch_geometric.loader.DataLoader(Reference(molecules(50)), batch_size=8)))
    assert repr(batch) == repr(theirs)
    same(batch[3], theirs[3])
    same(batch[[1, 2]], theirs[[1, 2]])
    same(batch[torch.tensor([True] + [False] * 6 + [True])], theirs[torch.tensor([True] + [False] * 6 + [True])])
    same(batch.index_select(slice(2, 4)), theirs.index_select(slice(2, 4)))
    same_batch(batch.clone(), theirs)
    same_batch(batch.to("cpu"), theirs)
    same_batch(pickle.loads(pickle.dumps(batch)), theirs)
    batch.x.add_(1)
    batch.extra = torch.ones(3)
    assert "extra" in batch and batch.extra.sum() == 3
    assert batch.num_nodes == theirs.num_nodes and batch.num_edges == theirs.num_edges
    # A batch outlives its loader and its data set.
    del theirs
    assert batch.to_data_list()[7].num_nodes > 0


def test_a_transform_is_loaded_as_pyg_does_it(path: Path) -> None:
    def transform(data: Data) -> Data:
        return Data(x=data.x * 2, y=data.y)

    with pytest.warns(UserWarning, match="made by PyG in Python, because it has a transform"):
        loader = DataLoader(fencepost.pyg.open(path, transform), batch_size=8)
    assert not loader.native
    theirs = torch_geometric.loader.DataLoader(Reference(molecules(50), transform), batch_size=8)
    for mine, its in zip(loader, theirs, strict=True):
        same_batch(mine, its)


def test_other_reasons_for_pygs_way(path: Path) -> None:
    dataset = fencepost.pyg.open(path)
    loader = DataLoader(dataset, batch_size=8)
    dataset.transform = lambda data: data
    with pytest.warns(UserWarning, match="from here on, because it has a transform"):
        assert len(list(loader)) == 7
    dataset.transform = None
    dataset._data.x = dataset._data.x + 1
    with pytest.warns(UserWarning, match="held in memory"):
        batch = next(iter(DataLoader(dataset, batch_size=2)))
    same(batch.x, torch.cat([data.x + 1 for data in molecules(2)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(DataLoader(molecules(4), batch_size=2))) == 2
    with pytest.raises(PygError, match="max_nodes"):
        DataLoader(molecules(4), batch_size=2, max_nodes=5)


def test_increments_that_are_not_native(tmp_path: Path) -> None:
    samples = [Data(x=torch.ones(i + 1, 1), mask_index=torch.ones(2, dtype=torch.bool)) for i in range(6)]
    MappedDataset.save(samples, tmp_path / "b.fence")
    with pytest.warns(UserWarning, match="mask_index has dtype bool"):
        loader = DataLoader(fencepost.pyg.open(tmp_path / "b.fence"), batch_size=4)
    for mine, its in zip(loader, torch_geometric.loader.DataLoader(Reference(samples), batch_size=4), strict=True):
        same_batch(mine, its)


def test_limits(path: Path) -> None:
    dataset = fencepost.pyg.open(path)
    loader = DataLoader(dataset, batch_size=50, max_nodes=30)
    batches = list(loader)
    assert all(batch.num_nodes <= 30 for batch in batches)
    assert len(batches) == len(loader) > 3
    same(torch.cat([batch.y for batch in batches]), dataset.y)
    assert all(batch.num_edges <= 40 for batch in DataLoader(dataset, batch_size=50, max_edges=40, shuffle=True))
    assert len(list(DataLoader(dataset, batch_size=50, max_nodes=1))) == 50
    with pytest.raises(PygError, match="axis 'edges'"):
        MappedDataset.save([Data(x=torch.ones(1, 1))] * 2, path)
        DataLoader(fencepost.pyg.open(path), max_edges=4)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"shuffle": True, "seed": 7}, {}], ids=str)
def test_state(path: Path, options: dict[str, Any]) -> None:
    dataset = fencepost.pyg.open(path)
    loader = DataLoader(dataset, batch_size=8, **options)
    list(loader)
    seen = []
    for batch in loader:
        seen.append(batch.y)
        if len(seen) == 3:
            state = pickle.loads(pickle.dumps(loader.state_dict()))
    torch.manual_seed(1234)
    fresh = DataLoader(fencepost.pyg.open(path), batch_size=8, **options)
    fresh.load_state_dict(state)
    for mine, its in zip([batch.y for batch in fresh], seen[3:], strict=True):
        same(mine, its)
    # The epoch after it is whole again.
    assert len(list(fresh)) == 7
    MappedDataset.save(molecules(9), path)
    with pytest.raises(PygError, match="a state belongs to one file"):
        DataLoader(fencepost.pyg.open(path), batch_size=8).load_state_dict(state)


def test_seeded_order_depends_on_seed_and_epoch(path: Path) -> None:
    dataset = fencepost.pyg.open(path)

    def order(seed: int, epoch: int) -> list[float]:
        loader = DataLoader(dataset, batch_size=50, shuffle=True, seed=seed)
        loader.set_epoch(epoch)
        return [float(value) for batch in loader for value in batch.y[:, 0]]

    assert order(1, 0) == order(1, 0)
    loader = DataLoader(dataset, batch_size=50, shuffle=True, seed=1)
    # An epoch that was left early is over when the next begins.
    left = next(iter(loader)).y[:, 0].tolist()
    assert left == order(1, 0) and next(iter(loader)).y[:, 0].tolist() == order(1, 1)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4
    assert sorted(order(1, 0)) == sorted(order(2, 5)) == sorted(dataset.y[:, 0].tolist())


def test_training_is_the_same(path: Path) -> None:
    """The same seed gives the same batches in the same order, so every loss is equal to the last bit."""
    from torch_geometric.nn import GINConv, global_add_pool

    def losses(loader: Any) -> list[float]:
        torch.manual_seed(11)
        network = torch.nn.Sequential(torch.nn.Linear(11, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16))
        conv, out = GINConv(network), torch.nn.Linear(16, 19)
        optimizer = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=0.01)
        found = []
        for _ in range(3):
            for batch in loader:
                optimizer.zero_grad()
                pooled = global_add_pool(conv(batch.x, batch.edge_index), batch.batch, batch.num_graphs)
                loss = (out(pooled) - batch.y).pow(2).mean()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        return found

    ours = losses(DataLoader(fencepost.pyg.open(path), batch_size=8, shuffle=True))
    theirs = losses(torch_geometric.loader.DataLoader(Reference(molecules(50)), batch_size=8, shuffle=True))
    assert ours == theirs and len(set(ours)) == len(ours) == 21


def test_lightning(path: Path) -> None:
    lightning = pytest.importorskip("pytorch_lightning")
    from torch_geometric.data.lightning import LightningDataset

    class Model(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lin = torch.nn.Linear(11, 1)
            self.seen = 0

        def training_step(self, batch: Any, _: int) -> Any:
            self.seen += batch.num_graphs
            return self.lin(batch.x).pow(2).mean()

        def validation_step(self, batch: Any, _: int) -> None:
            pass

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    dataset = fencepost.pyg.open(path)
    options = {"max_epochs": 1, "logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    model = Model()
    lightning.Trainer(**options).fit(model, LightningDataset(dataset[:40], dataset[40:], batch_size=8))
    assert model.seen == 40
    lightning.Trainer(**options).fit(model, DataLoader(dataset, batch_size=8, shuffle=True))
    assert model.seen == 90


def test_hetero(tmp_path: Path) -> None:
    samples = []
    for i in range(9):
        data = HeteroData()
        data["a"].x = torch.randn(i + 1, 2)
        data["b"].num_nodes = i + 2
        data["a", "to", "b"].edge_index = torch.stack([torch.randint(0, i + 1, (i,)), torch.randint(0, i + 2, (i,))])
        data["a", "to", "b"].edge_attr = torch.randn(i, 1)
        data.y = i
        samples.append(data)
    MappedDataset.save(samples, tmp_path / "b.fence")
    ours = DataLoader(fencepost.pyg.open(tmp_path / "b.fence"), batch_size=4, follow_batch=["x"])
    assert ours.native
    # PyG cannot take a set with a store of `num_nodes` alone apart, so it batches the originals here.
    theirs = torch_geometric.loader.DataLoader(samples, batch_size=4, follow_batch=["x"])
    for mine, its in zip(ours, theirs, strict=True):
        for a, b in zip(mine.stores, its.stores, strict=True):
            same(a._mapping, b._mapping, str(a._key))
        assert [data["b"].num_nodes for data in mine.to_data_list()] == its["b"]._num_nodes


def load_in_workers(path: str, context: str) -> str:
    """PyG's and torch's loaders, in workers, after this process has used the data set and the native loader."""
    dataset = fencepost.pyg.open(path)
    same(dataset[3].y, dataset.y[3:4])
    native = iter(DataLoader(dataset, batch_size=8))
    next(native)
    # Persistent, because a spawned worker takes seconds to import torch.
    workers = 2 if context == "fork" else 1
    options = {"batch_size": 8, "num_workers": workers, "multiprocessing_context": context, "persistent_workers": True}
    for loader in (
        torch_geometric.loader.DataLoader(dataset[10:40], **options),
        torch.utils.data.DataLoader(dataset[10:40], collate_fn=Batch.from_data_list, **options),
    ):
        for _ in range(2):
            same(torch.cat([batch.y for batch in loader]), dataset.y[10:40])
    assert len(list(native)) == 6
    return "done"


def test_forked_workers(path: Path) -> None:
    assert in_child(lambda: load_in_workers(str(path), "fork")) == (0, "done")


def test_spawned_workers(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    folder = str(Path(__file__).parents[1])
    file.write_text(
        f"import sys\nsys.path.insert(0, {folder!r})\nfrom pyg.test_loader import load_in_workers\n"
        f"if __name__ == '__main__':\n    print(load_in_workers({str(path)!r}, 'spawn'))\n"
    )
    # In a process of its own: workers that hang must not take the tests with them.
    done = subprocess.run([sys.executable, file], check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stderr


def test_the_native_loader_in_a_forked_child(path: Path) -> None:
    dataset = fencepost.pyg.open(path)
    loader = DataLoader(dataset, batch_size=8)
    expected = dataset.y
    running = iter(loader)
    next(running)
    for _ in range(5):
        assert in_child(lambda: same(torch.cat([batch.y for batch in loader]), expected)) == (0, "None")
    assert len(list(running)) == 6


def test_threads_share_a_data_set(path: Path) -> None:
    dataset = fencepost.pyg.open(path)
    expected = dataset.y
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                same(torch.cat([batch.y for batch in DataLoader(dataset, batch_size=16)]), expected)
                same(dataset[7].y, expected[7:8])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_loaders_that_are_left_early(path: Path) -> None:
    dataset = fencepost.pyg.open(path)
    for _ in range(50):
        for _batch in DataLoader(dataset, batch_size=4, shuffle=True):
            break
