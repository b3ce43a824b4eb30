"""The sets of samples. A sample is a dict of numpy arrays; every set knows its fields before it is made."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Sample = dict[str, np.ndarray]
B3DB = Path(__file__).resolve().parents[3] / "examples" / "data" / "B3DB"


@dataclass(frozen=True)
class Field:
    """One attribute: `[nodes, width]`, `[edges, width]`, `[1, width]`, and with `across` `[width, edges]`."""

    name: str
    dtype: str
    along: str  # "nodes", "edges" or "graph"
    width: int
    across: bool = False

    def shape(self, nodes: int, edges: int) -> tuple[int, int]:
        rows = {"nodes": nodes, "edges": edges, "graph": 1}[self.along]
        return (self.width, rows) if self.across else (rows, self.width)


EDGE_INDEX = Field("edge_index", "<i8", "edges", 2, across=True)


def counts(sample: Sample) -> tuple[int, int]:
    """Nodes and edges: every set has `x` and `edge_index`."""
    return len(sample["x"]), sample["edge_index"].shape[1]


def nbytes(sample: Sample) -> int:
    return sum(value.nbytes for value in sample.values())


@dataclass(frozen=True)
class Source:
    """Samples by number. `sample` must be cheap and give the same arrays each time."""

    length: int
    sample: Callable[[int], Sample]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Sample:
        return self.sample(index)

    def __iter__(self) -> Iterator[Sample]:
        return map(self.sample, range(self.length))


def _sliced(fields: tuple[Field, ...], arenas: dict[str, np.ndarray], nodes: np.ndarray, edges: np.ndarray) -> Source:
    """Samples that are slices of flat arrays; the tables have N+1 entries."""
    graphs = np.arange(len(nodes))
    tables = {"nodes": nodes, "edges": edges, "graph": graphs}

    def sample(index: int) -> Sample:
        node_count, edge_count = int(nodes[index + 1] - nodes[index]), int(edges[index + 1] - edges[index])
        out = {}
        for field in fields:
            table = tables[field.along]
            block = arenas[field.name][table[index] * field.width : table[index + 1] * field.width]
            out[field.name] = block.reshape(field.shape(node_count, edge_count))
        return out

    return Source(len(nodes) - 1, sample)


def _table(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)])


QM9 = (
    Field("x", "<f4", "nodes", 11),
    EDGE_INDEX,
    Field("edge_attr", "<f4", "edges", 4),
    Field("pos", "<f4", "nodes", 3),
    Field("y", "<f4", "graph", 19),
)


def qm9(count: int) -> Source:
    """The sizes of `benches/python/common.py`: 18 ± 3 nodes, two directed edges a node; made as whole arrays, which takes a second."""
    rng = np.random.default_rng(1)
    nodes = 9 + rng.integers(0, 7, (count, 3)).sum(1)
    total = int(nodes.sum())
    arenas = {
        "x": rng.integers(0, 2, total * 11, np.int8).astype("<f4"),
        "edge_index": (rng.random(4 * total, np.float32) * np.repeat(nodes, 4 * nodes)).astype("<i8"),
        "edge_attr": rng.integers(0, 2, 2 * total * 4, np.int8).astype("<f4"),
        "pos": rng.standard_normal(total * 3, np.float32),
        "y": rng.standard_normal(count * 19, np.float32),
    }
    return _sliced(QM9, arenas, _table(nodes), _table(2 * nodes))


class _Pool:
    """Values and indices for samples that are too many to keep: a sample takes a stretch of each, at a place of its own."""

    def __init__(self, values: int, indices: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.values = rng.standard_normal(values, np.float32)
        self.indices = rng.random(indices, np.float32)

    @staticmethod
    def _place(index: int, salt: int, room: int) -> int:
        return (index * 2_654_435_761 + salt * 40_503) % room

    def floats(self, index: int, salt: int, shape: tuple[int, int]) -> np.ndarray:
        at = self._place(index, salt, len(self.values) - shape[0] * shape[1])
        return self.values[at : at + shape[0] * shape[1]].reshape(shape)

    def below(self, index: int, bound: int, shape: tuple[int, int]) -> np.ndarray:
        at = self._place(index, 7, len(self.indices) - shape[0] * shape[1])
        return (self.indices[at : at + shape[0] * shape[1]] * bound).astype("<i8").reshape(shape)


MESHES = (Field("x", "<f4", "nodes", 4), EDGE_INDEX, Field("pos", "<f4", "nodes", 3))


def meshes(count: int) -> Source:
    """5,000 ± 500 nodes with six directed edges each, 0.62 MB."""
    pool = _Pool(1 << 20, 1 << 20, 2)

    def sample(index: int) -> Sample:
        nodes = 4500 + index * 7919 % 1001
        return {
            "x": pool.floats(index, 1, (nodes, 4)),
            "edge_index": pool.below(index, nodes, (2, 6 * nodes)),
            "pos": pool.floats(index, 2, (nodes, 3)),
        }

    return Source(count, sample)


BIG = (Field("x", "<f4", "nodes", 32), EDGE_INDEX)


def big(count: int) -> Source:
    """200 to 500 nodes with 32 features and four directed edges each, 67 KB."""
    pool = _Pool(1 << 20, 1 << 18, 3)

    def sample(index: int) -> Sample:
        nodes = 200 + index * 7919 % 301
        return {"x": pool.floats(index, 1, (nodes, 32)), "edge_index": pool.below(index, nodes, (2, 4 * nodes))}

    return Source(count, sample)


MOLECULES = (
    Field("x", "<f4", "nodes", 4),
    EDGE_INDEX,
    Field("edge_attr", "<f4", "edges", 1),
    Field("y", "<i8", "graph", 1),
)


def b3db(count: int) -> Source:
    """The molecules in examples/data, read from their text files by numpy."""
    table = lambda name, dtype: np.loadtxt(B3DB / f"B3DB_{name}.txt", dtype, delimiter=",", ndmin=2)  # noqa: E731
    graph = table("graph_indicator", "<i8")[:, 0] - 1
    pairs = table("A", "<i8") - 1
    nodes = _table(np.bincount(graph))
    # Edges lie graph by graph in these files.
    edges = _table(np.bincount(graph[pairs[:, 0]], minlength=len(nodes) - 1))
    local = pairs - nodes[graph[pairs[:, 0]]][:, None]
    blocks = [local[edges[at] : edges[at + 1]].T.ravel() for at in range(len(nodes) - 1)]
    arenas = {
        "x": table("node_attributes", "<f4").ravel(),
        "edge_index": np.concatenate(blocks),
        "edge_attr": table("edge_labels", "<f4").ravel(),
        "y": table("graph_labels", "<i8").ravel(),
    }
    return _sliced(MOLECULES, arenas, nodes[: count + 1], edges[: count + 1])


CONNECTED = (Field("x", "<f4", "nodes", 1), EDGE_INDEX)


def connected(order: int, count: int) -> Source:
    """All connected graphs on `order` vertices from nauty's geng, as degrees and directed edges; decoded a thousand at a time."""
    geng = shutil.which("geng") or shutil.which("nauty-geng")
    command = [geng, "-cq", str(order)]
    width = 2 + -(-order * (order - 1) // 2 // 6)  # size, six pairs a byte, and the end of the line
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr) as process:
        text = process.stdout.read(width * count)
        process.kill()
    lines = np.frombuffer(text, np.uint8).reshape(-1, width)[:, 1:-1]
    # graph6 goes column by column through the upper triangle.
    upper = [(row, column) for column in range(1, order) for row in range(column)]
    rows, columns = np.array(upper).T
    block_size = 1000
    cached: list = [-1, None, None]

    def block(number: int) -> None:
        codes = lines[number * block_size : (number + 1) * block_size] - 63
        bits = np.unpackbits(codes[:, :, None], axis=2)[:, :, 2:].reshape(len(codes), -1)[:, : len(upper)]
        adjacency = np.zeros((len(codes), order, order), bool)
        adjacency[:, rows, columns] = adjacency[:, columns, rows] = bits
        graph, source, target = np.nonzero(adjacency)
        cached[:] = [number, _table(np.bincount(graph, minlength=len(codes))), np.stack([source, target]).astype("<i8")]

    def sample(index: int) -> Sample:
        number, at = divmod(index, block_size)
        if cached[0] != number:
            block(number)
        edges = cached[2][:, cached[1][at] : cached[1][at + 1]].copy()
        degrees = np.bincount(edges[0], minlength=order).astype("<f4")
        return {"x": degrees[:, None], "edge_index": edges}

    return Source(len(lines), sample)


