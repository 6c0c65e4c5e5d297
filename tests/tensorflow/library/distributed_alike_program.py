"""A training over processes, for tests: ``python distributed_alike_program.py FOLDER WHAT``."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from small_models import LinearModel, rows

from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.engine.callbacks.periods import PeriodicTrigger
from ziggurat.engine.callbacks.setters import HyperParamSetterWithFunc, ScheduledHyperParamSetter
from ziggurat.engine.interruption import StopTraining
from ziggurat.tf.callback import Callback
from ziggurat.tf.distributed import DistributedTrainer
from ziggurat.tf.inputs.base import FeedInput


class Outcome(Callback):
    """Writes what became of the training."""

    chief_only = False

    def __init__(self, file: Path) -> None:
        self.file = file

    def _after_train(self) -> None:
        state = self.trainer.program.state()
        numbers = {name: state[name].ravel().tolist() for name in ("w", "learning_rate")}
        done = {"step": self.global_step, "steps": self.trainer.steps_per_epoch, "outcome": self.trainer.outcome}
        self.file.write_text(json.dumps({**numbers, **done}))


class Complete(Callback):
    """Finds the training complete after an epoch."""

    def _trigger_epoch(self) -> None:
        if self.epoch_num == 2:
            raise StopTraining("good enough")


class OfFirst(HyperParamSetterWithFunc):
    """A setter that only the first process has."""

    chief_only = True


def main(folder: Path, what: str) -> None:
    trainer = DistributedTrainer()
    rank = trainer.group.place.rank
    model = LinearModel()
    count = 24 if what == "rates" and rank == 1 else 32
    source = FeedInput(BatchData(DataFromList(rows(count, seed=rank), shuffle=False), 4))
    trainer.setup_graph(model.inputs(), source, model.build_graph, model.get_optimizer)
    callbacks: list[Callback] = [Outcome(folder / f"rank-{rank}.json")]
    if what == "rates":
        steps = ScheduledHyperParamSetter("learning_rate", [(3, 0.05), (9, 0.02)], step_based=True)
        callbacks += [PeriodicTrigger(steps, every_k_steps=1), OfFirst("learning_rate", _tenth)]
    if what == "complete":
        callbacks += [Complete()]
    starting = 2 if what == "apart" and rank == 1 else 1
    trainer.train(callbacks, [], starting_epoch=starting, max_epoch=4)


def _tenth(epoch: int, rate: float) -> float | None:
    return 0.001 if epoch == 3 else None


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        threading.Event().wait(0.1)
        raise SystemExit(1) from error
