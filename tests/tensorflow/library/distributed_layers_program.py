"""A network with synchronized batch normalization, trained over processes: ``python ... FOLDER ENGINE``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import DataFromList
from ziggurat.tf.callback import Callback
from ziggurat.tf.distributed import DistributedTrainer
from ziggurat.tf.graph_callbacks import RunUpdateOps
from ziggurat.tf.inputs.base import FeedInput
from ziggurat.tf.models import BatchNorm, FullyConnected

IMAGES = np.random.RandomState(4).randn(6, 8, 3, 3, 2).astype(np.float32)


class Keep(Callback):
    """Writes the variables at the end."""

    chief_only = False

    def __init__(self, file: Path) -> None:
        self.file = file

    def _after_train(self) -> None:
        state = self.trainer.program.state()
        np.savez(self.file, **{name.replace("/", ":"): state[name] for name in state if name.startswith(("bn", "fc"))})


def network(images: Any) -> Any:
    x = BatchNorm("bn0", images, sync_statistics="horovod")
    x = FullyConnected("fc", tf.nn.relu(x), 3)
    return tf.reduce_mean(tf.square(BatchNorm("bn1", x, sync_statistics="horovod") - 0.5) * np.arange(1.0, 4))


def main(folder: Path, engine: Any) -> None:
    trainer = DistributedTrainer(engine=engine)
    place = trainer.group.place
    tf.set_random_seed(3)
    mine = [[part] for batch in IMAGES for part in np.split(batch, place.size)[place.rank : place.rank + 1]]
    signature = [tf.TensorSpec((None, 3, 3, 2), tf.float32, "images")]
    flow = FeedInput(DataFromList(mine, shuffle=False))
    trainer.setup_graph(signature, flow, network, lambda: tf.train.GradientDescentOptimizer(0.1))
    trainer.train([RunUpdateOps(), Keep(folder / f"rank-{place.rank}.npz")], [], max_epoch=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
