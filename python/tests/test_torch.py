"""Tensors: of samples, of batches, and the datasets and loaders of fencepost.torch."""

from __future__ import annotations

import gc
import json
import pickle

import numpy as np
import pytest
from conftest import BACKINGS, graphs, run, write

import fencepost
from fencepost import Attribute, Schema

torch = pytest.importorskip("torch")
import fencepost.torch  # noqa: E402

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "i8": torch.int8,
    "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
}  # fmt: skip


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def equal(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert (found.dtype, found.shape, bits(found)) == (expected.dtype, expected.shape, bits(expected))


@pytest.fixture
def tensors() -> dict[str, torch.Tensor]:
    raw = torch.randint(0, 2, (6, 32), dtype=torch.uint8, generator=torch.manual_seed(0))
    return {name: raw.view(dtype) if dtype != torch.bool else raw.bool() for name, dtype in DTYPES.items()}


@pytest.mark.parametrize("backing", BACKINGS)
def test_every_dtype_there_and_back(tmp_path, tensors, backing):
    path = write(tmp_path / "a.fence", [tensors, {name: tensor[:0] for name, tensor in tensors.items()}, tensors])
    dataset = fencepost.open(path, backing)
    assert {attribute.name: attribute.dtype for attribute in dataset.schema.attributes} == {name: name for name in DTYPES}
    for name, tensor in dataset.read_torch(0).items():
        equal(tensor, tensors[name])
        assert tensor.is_contiguous() and tensor.data_ptr() % 16 == 0
    for name, tensor in dataset.read_torch(1).items():
        equal(tensor, tensors[name][:0])
    batch = dataset.batch([2, 1, 0]).torch()
    for name, tensor in tensors.items():
        equal(batch[name], torch.cat([tensor, tensor]))


def test_tensors_as_they_come(tmp_path):
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    sample = {
        "grad": torch.nn.Parameter(base.clone()), "t": base.t(), "step": base[:, ::2], "expanded": torch.ones(1).expand(5),
        "conj": torch.tensor([1 + 2j]).conj(), "scalar": torch.tensor(3), "bf": base.bfloat16().t(), "sub": torch.nn.Parameter(base)[1:],
        "neg": torch.tensor([1 + 2j]).conj().imag,
    }  # fmt: skip
    dataset = fencepost.open(write(tmp_path / "a.fence", [sample]))
    for name, tensor in dataset.read_torch(0).items():
        equal(tensor, sample[name].detach().resolve_conj().resolve_neg())
    for wrong in (torch.eye(2).to_sparse(), torch.quantize_per_tensor(base, 0.1, 0, torch.qint8)):
        with fencepost.Writer(tmp_path / "b.fence") as writer, pytest.raises(TypeError, match="attribute 'x'"):
            writer.append({"x": wrong})
    with fencepost.Writer(tmp_path / "c.fence") as writer, pytest.raises(TypeError, match="list of tensors"):
        writer.append({"x": [base, base]})


def test_tensors_of_samples_are_the_callers(dataset, path, samples):
    before = path.read_bytes()
    for tensor in dataset.read_torch(1).values():
        tensor.fill_(1)
    for name, tensor in dataset.read_torch(1).items():
        equal(tensor, torch.from_numpy(samples[1][name]))
    assert path.read_bytes() == before
    assert dataset[torch.tensor([1])].indices.tolist() == [1] and len(dataset[torch.arange(50) < 3]) == 3
    assert dataset.batch(torch.tensor([3, 1])).indices.tolist() == [3, 1]


def test_batches_of_tensors_share_the_batch_memory(dataset):
    batch = dataset.batch(range(30))
    tensors = batch.torch()
    assert set(tensors) == set(batch.keys())
    for name, tensor in tensors.items():
        assert tensor.data_ptr() == batch[name].__array_interface__["data"][0] or not tensor.numel()
        tensor.add_(1) if tensor.dtype != torch.bool else tensor.fill_(True)
    assert batch["x"].tobytes() == tensors["x"].numpy().tobytes()
    place, x = tensors["x"].data_ptr(), tensors["x"]
    expected = x.clone()
    del batch, tensors, tensor
    gc.collect()
    assert dataset.batch(range(30)).torch()["x"].data_ptr() != place
    equal(x, expected)
    del x
    gc.collect()
    assert place in [t["x"].data_ptr() for t in [dataset.batch(range(30)).torch() for _ in range(3)]]


def test_slices_and_increments(dataset):
    batch = dataset.batch([4, 9, 2])
    slices, increments = batch.slices_torch(), batch.increments_torch()
    assert list(slices) == list(increments) == list(dataset.attributes)
    for name in slices:
        assert slices[name].tolist() == batch.slices(name).tolist() and slices[name].dtype == torch.int64
    assert increments["edge_index"].tolist() == batch.increments("edge_index").tolist()
    assert increments["x"].tolist() == [0, 0, 0]
    assert slices["x"].data_ptr() == slices["mask"].data_ptr(), "cut alike, one tensor"


def test_strings_in_batches(tmp_path):
    dataset = fencepost.open(write(tmp_path / "a.fence", [{"s": "a" * n, "x": torch.zeros(n)} for n in range(4)]))
    batch = dataset.batch([3, 0]).torch()
    assert batch["s"] == ["aaa", ""] and "s_offsets" not in batch


def test_lists_of_all_batches(path, dataset):
    held = [batch.torch() for batch in fencepost.Loader(dataset, 7)]
    whole = torch.from_numpy(np.array(dataset["x"]))
    equal(torch.cat([batch["x"] for batch in held]), whole)


def test_tensors_outlive_everything(path):
    code = """
import gc, sys, threading, torch, fencepost
dataset = fencepost.open(sys.argv[1])
held = [dataset.read_torch(1)["x"], dataset.batch([1])["x"], dataset.batch([1]).torch()["x"], torch.from_numpy(dataset["x"].copy())]
del dataset
gc.collect()
# The last reference goes in a thread, while others allocate.
totals = []
def body():
    while held: totals.append(float(held.pop().sum()))
threads = [threading.Thread(target=body) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(len(totals), len(set(round(t, 4) for t in totals)))
"""
    import os

    result = run(code, path, env=os.environ | {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"})
    assert (result.returncode, result.stdout.strip()) == (0, "4 2"), result.stderr


# fencepost.torch


@pytest.fixture
def meshes(tmp_path):
    """Samples of 200 KB and of few bytes."""
    generator = np.random.default_rng(1)
    sizes = [20000, 3, 30000, 0]
    samples = [
        {"pos": generator.random((n, 3), dtype=np.float32), "flag": generator.random(n * 5) < 0.5, "name": str(n), "bf": torch.ones(n * 3).bfloat16()}
        for n in sizes
    ]
    return samples, write(tmp_path / "meshes.fence", samples)


@pytest.mark.parametrize("zero_copy", [False, True])
def test_map_style_datasets(meshes, zero_copy):
    samples, path = meshes
    before = path.read_bytes()
    dataset = fencepost.torch.Dataset(path, zero_copy=zero_copy)
    assert len(dataset) == 4 and isinstance(dataset, torch.utils.data.Dataset)
    for _ in range(2):
        for index, sample in enumerate(samples):
            found = dataset[index]
            assert list(found) == list(sample) and found["name"] == sample["name"]
            equal(found["pos"], torch.from_numpy(sample["pos"]))
            equal(found["flag"], torch.from_numpy(sample["flag"]))
            equal(found["bf"], sample["bf"])
            for name in ("pos", "flag", "bf"):
                found[name].zero_()  # the caller's to change: neither the file nor the next read sees it
    assert path.read_bytes() == before
    assert dataset[-1]["name"] == "0" and [item["name"] for item in dataset.__getitems__([2, 1])] == ["30000", "3"]
    again = pickle.loads(pickle.dumps(dataset))
    equal(again[2]["pos"], torch.from_numpy(samples[2]["pos"]))
    held = dataset[0]["pos"]
    del dataset, again
    gc.collect()
    assert bits(held) == samples[0]["pos"].tobytes()


def test_zero_copy_notices_another_file_and_bad_bools(meshes):
    samples, path = meshes
    native = fencepost.open(path)
    offset, length, *_ = native.locate(0)["flag"]
    damaged = bytearray(path.read_bytes())
    damaged[offset + 7] = 9
    path.unlink()
    path.write_bytes(damaged)
    with pytest.raises(fencepost.FormatError) as caught:
        fencepost.torch.Dataset(path, zero_copy=True)[0]
    assert caught.value.code == "bool"
    write(path, samples[:2])
    with pytest.raises(fencepost.ChangedError, match="replaced"):
        fencepost.torch.Dataset(native, zero_copy=True)


def collate(batch):
    return torch.cat([sample["x"] for sample in batch])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_torch_loaders_with_workers(path, samples, method):
    dataset = fencepost.torch.Dataset(path)
    list(fencepost.Loader(dataset.native, 8))  # used in the parent before
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=8, num_workers=2, collate_fn=collate, multiprocessing_context=method, shuffle=False
    )
    equal(torch.cat(list(loader)), torch.from_numpy(np.concatenate([sample["x"] for sample in samples])))


def test_native_loaders(path, samples):
    dataset = fencepost.torch.Dataset(path)
    loader = fencepost.torch.DataLoader(dataset, batch_size=8, shuffle=True, seed=1, follow_batch=["edge_attr"])
    assert len(loader) == 7
    first = list(loader)
    assert sum(len(batch["ptr"]) - 1 for batch in first) == 50 and "edge_attr_batch" in first[0]
    assert loader.epoch == 1 and "7 batches" in str(loader.metrics())
    iteration = iter(loader)
    taken = [next(iteration)["x"], next(iteration)["x"]]
    state = json.loads(json.dumps(loader.state_dict()))
    taken += [batch["x"] for batch in iteration]
    again = fencepost.torch.DataLoader(path, batch_size=8, shuffle=True, seed=1)
    again.load_state_dict(state)
    for found, expected in zip([batch["x"] for batch in again], taken[2:], strict=True):
        equal(found, expected)
    again.set_epoch(0)
    equal(next(iter(again))["x"], first[0]["x"])
    subset = torch.utils.data.Subset(dataset, [5, 9, 9, 1])
    [batch] = fencepost.torch.DataLoader(subset, batch_size=4, transform=lambda batch: batch["x"])
    equal(batch, torch.from_numpy(np.concatenate([samples[i]["x"] for i in (5, 9, 9, 1)])))


def test_options_of_native_loaders(path):
    if not torch.accelerator.is_available():
        with pytest.warns(UserWarning, match="no accelerator"):
            fencepost.torch.DataLoader(path, pin_memory=True)
    with pytest.raises(ValueError, match="together"):
        fencepost.torch.DataLoader(path, rank=1)
    with pytest.raises(ValueError, match="without transform"):
        fencepost.torch.DataLoader(fencepost.torch.Dataset(path, transform=len))
    with pytest.raises(TypeError, match="expected a path"):
        fencepost.torch.DataLoader([1, 2])
    with pytest.raises(TypeError):
        fencepost.torch.DataLoader(path, unknown=1)
    assert fencepost.torch.Dataset(path, transform=len)[0] == 5
    ranks = [fencepost.torch.DataLoader(path, batch_size=4, rank=rank, world_size=3) for rank in range(3)]
    assert len({len(loader) for loader in ranks}) == 1, "filled up, so that no rank waits for another"


def test_ranks_come_from_torch_distributed(path, tmp_path):
    code = """
import sys, torch, torch.distributed as dist, fencepost.torch
loader = fencepost.torch.DataLoader(sys.argv[1], batch_size=4)      # made before the group is
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[3]), world_size=2)
print(*[index for batch in loader.loader for index in batch.indices])
dist.destroy_process_group()
"""
    import subprocess
    import sys

    def start(rank):
        command = [sys.executable, "-c", code, path, tmp_path / "rendezvous", str(rank)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    outputs = [process.communicate(timeout=120)[0] for process in [start(0), start(1)]]
    ranks = [[int(index) for index in output.split()] for output in outputs]
    assert len(ranks[0]) == len(ranks[1]) and set(ranks[0] + ranks[1]) == set(range(50)) and set(ranks[0]) != set(range(50))


def test_bf16_of_a_declared_schema(tmp_path):
    schema = Schema([Attribute("x", torch.bfloat16, ["n"]), Attribute("e", torch.int64, [2, "m"])])
    sample = {"x": torch.arange(3).bfloat16(), "e": torch.zeros(2, 4, dtype=torch.int64)}
    dataset = fencepost.open(write(tmp_path / "a.fence", [sample], schema=schema))
    equal(dataset.read_torch(0)["x"], sample["x"])
    assert dataset.read(0)["x"].dtype == np.uint16


def test_many_samples(tmp_path):
    samples = graphs(200, seed=8)
    dataset = fencepost.open(write(tmp_path / "a.fence", samples))
    for index, sample in enumerate(samples):
        for name, tensor in dataset.read_torch(index).items():
            equal(tensor, torch.from_numpy(sample[name]))
