"""What comes out of a system equals what went in, in every form that is timed."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Batch

from .sets import Sample, Source
from .system import BATCH, System, as_data


class Different(AssertionError):
    """A system gave something else than what was written."""


def check(system: System, source: Source, seed: int = 5) -> int:
    """Compares samples from all over the set; the number of samples that were compared.

    Raises Different.
    """
    count = len(source)
    order = np.random.default_rng(seed).permutation(count)[:BATCH].tolist()
    if not system.random_access:
        return _in_order(system, source)
    for index in {0, count - 1, *order[:20]}:
        _same(system.arrays(system.get(index)), source[index], f"sample {index}")
        data = system.data(index)
        _same({name: data[name].numpy() for name in data.keys()}, source[index], f"sample {index} as Data")
    expected = Batch.from_data_list([as_data(source[index]) for index in order])
    wanted = {name: expected[name].numpy() for name in expected.keys()}
    natural = system.batch_arrays(system.batch(order))
    if isinstance(natural, list):
        if len(natural) != len(order):
            raise Different(f"{system.name}: a batch of {len(order)} has {len(natural)} samples")
        for index, sample in zip(order, natural, strict=True):
            _same(sample, source[index], f"sample {index} of a batch")
    else:
        _same(natural, wanted, "a batch", allow_more=True)
    batch = next(iter(system.pyg_batches([order])))
    _same({name: batch[name].numpy() for name in batch.keys()}, wanted, "a PyG batch")
    if batch.num_graphs != len(order):
        raise Different(f"{system.name}: a PyG batch of {len(order)} graphs says it has {batch.num_graphs}")
    return len(order) + 2


def check_epoch(system: System, source: Source) -> int:
    """An epoch has every sample once: the number of graphs, and a sum over each attribute that order does not change."""
    graphs, sums = 0, {}
    torch.manual_seed(0)
    for batch in system.loader(0, len(source)):
        graphs += batch.num_graphs
        for field in system.fields:
            if field.name != "edge_index":
                sums[field.name] = sums.get(field.name, 0) + batch[field.name].double().sum().item()
    if graphs != len(source):
        raise Different(f"{system.name}: an epoch has {graphs} graphs, expected {len(source)}")
    for name, total in sums.items():
        expected = sum(float(sample[name].sum(dtype=np.float64)) for sample in source)
        if not np.isclose(total, expected, rtol=1e-6, atol=1e-3):
            raise Different(f"{system.name}: the sum over {name} in an epoch is {total}, expected {expected}")
    return graphs


def _in_order(system, source: Source) -> int:
    compared = 0
    for index, sample in zip(range(min(BATCH, len(source))), system.in_order(), strict=False):
        _same(sample, source[index], f"sample {index}")
        compared += 1
    return compared


def _same(found: Sample, expected: Sample, what: str, allow_more: bool = False) -> None:
    missing = expected.keys() - found.keys()
    if missing or (not allow_more and found.keys() != expected.keys()):
        raise Different(f"{what}: found {sorted(found)}, expected {sorted(expected)}")
    for name, value in expected.items():
        got = found[name]
        if got.dtype != value.dtype or got.shape != value.shape or not np.array_equal(got, value):
            raise Different(f"{what}, {name}: found {got.dtype}{list(got.shape)}, expected {value.dtype}{list(value.shape)}, or other values")
