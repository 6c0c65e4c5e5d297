"""Owns a small PyTorch program: handwritten digits, augmented by two processes, feed a training loop of your own.

Run it with ``python examples/feed_torch.py``. It needs the extras ``torch`` and ``samples``, and no download.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

from ziggurat.dataflow import BatchData, DataFlow, MapData, MultiProcessMapAndBatchData, imgaug
from ziggurat.dataflow.augment import augment_component
from ziggurat.dataflow.dataset import SklearnDigits

BATCH_SIZE = 64


def main() -> None:
    """Train, and tell after each epoch how many digits of the validation split are recognized."""
    options = arguments()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # so small a network gains nothing from more, and the workers have a use for them
    network = convolutional_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    with training_batches(options.workers, options.seed) as batches:
        for epoch in range(1, options.epochs + 1):
            for images, labels in batches:
                loss = nn.functional.cross_entropy(network(as_tensor(images)), torch.from_numpy(labels))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"epoch {epoch}: accuracy {accuracy(network):.3f}")
        for row in batches.stats():
            print(f"{row.stage}: {row.datapoints} datapoints, {row.own_s:.2f} s of its own")


def training_batches(workers: int, seed: int) -> DataFlow:
    """Return [images (64, 28, 28, 1) uint8, labels (64) int64], augmented: the same ones for any number of workers."""
    augment = augment_component([imgaug.Resize(32), imgaug.RandomCrop(28), imgaug.Rotation(10)])
    digits = SklearnDigits("train")
    return MultiProcessMapAndBatchData(digits, workers, augment, batch_size=BATCH_SIZE).seed(seed)


def validation_batches() -> DataFlow:
    """Return the same without anything random, the smaller last batch too."""
    centre = augment_component([imgaug.Resize(32), imgaug.CenterCrop(28)])
    return BatchData(MapData(SklearnDigits("val"), centre), BATCH_SIZE, remainder=True)


def convolutional_network() -> nn.Module:
    """Return a network from (N, 1, 28, 28) to ten logits."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 10),
    )


def as_tensor(images: object) -> torch.Tensor:
    """Return a batch (N, H, W, C) of bytes as PyTorch's convolutions take it: (N, C, H, W) from 0 to 1."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


def accuracy(network: nn.Module) -> float:
    """Return which share of the validation split is recognized."""
    right = total = 0
    with torch.no_grad():
        for images, labels in validation_batches():
            right += int((network(as_tensor(images)).argmax(1) == torch.from_numpy(labels)).sum())
            total += len(labels)
    return right / total


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits that two processes augment.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2, help="processes that augment; 0 for none")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
