"""A training that is killed in the middle of saving, in a process of its own, and goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from callback_trainings import train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import newest_run_state
from ziggurat.tf.savers import MinSaver, ModelSaver

PROGRAM = """
import os, signal, sys
from pathlib import Path
from callback_trainings import train
from test_savers_killed import callbacks
from ziggurat.tf.savers import ModelSaver

class Killed(ModelSaver):
    def _write(self):
        # Behind the run state of step 16, before TensorFlow's files of it.
        if self.global_step == 16:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._write()

train(callbacks(Killed), folder=Path(sys.argv[1]), epochs=4)
"""


class Score(Callback):
    """Puts what is best after the second epoch."""

    def _trigger_epoch(self) -> None:
        self.trainer.monitors.put_scalar("score", abs(self.epoch_num - 2.0))


def callbacks(saver: type[ModelSaver] = ModelSaver) -> list[Callback]:
    saver.__name__ = "ModelSaver"  # the name under which its state is kept
    return [saver(), MinSaver("score"), Score()]  # pyright: ignore[reportReturnType]


def test_kill_while_saving_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "parts")], cwd=Path(__file__).parent, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert not tf.train.checkpoint_exists(str(tmp_path / "parts" / "model-16"))
    state = newest_run_state(tmp_path / "parts")
    assert state is not None
    assert state.meta["global_step"] == 16
    parts = variables(train(callbacks(), folder=tmp_path / "parts", epochs=4, state=state))
    whole = variables(train(callbacks(), folder=tmp_path / "whole", epochs=4))

    assert {name: array.tobytes() for name, array in parts.items()} == {
        name: array.tobytes() for name, array in whole.items()
    }
    for name in ("model-8", "model-16", "model-24", "model-32", "min-score"):
        one, other = (tf.train.load_checkpoint(str(tmp_path / place / name)) for place in ("parts", "whole"))
        for variable in one.get_variable_to_shape_map():
            assert np.array_equal(one.get_tensor(variable), other.get_tensor(variable)), (name, variable)
