"""Values without pickle: back as they were, and nothing from the bytes is run or believed."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
import torch
from fencepost.pyg import PygError
from fencepost.pyg.values import Unsupported, decode, encode, sparse_of

from .support import same


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -(2**80), 1.5, -0.0, float("inf"), "", "é\0\ud800", b"\0\xff", bytearray(b"a"), 1 + 2j, [], [1, [2, "x"]], (), (1, (2,)),
        {}, {"a": {"b": 1}}, {1: 2, (1, 2): "x"}, {"!": "dict"}, {1, 2}, frozenset({"a"}), np.arange(6).reshape(2, 3), np.array([], dtype="f4"),
        np.array(["a", "bc"]), np.float32(0.1), np.int8(-3), np.bool_(True), np.datetime64("2020-01-01"), torch.Size([1, 2]), torch.float16,
        torch.ones(2, 3, dtype=torch.bfloat16), torch.tensor(3), torch.empty(0, 4), [torch.ones(1), {"x": torch.zeros(2, dtype=torch.bool)}],
        torch.eye(3).to_sparse_coo(), torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csc(),
    ],
    ids=lambda value: repr(value)[:40].encode("ascii", "replace").decode(),
)  # fmt: skip
def test_round_trip(value: Any) -> None:
    same(decode(encode(value)), value)
    assert encode(value) == encode(decode(encode(value)))


def test_nan() -> None:
    assert np.isnan(decode(encode(float("nan"))))


class Own(dict):  # type: ignore[type-arg]
    pass


@pytest.mark.parametrize("value", [object(), Own(), len, np.array([object()]), [1, {"a": lambda: 1}], torch.nn.Linear(1, 1)])
def test_the_rest_is_refused(value: Any) -> None:
    with pytest.raises(Unsupported):
        encode(value)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xff\xff\xff", struct.pack("<I", 2) + b"[]", struct.pack("<I", 3) + b"{}",
        *(
            struct.pack("<I", len(text)) + text
            for text in (
                json.dumps(tree).encode()
                for tree in (
                    {"v": {"!": "eval", "v": "1"}}, {"v": {"!": "bytes", "v": 0}}, {"v": {"!": "bytes", "v": 0}, "b": [[0, 10]]},
                    {"v": {"!": "bytes", "v": 0}, "b": [[-4, 2]]}, {"v": {"!": "array", "v": ["O", [1], 0]}, "b": [[0, 0]]},
                    {"v": {"!": "tensor", "v": ["torch.nothing", [1], 0]}, "b": [[0, 0]]}, {"v": {"!": "array", "v": ["<f8", [4], 0]}, "b": [[0, 0]]},
                )
            )
        ),
    ],
)  # fmt: skip
def test_bad_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(PygError):
        decode(data)


@pytest.mark.parametrize(
    ("layout", "parts"),
    [
        (torch.sparse_coo, [[[0, 5], [0, 1]], [1.0, 2.0]]),
        (torch.sparse_coo, [[[0, -1], [0, 1]], [1.0, 2.0]]),
        (torch.sparse_csr, [[0, 1, 2], [0, 9], [1.0, 2.0]]),
        (torch.sparse_csr, [[0, 9, 2], [0, 1], [1.0, 2.0]]),
        (torch.sparse_csr, [[0, 1, 9], [0, 1], [1.0, 2.0]]),
        (torch.sparse_csc, [[0, 1], [0, 1], [1.0, 2.0]]),
    ],
)
def test_sparse_indices_beyond_the_shape_are_an_error(layout: Any, parts: Any) -> None:
    with pytest.raises(PygError, match="beyond it"):
        sparse_of(layout, [torch.tensor(part) for part in parts], [2, 2], False)
