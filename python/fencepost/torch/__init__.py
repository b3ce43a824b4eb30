"""Datasets and loaders for torch, for any ragged data.

    dataset = fencepost.torch.Dataset("graphs.fence")              # map-style: dataset[i] is a dict of tensors
    for batch in fencepost.torch.DataLoader(dataset, batch_size=128, shuffle=True): ...      # dicts of tensors, made by Rust threads
"""

from __future__ import annotations

from ._data import DataLoader as DataLoader
from ._data import Dataset as Dataset

__all__ = ["DataLoader", "Dataset"]
