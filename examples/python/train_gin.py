"""Trains a graph isomorphism network (Xu et al., 2019) to tell molecules that pass the blood-brain barrier from those that do not,
twice: from PyG's own `TUDataset` and from a mapped fencepost file of the same molecules. With the same seed both give the same losses.

    python examples/python/train_gin.py [--epochs 30]

The molecules are the thousand of B3DB that the repository ships, 128 of which do not pass; 800 are trained on. As the classes are so
unequal, they are weighted, and the accuracy is the mean of both classes' (always guessing one gives 0.5).
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import torch
import torch_geometric.loader
from torch.nn import BatchNorm1d, Linear, ReLU, Sequential
from torch_geometric.datasets import TUDataset
from torch_geometric.nn import GINConv, global_add_pool

import fencepost.pyg

SOURCE = Path(__file__).resolve().parents[1] / "data" / "B3DB"


class Gin(torch.nn.Module):
    def __init__(self, features: int, hidden: int = 32, layers: int = 3) -> None:
        super().__init__()
        sizes = [features] + [hidden] * layers
        self.convolutions = torch.nn.ModuleList(
            GINConv(Sequential(Linear(size, hidden), BatchNorm1d(hidden), ReLU(), Linear(hidden, hidden), ReLU()))
            for size in sizes[:-1]
        )
        self.readout = Sequential(Linear(hidden, hidden), ReLU(), Linear(hidden, 2))

    def forward(self, batch):
        x = batch.x
        for convolution in self.convolutions:
            x = convolution(x, batch.edge_index)
        return self.readout(global_add_pool(x, batch.batch, batch.num_graphs))


def train(dataset, loader_class, epochs: int) -> tuple[list[float], float]:
    """The loss of each epoch, and the accuracy on the 200 molecules that are held out."""
    torch.manual_seed(12)
    order = torch.randperm(len(dataset))
    training, held_out = dataset[order[:800]], dataset[order[800:]]
    loader = loader_class(training, batch_size=64, shuffle=True)
    model = Gin(dataset.num_features)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    weight = len(training) / (2 * torch.bincount(training.y).float())
    losses = []
    for _ in range(epochs):
        model.train()
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch), batch.y, weight)
            loss.backward()
            optimizer.step()
            total += loss.item() * batch.num_graphs
        losses.append(total / len(training))
    model.eval()
    [batch] = loader_class(held_out, batch_size=200)
    with torch.no_grad():
        right = model(batch).argmax(1) == batch.y
    return losses, sum(right[batch.y == label].float().mean().item() for label in (0, 1)) / 2


def main(epochs: int) -> None:
    # Sums over threads come in no fixed order, and the losses are to be equal in every bit.
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE, Path(folder) / "B3DB" / "raw")
        in_memory = TUDataset(folder, "B3DB")
        mapped = fencepost.pyg.convert(in_memory, Path(folder) / "b3db.fence", progress=False)
        print(f"{len(mapped)} molecules, {mapped.num_features} features, {mapped.num_classes} classes")
        theirs, their_accuracy = train(in_memory, torch_geometric.loader.DataLoader, epochs)
        ours, our_accuracy = train(mapped, fencepost.pyg.DataLoader, epochs)
    print("epoch  InMemoryDataset  fencepost")
    for epoch, (their, our) in enumerate(zip(theirs, ours, strict=True), 1):
        print(f"{epoch:5}  {their:15.6f}  {our:9.6f}")
    print(f"mean accuracy of both classes on the 200 molecules held out: {their_accuracy:.3f}, {our_accuracy:.3f}")
    assert ours == theirs and our_accuracy == their_accuracy, "the same seed gives the same losses, bit by bit"


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=30)
    main(arguments.parse_args().epochs)
