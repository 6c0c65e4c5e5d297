"""A training that a kill may end, for tests: ``python killed_program.py FOLDER [KILL_AT [RANK]]``.

It goes on from what ``FOLDER`` holds. Two towers train in one process, or, where a launcher says so, one in each of
several processes; each of them shuffles the same rows by a seed of its own and drops inputs out.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from small_models import BATCH, LinearModel, rows

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.engine.callback import Callback
from ziggurat.tf import logger
from ziggurat.tf.config import AutoResumeTrainConfig, launch_train_with_config
from ziggurat.tf.data_parallel import SyncMultiGPUTrainerReplicated
from ziggurat.tf.distributed import DistributedTrainer
from ziggurat.tf.processes import environment_place
from ziggurat.tf.savers import ModelSaver

EPOCHS, STEPS = 5, 4


class Known(Callback):
    """Kills this process at a step; notes what each step cost, and the state of the end."""

    chief_only = False

    def __init__(self, file: Path, kill_at: int) -> None:
        self._file, self._kill_at = file, kill_at
        self._costs: dict[int, float] = {}

    def declares(self) -> Sequence[str]:
        return ["cost"]

    def before_run(self) -> Sequence[str]:
        return ["cost"]

    def after_run(self, values: Any) -> None:
        self._costs[self.global_step] = float(values["cost"])

    def trigger_step(self) -> None:
        if self.global_step == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def after_train(self) -> None:
        if self.global_step < EPOCHS * STEPS:
            return  # ended by an error, with the session
        arrays = {name: array.tobytes().hex() for name, array in self.trainer.program.state().items()}
        self._file.write_text(json.dumps({"costs": self._costs, "arrays": arrays, "step": self.global_step}))


def main(folder: Path, kill_at: int = 0, killed: int = 0) -> None:
    place = environment_place()
    logger.set_logger_dir(folder, "keep")
    tf.set_random_seed(1)
    flow = BatchData(DataFromList(rows(), shuffle=True), BATCH).seed(3 + place.rank)
    known = Known(folder / f"known-{place.rank}.json", kill_at if place.rank == killed else 0)
    config = AutoResumeTrainConfig(
        dataflow=flow,
        model=LinearModel(dropout=0.3),
        callbacks=[ModelSaver(every_k_steps=5), known],
        extra_callbacks=[],
        monitors=[],
        session_config=tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True),
        steps_per_epoch=STEPS,
        max_epoch=EPOCHS,
    )
    launch_train_with_config(config, DistributedTrainer() if place.size > 1 else SyncMultiGPUTrainerReplicated(2))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(int(text) for text in sys.argv[2:]))