@dataclass(frozen=True)
class Set:
    """What can be said of a set before it is made."""

    name: str
    title: str
    length: int
    fields: tuple[Field, ...]
    make: Callable[[int], Source]
    #: Samples that a repeated write takes, so that a round is seconds for a slow system as well.
    part: int
    needs: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Why it cannot be made here."""
        if self.needs and not any(map(shutil.which, self.needs)):
            return f"none of {', '.join(self.needs)} is installed (Debian's package nauty has them)"
        return None

    def scaled(self, scale: float) -> int:
        """At least what a few batches need."""
        return min(self.length, max(300, round(self.length * scale)))


GENG = ("geng", "nauty-geng")
SETS = {
    one.name: one
    for one in (
        Set("qm9", "130,000 molecules like those of QM9", 130_000, QM9, qm9, 10_000),
        Set("b3db", "1,000 molecules of B3DB", 1_000, MOLECULES, b3db, 1_000),
        Set("meshes", "2,000 meshes of 5,000 nodes", 2_000, MESHES, meshes, 100),
        Set("connected9", "all 261,080 connected graphs on 9 vertices", 261_080, CONNECTED, lambda n: connected(9, n), 20_000, GENG),
        Set("big", "8 GiB of graphs of 200 to 500 nodes", 128_000, BIG, big, 1_000),
        Set("connected10", "all 11,716,571 connected graphs on 10 vertices", 11_716_571, CONNECTED, lambda n: connected(10, n), 20_000, GENG),
    )
}
