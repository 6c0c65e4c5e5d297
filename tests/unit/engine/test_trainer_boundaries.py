"""What is done at a boundary may finish the training; a set-up that fails frees what was taken."""

import numpy as np
import pytest

from ziggurat.backends.null import NullOptions, NullProgram
from ziggurat.engine.callback import Callback
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.interruption import StopTraining
from ziggurat.engine.run_state import RunState
from ziggurat.engine.trainer import Trainer
from ziggurat.errors import CheckpointError

BATCHES = [[np.ones((4, 2), np.float32), np.array([0, 1, 0, 1])]] * 3


def trainer(*callbacks: Callback) -> Trainer:
    return Trainer(NullProgram(2, 2, NullOptions(hidden=0)), BATCHES, callbacks=callbacks)


class FinishAtBoundary(Callback):
    def trigger_step(self) -> None:
        if self.global_step == 4:
            self.trainer.at_boundary(self._finish)

    def _finish(self) -> None:
        raise StopTraining("it is good enough")


def test_an_action_at_a_boundary_may_finish_the_training() -> None:
    trained = trainer(FinishAtBoundary())
    trained.train(5)
    assert trained.global_step == 4
    assert trained.finish_reason == "it is good enough"
    assert trained.outcome == "done"


class Broken(Callback):
    def setup_graph(self) -> None:
        raise OSError("no such device")


class Closing(Callback):
    closed = 0

    def after_train(self) -> None:
        self.closed += 1


def test_a_failing_set_up_frees_what_was_taken() -> None:
    state = trainer().state()
    closing = Closing()
    with pytest.raises(OSError, match="no such device"):
        trainer(closing, Broken()).load_state(state)
    assert closing.closed == 1


def test_a_checkpoint_refuses_what_it_could_not_read_back(tmp_path) -> None:
    store = CheckpointStore(tmp_path)
    with pytest.raises(CheckpointError, match=r"hold numbers or text \(received: `w` of type object"):
        store.save(RunState({"global_step": 1}, {"w": np.array([{}], dtype=object)}))
    assert store.list() == []
