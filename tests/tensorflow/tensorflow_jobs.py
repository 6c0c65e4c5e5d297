"""Jobs for the tests of what is done with trained networks: one that a worker trained, and quick ones made here."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.made_once import trained_once
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.worker.context import save_context
from ziggurat.worker.job_network import keep_network

SHARED = Path(__file__).parents[2].parent / "shared"
"""Data that lies beside the checkout on some machines; tests that need it are skipped elsewhere."""

AUTOENCODER = """
class UserModel(Tower):
    @model_property
    def inference(self):
        net = slim.fully_connected(slim.flatten(self.x / 255.0), 8, scope='encode')
        net = slim.fully_connected(net, 784, activation_fn=tf.nn.sigmoid, scope='decode')
        return tf.reshape(net, [-1, 28, 28, 1])

    @model_property
    def loss(self):
        self.summaries.append(tf.summary.scalar('largest', tf.reduce_max(self.inference)))
        return digits.mse_loss(self.inference, self.x / 255.0)
"""


def lenet_job() -> Path:
    """Return a LeNet that a worker trained: cropped, less a mean image; its best checkpoint is marked."""
    preprocessing = {"crop": 24, "mean": "image"}
    checkpoints = {"keep_best": "validation_error"}
    return _trained(
        "lenet", backend="tensorflow", learning_rate=0.02, preprocessing=preprocessing, checkpoints=checkpoints
    )


def null_job() -> Path:
    """Return a small classifier that a worker trained without a framework."""
    return _trained("mlp", backend="null", learning_rate=0.1)


def quick_job(folder: Path, network: str, *, steps: int = 0, **changes: Any) -> Path:
    """Return a job with one checkpoint, made in this process.

    Args:
        folder: where it goes.
        network: text of a network file, or name of a standard network.
        steps: how many it is trained for.
        changes: fields of its spec.
    """
    named = {"path": "net.py", "source": "file", "text": network} if "\n" in network else network
    spec = parse_spec(_spec(network=named, backend="tensorflow", **changes), source="a test")
    data = data_of(spec)
    program = load_backend(spec.backend).build(program_request(spec, data))
    for batch, _ in zip(data.train, range(steps), strict=False):
        program.step(batch, ())
    job = JobFolder(folder)
    folder.mkdir(parents=True)
    save_spec(spec, job.spec)
    save_context(data.context, job)
    keep_network(spec, job)
    meta = {"global_step": steps, "epoch_num": 0, "latest": {}}
    CheckpointStore(job.checkpoints).save(RunState(meta, program.state()))
    program.close()
    return folder


def digit_pictures(split: str = "val") -> tuple[np.ndarray, np.ndarray]:
    """Return the images of a split as a job reads them: (N, 28, 28, 1) uint8 and (N) int."""
    points = list(SklearnDigits(split, shuffle=False, size=28))
    return np.stack([point[0] for point in points]), np.array([int(point[1]) for point in points])


def save_pictures(folder: Path, pictures: np.ndarray) -> list[str]:
    """Write (N, H, W, 1) images as PNG files; return their paths."""
    paths = [str(folder / f"{number:04}.png") for number in range(len(pictures))]
    for path, picture in zip(paths, pictures, strict=True):
        Image.fromarray(picture[:, :, 0]).save(path)
    return paths


def _trained(network: str, **changes: Any) -> Path:
    return trained_once(network, _spec(network=network, epochs=4, schedule="fixed", monitors=["events"], **changes))


def _spec(**changes: Any) -> dict[str, Any]:
    return {"kind": "train", "version": 1, "data": "digits", "batch_size": 32, "seed": 3, **changes}
