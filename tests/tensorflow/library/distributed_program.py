"""A training over processes, for tests: ``python distributed_program.py FOLDER ENGINE [STOP_AT] [KILL_AT]``.

A process with ``KILL_AT`` -1 is killed while it builds its graph, after the processes have agreed on the steps.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from small_models import BATCH, LinearModel, rows

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.tf import processes
from ziggurat.tf.callback import Callback
from ziggurat.tf.distributed import DistributedTrainer
from ziggurat.tf.inputs.queue import QueueInput


class Events(Callback):
    """Stops or kills this process at a step, and writes what became of the variables."""

    chief_only = False

    def __init__(self, file: Path, stop_at: int, kill_at: int) -> None:
        self.file, self.stop_at, self.kill_at = file, stop_at, kill_at

    def _setup_graph(self) -> None:
        if self.kill_at == -1:
            os.kill(os.getpid(), signal.SIGKILL)

    def _trigger_step(self) -> None:
        if self.global_step == self.stop_at:
            self.trainer.request_stop("this process was asked")
        if self.global_step == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _after_train(self) -> None:
        if self.trainer.group.lost is not None:
            return
        state = self.trainer.program.state()
        known = {"w": state["w"].ravel().tolist(), "step": self.global_step, "stopped": self.trainer.stop_reason}
        self.file.write_text(json.dumps(known))


def data(rank: int, size: int) -> Any:
    """Return the rows of one process: of every joint batch of 8, each process has its part."""
    part = BATCH // size
    mine = [row for number, row in enumerate(rows()) if (number % BATCH) // part == rank]
    return BatchData(DataFromList(mine, shuffle=False), part)


def main(folder: Path, engine: Any, stop_at: int = 0, kill_at: int = 0) -> None:
    processes._LOST_S = 1.0
    trainer = DistributedTrainer(engine=engine)
    place = trainer.group.place
    tf.set_random_seed(1 + place.rank)  # the first values differ: those of process 0 must hold
    model = LinearModel()
    source = QueueInput(data(place.rank, place.size))
    trainer.setup_graph(model.inputs(), source, model.build_graph, model.get_optimizer)
    last = place.rank == place.size - 1
    events = Events(folder / f"rank-{place.rank}.json", stop_at if last else 0, kill_at if last else 0)
    trainer.train([events], [], max_epoch=5)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *(int(text) for text in sys.argv[3:]))
