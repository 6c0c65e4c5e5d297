"""Stopped at every single step of a training, in this process: saved and resumed, it is the same training."""

import pytest
from worker_jobs import LAST, differences, make_job, outcome_of, steps_of

from ziggurat.callbacks import Callback
from ziggurat.engine.random_state import global_random_state, load_global_random_state, seed_global_random
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import load_spec
from ziggurat.worker.build import build_job


class EndAt(Callback):
    """Ends the training after a step: by a request to stop, or by an error."""

    def __init__(self, step, how):
        self.step = step
        self.how = how

    def trigger_step(self):
        if self.global_step == self.step and self.how == "stop":
            self.trainer.request_stop("the test asked for it")
        elif self.global_step == self.step and self.how == "error":
            raise OSError("the test raised it")


@pytest.fixture(autouse=True)
def same_generators_afterwards():
    """The generators of this process belong to the other tests."""
    before = global_random_state()
    yield
    load_global_random_state(before)


def go_on(folder, step=0, how=""):
    """Do what a worker does, in this process."""
    spec = load_spec(JobFolder(folder).spec)
    seed_global_random(spec.seed)
    built = build_job(spec, JobFolder(folder), Callback(), Settings())
    built.trainer.callbacks.insert(3, EndAt(step, how))
    newest = built.store.latest()
    if newest is not None:
        built.trainer.load_state(newest[1])
        built.store.remove_after(newest[0].step)
    built.trainer.train(spec.epochs)
    return built.trainer.outcome


@pytest.mark.parametrize("how", ["stop", "error"])
def test_every_step(tmp_path, data, how):
    changes = {"callbacks": [], "data": data}
    assert go_on(make_job(tmp_path / "whole", **changes)) == "done"
    whole = outcome_of(tmp_path / "whole")
    for step in range(1, LAST + 1):
        folder = make_job(tmp_path / f"{how}-{step}", **changes)
        if how == "error":
            with pytest.raises(OSError, match="the test raised it") as caught:
                go_on(folder, step, how)
            assert any(f"step {step}." in note for note in caught.value.__notes__)
        else:
            assert go_on(folder, step, how) == "stopped"
            assert steps_of(folder)[-1] == step
        assert go_on(folder) == "done"
        assert differences(outcome_of(folder), whole) == []
