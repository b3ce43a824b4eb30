"""What PyG itself does with the same samples, and a comparison that lets nothing through."""

from __future__ import annotations

import os
import select
import signal
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.data import BaseData
from torch_geometric.edge_index import EdgeIndex
from torch_geometric.index import Index

BACKINGS = ("mapped", "positional", "resident")


class Reference(InMemoryDataset):
    """PyG's own data set of these samples."""

    def __init__(self, samples: list[BaseData], transform: Any = None) -> None:
        super().__init__(None, transform)
        self.data, self.slices = self.collate(samples)


def bits(value: Tensor) -> bytes:
    """The bytes of a tensor, so that -0.0 and the payloads of NaN count."""
    value = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""


def same(ours: Any, theirs: Any, where: str = "value") -> None:
    """Fails, naming the place, unless both are equal in type, dtype, shape and bits."""
    if isinstance(theirs, BaseData):
        same_data(ours, theirs, where)
        return
    assert type(ours) is type(theirs) or (isinstance(theirs, dict) and isinstance(ours, dict)), (
        f"{where}: {type(ours)} is not {type(theirs)}"
    )
    if isinstance(theirs, Tensor):
        assert ours.dtype == theirs.dtype, f"{where}: {ours.dtype} is not {theirs.dtype}"
        assert ours.shape == theirs.shape, f"{where}: {tuple(ours.shape)} is not {tuple(theirs.shape)}"
        assert ours.layout == theirs.layout, where
        if isinstance(theirs, EdgeIndex):
            for fact in ("_sparse_size", "_sort_order", "_is_undirected", "_cat_metadata"):
                mine, its = getattr(ours, fact), getattr(theirs, fact)
                if fact == "_cat_metadata" and its is not None:
                    mine, its = [list(map(_plain, part)) for part in mine], [list(map(_plain, part)) for part in its]
                elif fact == "_sparse_size":
                    mine, its = tuple(mine), tuple(its)
                assert mine == its, f"{where}.{fact}: {mine} is not {its}"
            ours, theirs = ours.as_tensor(), theirs.as_tensor()
        elif isinstance(theirs, Index):
            for fact in ("_dim_size", "_is_sorted", "_cat_metadata"):
                assert getattr(ours, fact) == getattr(theirs, fact), f"{where}.{fact}"
            ours, theirs = ours.as_tensor(), theirs.as_tensor()
        if theirs.layout != torch.strided:
            ours, theirs = ours.to_dense(), theirs.to_dense()
        assert bits(ours) == bits(theirs), f"{where}: {ours} is not {theirs}"
    elif isinstance(theirs, Mapping):
        assert list(ours) == list(theirs), f"{where}: keys {list(ours)} are not {list(theirs)}"
        for key in theirs:
            same(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), f"{where}: {len(ours)} items, not {len(theirs)}"
        for place, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
            same(mine, its, f"{where}[{place}]")
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, where
        assert ours.tobytes() == theirs.tobytes(), where
    elif isinstance(theirs, float):
        assert np.float64(ours).tobytes() == np.float64(theirs).tobytes(), f"{where}: {ours!r} is not {theirs!r}"
    else:
        assert ours == theirs, f"{where}: {ours!r} is not {theirs!r}"


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, (tuple, list)) else value


def same_data(ours: BaseData, theirs: BaseData, where: str = "data") -> None:
    assert type(ours) is type(theirs), f"{where}: {type(ours)} is not {type(theirs)}"
    mine, its = ours.stores, theirs.stores
    assert [store._key for store in mine] == [store._key for store in its], where
    for a, b in zip(mine, its, strict=True):
        assert type(a) is type(b), where
        assert a._parent() is ours, f"{where}: a store without its parent"
        assert list(a._mapping) == list(b._mapping), f"{where}[{a._key}]: keys {list(a._mapping)} are not {list(b._mapping)}"
        for key in b._mapping:
            same(a._mapping[key], b._mapping[key], f"{where}[{a._key}].{key}")
        assert a.__dict__.get("_num_nodes") == b.__dict__.get("_num_nodes"), where


def same_batch(ours: Any, theirs: Any, where: str = "batch") -> None:
    """All of a batch: values, order of keys, and what is needed to take it apart."""
    same_data(ours, theirs, where)
    assert ours.num_graphs == theirs.num_graphs == len(ours)
    for name in ("_slice_dict", "_inc_dict"):
        mine, its = dict(getattr(ours, name)), getattr(theirs, name)
        # A store without attributes is left out by PyG, which then fails to take the batch apart.
        mine = {key: value for key, value in mine.items() if key in its or value != {}}
        same(mine, its, f"{where}.{name}")


def batch_of(reference: Reference, indices: list[int], **options: Any) -> Any:
    return Batch.from_data_list([reference[i] for i in indices], **options)


def molecule(nodes: int, seed: int = 0, **more: Any) -> Data:
    """A graph with the attributes of QM9."""
    generator = torch.Generator().manual_seed(1000 * seed + nodes)
    edges = max(0, 2 * nodes)
    return Data(
        x=torch.randn(nodes, 11, generator=generator),
        edge_index=torch.randint(0, max(nodes, 1), (2, edges), generator=generator),
        edge_attr=torch.randn(edges, 4, generator=generator),
        pos=torch.randn(nodes, 3, generator=generator),
        y=torch.randn(1, 19, generator=generator),
        **more,
    )


def molecules(count: int) -> list[Data]:
    return [molecule(1 + (7 * i) % 13, i) for i in range(count)]


def in_child(work: Callable[[], Any], timeout: float = 120) -> tuple[int, str]:
    """Runs work in a forked child: its exit code, and the text of what it returned, or of its exception.

    A child may die or hang without taking the tests with it, and starts in no time; an interpreter of its own would import torch
    for seconds.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            os.setpgid(0, 0)
            try:
                text, code = str(work()), 0
            except BaseException:
                text = traceback.format_exc()
            os.write(writing, text.encode()[-60_000:])
        finally:
            os._exit(code)
    os.close(writing)
    text = b""
    try:
        while select.select([reading], [], [], timeout)[0]:
            part = os.read(reading, 65536)
            if not part:
                break
            text += part
        else:
            os.killpg(child, signal.SIGKILL)
            text += f"no end after {timeout} s".encode()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text.decode()
    finally:
        os.close(reading)
