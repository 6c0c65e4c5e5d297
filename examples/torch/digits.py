"""Handwritten digits of scikit-learn by a small convolutional network on PyTorch.

``python examples/torch/digits.py --folder train_log/digits`` trains, and goes on where it was interrupted.
``torchrun --nproc-per-node 2 examples/torch/digits.py`` shares every batch among two processes.
``ziggurat submit examples/torch/digits.py`` makes it a job of the studio.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset, random_split

from ziggurat.torch import (
    ClassificationError,
    InferenceRunner,
    MinSaver,
    ModelSaver,
    ModuleProgram,
    Options,
    ScalarStats,
    TorchScheduler,
    Trainer,
    seed_everything,
)


def accuracy(output, labels):
    """Return the share of samples whose largest score is that of their class."""
    return (output.argmax(1) == labels).float().mean()


def network():
    """Return scores of ten classes for images (N, 1, 8, 8)."""
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3), nn.Linear(512, 10))


def main():
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="samples in a step, over all processes")
    parser.add_argument("--folder", default="train_log/digits")
    arguments = parser.parse_args()

    seed_everything(0)
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    train, val = random_split(TensorDataset(images, torch.tensor(labels)), [0.8, 0.2])

    module = network()
    optimizer = torch.optim.AdamW(module.parameters(), 0.003)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.epochs)
    program = ModuleProgram(
        module,
        optimizer,
        functional.cross_entropy,
        scalars={"accuracy": accuracy},
        options=Options(gradient_clip=1.0, ema_decay=0.99),
    )
    trainer = Trainer(
        program,
        DataLoader(train, arguments.batch, shuffle=True),
        callbacks=[
            TorchScheduler(schedule),
            ModelSaver(),
            InferenceRunner(DataLoader(val, 256), [ScalarStats(["cost", "accuracy"]), ClassificationError()]),
            MinSaver("validation_error"),
        ],
        folder=arguments.folder,
    )
    trainer.train(arguments.epochs, resume=True)


if __name__ == "__main__":
    main()
