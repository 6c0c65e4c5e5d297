"""Asking a network that still trains: the answers follow its checkpoints, and the training goes on as if alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inference_jobs import digit_pictures, digits_job, write_spec

from tests.waiting import PROCESS_S, wait_until
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.events import AttemptEnded, read_events
from ziggurat.layout import JobFolder
from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool


def test_a_name_is_followed_and_a_checkpoint_stays(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    shutil.copytree(digits_job(), folder)
    store = CheckpointStore(JobFolder(folder).checkpoints)
    state = store.load("step-00000078")
    with InferencePool(INFERENCE_COMMAND, os.environ) as pool:

        def ask(name: str) -> tuple[str, float]:
            answer = pool.predict(folder, name, digit_pictures(1), 1)
            return answer["checkpoint"], answer["predictions"][0]["classes"][0]["probability"]

        before = ask("latest")
        assert before == ask("step-00000078")
        arrays = {name: each * 0 if name == "layer2/W" else each for name, each in state.arrays.items()}
        store.save(RunState({**state.meta, "global_step": 100}, arrays))
        after = ask("latest")
        assert after[0] == "step-00000100"
        assert after[1] < before[1]
        assert ask("step-00000078") == before
        pids = {each.checkpoint: each.pid for each in pool.status()}
        store.save(RunState({**state.meta, "global_step": 100}, state.arrays))  # the same step, trained anew
        assert ask("latest") == ("step-00000100", before[1])
        shutil.rmtree(store.folder / "step-00000078")
        assert ask("step-00000078") == before
        assert {each.checkpoint: each.pid for each in pool.status()} == pids


@pytest.mark.nightly
def test_a_training_is_not_disturbed(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"epochs": 8, "learning_rate": 0.05, "checkpoints": {"every_epochs": 1}}
    alone, asked = (write_spec(tmp_path / name, **changes) for name in ("alone", "asked"))
    train = [sys.executable, "-m", "ziggurat.worker"]
    subprocess.run([*train, str(alone)], check=True, capture_output=True)
    answers = []
    with InferencePool(INFERENCE_COMMAND, os.environ) as pool:
        pool.describe(digits_job(), None)  # a first process is warm while the training begins
        with subprocess.Popen([*train, str(asked)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
            wait_until(
                lambda: any(JobFolder(asked).checkpoints.glob("step-*/state.json")),
                PROCESS_S,
                what="a first checkpoint",
            )
            while worker.poll() is None:
                answers.append(pool.predict(asked, "latest", digit_pictures(4), 1))
            assert worker.returncode == 0
        answers.append(pool.predict(asked, "latest", digit_pictures(4), 1))
    last = read_events(JobFolder(asked).events)[0][-1]
    assert isinstance(last, AttemptEnded)
    steps = [each["step"] for each in answers]
    assert steps == sorted(steps)
    stores = [CheckpointStore(JobFolder(each).checkpoints, writable=False) for each in (alone, asked)]
    assert steps[-1] == stores[1].list()[-1].step
    one, other = (store.load(store.list()[-1].name).arrays for store in stores)
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)
