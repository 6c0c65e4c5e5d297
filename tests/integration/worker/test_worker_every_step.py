"""Stopped at every single step of a training, in this process: saved and resumed, it is the same training."""

import pytest
from worker_jobs import LAST, MAY_DIFFER_WITH_THREADS, differences, make_job, outcome_of, steps_of

from ziggurat.callbacks import Callback
from ziggurat.engine.run_state import global_random_state, load_global_random_state, seed_global_random
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import load_spec
from ziggurat.worker.build import build_job


class BreakOffBefore(Callback):
    """Breaks off the wait for the batch of a step, as a signal does that comes meanwhile."""

    def __init__(self, step):
        self.step = step

    def setup_graph(self):
        self.trainer.batches.source = Breaking(self.trainer.batches.source, self)


class Breaking:
    """Data that the signal interrupts once it has made the batch, and before it gives it."""

    def __init__(self, flow, callback):
        self.flow = flow
        self.callback = callback
        self.state, self.load_state, self.close = flow.state, flow.load_state, flow.close

    def __iter__(self):
        for batch in self.flow:
            trainer = self.callback.trainer
            if trainer.global_step + 1 == self.callback.step:
                trainer.request_stop("the test asked for it")
                trainer.break_off_waiting()
            yield batch


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


def go_on(folder, *callbacks):
    """Do what a worker does, in this process."""
    spec = load_spec(JobFolder(folder).spec)
    seed_global_random(spec.seed)
    built = build_job(spec, JobFolder(folder), Callback(), Settings())
    built.trainer.callbacks[3:3] = callbacks
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
                go_on(folder, EndAt(step, how))
            assert any(f"step {step}." in note for note in caught.value.__notes__)
        else:
            assert go_on(folder, EndAt(step, how)) == "stopped"
            assert steps_of(folder)[-1] == step
        assert go_on(folder) == "done"
        assert differences(outcome_of(folder), whole) == []


@pytest.mark.parametrize("kind", ["data", "pictures"])
def test_broken_off_while_it_waits_for_the_batch_of_every_step(tmp_path, data, pictures, kind):
    source = {"data": {"data": data}, "pictures": {"data": pictures, "preprocessing": {"size": 8, "channels": 1}}}
    changes = {"callbacks": [], **source[kind]}
    assert go_on(make_job(tmp_path / "whole", **changes)) == "done"
    whole = outcome_of(tmp_path / "whole", MAY_DIFFER_WITH_THREADS)
    folder = make_job(tmp_path / "broken-again-and-again", **changes)
    for step in range(1, LAST + 1):
        assert go_on(folder, BreakOffBefore(step)) == "stopped"
        assert go_on(folder, BreakOffBefore(step)) == "stopped"  # with nothing done in between
        assert steps_of(folder)[-1:] == ([step - 1] if step > 1 else [])
    assert go_on(folder) == "done"
    assert differences(outcome_of(folder, MAY_DIFFER_WITH_THREADS), whole) == []
