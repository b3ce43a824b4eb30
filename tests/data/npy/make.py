"""Writes the numpy files of this folder: python make.py (numpy 2.x).

tests/import_npy.rs knows what is in them.
"""

import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def path(*parts):
    full = os.path.join(HERE, *parts)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    return full


# Arrays of every kind that is read, and of some that are not.
a = np.arange(24).reshape(2, 3, 4)
np.save(path("arrays", "c_order.npy"), a.astype("<i4"))
np.save(path("arrays", "fortran.npy"), np.asfortranarray(a.astype("<i4")))
np.save(path("arrays", "big_endian.npy"), a.astype(">i4"))
np.save(path("arrays", "big_fortran.npy"), np.asfortranarray(a.astype(">f8")))
np.save(path("arrays", "scalar.npy"), np.float32(1.5))
np.save(path("arrays", "empty.npy"), np.zeros((0, 3), "<f2"))
np.save(path("arrays", "bool.npy"), np.array([True, False]))
np.save(path("arrays", "complex.npy"), np.array([1 + 2j, -3j], ">c8"))
np.save(path("arrays", "half.npy"), np.array([1.0, -2.5], "<f2"))
np.save(path("arrays", "bytes.npy"), np.array([b"ab", b"", b"c\0d"]))
np.save(path("arrays", "text.npy"), np.array([["CCO", "é"], ["", "\U0001f600x"]]))
np.save(path("arrays", "text_big.npy"), np.array("Na", ">U5"))
np.save(path("refused", "object.npy"), np.array([{}], object), allow_pickle=True)
np.save(path("refused", "date.npy"), np.array(["2020-01-01"], "M8[D]"))
np.save(path("refused", "record.npy"), np.zeros(1, [("a", "<i4"), ("b", "<f8")]))
np.save(path("refused", "long_double.npy"), np.zeros(1, np.longdouble))

# Three graphs, a file each; the second is written compressed.
rng = np.random.default_rng(0)
graphs = []
for i, (n, e) in enumerate([(3, 4), (1, 0), (5, 7)]):
    graph = {
        "x": rng.standard_normal((n, 2)).astype(np.float32),
        "edge_index": rng.integers(0, n, (2, e)),
        "y": np.float64(i) / 4,
        "smiles": np.array("C" * n),
    }
    graphs.append(graph)
    save = np.savez_compressed if i == 1 else np.savez
    save(path("samples", f"graph_{[2, 9, 10][i]}.npz"), **graph)

# The same as whole arrays.
nodes = np.cumsum([0] + [len(g["x"]) for g in graphs])
edges = np.cumsum([0] + [g["edge_index"].shape[1] for g in graphs])
np.save(path("whole", "nodes_offsets.npy"), nodes)
np.save(path("whole", "edges_offsets.npy"), edges.astype(">u4"))
np.save(path("whole", "x.npy"), np.concatenate([g["x"] for g in graphs]))
np.save(path("whole", "edge_index.npy"), np.concatenate([g["edge_index"] for g in graphs], 1))
np.save(path("whole", "y.npy"), np.array([g["y"] for g in graphs]))
np.save(path("whole", "smiles.npy"), np.array([str(g["smiles"]) for g in graphs]))
