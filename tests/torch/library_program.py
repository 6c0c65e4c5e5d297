"""Training program of the tests: it goes on from its newest checkpoint, and leaves its final weights in its folder.

The second of its processes can be told to end itself by a kill, once.
"""

import argparse
import os
import signal
import threading
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from ziggurat.torch import (
    Callback,
    EventWriter,
    JSONWriter,
    ModelSaver,
    ModuleProgram,
    Options,
    StopTraining,
    TorchScheduler,
    Trainer,
    save_weights,
    seed_everything,
)

SAMPLES = 640


class Noted(Callback):
    """Notes each step in a file, waits behind it, and may kill its process."""

    chief_only = False

    def __init__(self, arguments):
        self.arguments = arguments

    def trigger_step(self):
        rank = os.environ.get("RANK", "0")
        with open(Path(self.arguments.folder, f"steps-{rank}"), "a") as file:
            file.write(f"{self.global_step}\n")
        threading.Event().wait(self.arguments.slow)
        if self.arguments.end_at == self.global_step and rank == self.arguments.end_rank:
            raise StopTraining("enough")
        self.strike(signal.SIGKILL, self.arguments.kill_at if rank == "1" else 0)
        self.strike(signal.SIGTERM, self.arguments.terminate_at)
        self.strike(signal.SIGKILL, self.arguments.die_at)

    def strike(self, number, step):
        mark = Path(self.arguments.folder, "killed" if number == signal.SIGKILL else "terminated")
        if step == self.global_step and not mark.exists():
            mark.write_text("")
            os.kill(os.getpid(), number)


def module(dropout):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(dropout) if dropout else nn.Identity(),
        nn.Linear(512, 10),
    )


def accuracy(output, labels):
    return (output.argmax(1) == labels).float().mean()


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("epochs", type=int)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--kill-at", type=int, default=0)
    parser.add_argument("--terminate-at", type=int, default=0)
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--end-at", type=int, default=0)
    parser.add_argument("--end-rank", default="0")
    parser.add_argument("--together", action="store_true")
    arguments = parser.parse_args(words)
    Path(arguments.folder).mkdir(exist_ok=True)
    seed_everything(3)
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images[:SAMPLES] / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    data = DataLoader(TensorDataset(x, torch.tensor(labels[:SAMPLES])), 50, shuffle=True)  # the last one has 40
    net = module(arguments.dropout)
    optimizer = torch.optim.AdamW(net.parameters(), 0.003)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=100)
    program = ModuleProgram(
        net,
        optimizer,
        functional.cross_entropy,
        scalars={"accuracy": accuracy},
        options=Options(gradient_clip=1.0, ema_decay=0.9, overlap=not arguments.together),
    )
    trainer = Trainer(
        program,
        data,
        callbacks=[TorchScheduler(schedule, "step"), ModelSaver(every_k_steps=3), Noted(arguments)],
        monitors=[JSONWriter(), EventWriter()],
        folder=arguments.folder,
    )
    trainer.train(arguments.epochs, resume=True)
    save_weights(net, Path(arguments.folder, f"final-{program.processes.rank}.safetensors"))


if __name__ == "__main__":
    main()
