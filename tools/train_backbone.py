"""Trains the pretrained weights that come with Ziggurat, and prints their checksum.

``python -m tools.train_backbone DATA OUT``: ``DATA`` is a folder with the four idx files of Fashion-MNIST (MIT license,
https://github.com/zalandoresearch/fashion-mnist), ``OUT`` a new folder. It gets the job and
``convnet-fashion-mnist-DIGITS.safetensors``, whose name ends with the first digits of its checksum. It needs PyTorch
and takes about 20 minutes on one core.

The seed decides every random number of the training. The same processor, version of PyTorch and number of threads give
the same file; others round differently, which changes the checksum, and the accuracy by some tenths of a percent.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["TRAINING", "main", "train_backbone"]

TRAINING = (
    "--framework=torch", "--network=convnet", "--epochs=8", "--batch-size=128", "--learning-rate=0.05",
    "--schedule=cosine", "--seed=18", "--set=preprocessing.size=28", "--set=preprocessing.channels=1",
    "--set=preprocessing.mean=none", "--set=augmentation.flip=fliplr", "--set=augmentation.scale=0.07",
    "--set=data.options.validation_share=0", "--set=loading.workers=1",
)  # fmt: skip
"""What ``ziggurat train`` gets beside the data. All 60,000 training images are learned from; the 10,000 test images
decide nothing."""

_FIRST_DIGITS = 8


def main(arguments: Sequence[str]) -> int:
    """Train on a folder; return the exit code."""
    if len(arguments) != 2:
        print("usage: python -m tools.train_backbone DATA OUT")
        return 2
    file, accuracy = train_backbone(Path(arguments[0]), Path(arguments[1]))
    digits = hashlib.sha256(file.read_bytes()).hexdigest()
    print(f"{file}\n{file.stat().st_size} bytes\nsha256 {digits}\ntest accuracy {accuracy:.2%}")
    return 0


def train_backbone(data: Path, out: Path, extra: Sequence[str] = ()) -> tuple[Path, float]:
    """Return the file of weights, and the share of test images that the network classifies correctly.

    Args:
        data: folder with the idx files.
        out: new folder.
        extra: further words for ``ziggurat train``, which overrule ``TRAINING``.

    Raises:
        subprocess.CalledProcessError: if a command fails.
    """
    out.mkdir(parents=True)
    job = out / "job"
    _ziggurat("train", *TRAINING, f"--data={data.resolve()}", f"--out={job}", "--name=convnet on Fashion-MNIST", *extra)
    found = json.loads(_ziggurat("evaluate", str(job), "--split=test", "--checkpoint=latest", "--json"))
    # The export is run beside the job on real samples: it gives the same, or the command fails.
    exported = out / "export"
    _ziggurat(
        "export", str(job), "--format=safetensors", "--preprocessing=beside", "--checkpoint=latest", f"--out={exported}"
    )
    model = exported / "model.safetensors"
    digits = hashlib.sha256(model.read_bytes()).hexdigest()[:_FIRST_DIGITS]
    file = out / f"convnet-fashion-mnist-{digits}.safetensors"
    shutil.copyfile(model, file)
    return file, float(found["accuracy"])


def _ziggurat(*words: str) -> str:
    """Return what a command prints; its errors are shown."""
    # One thread: with several, sums are split otherwise on each machine.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "ziggurat", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
