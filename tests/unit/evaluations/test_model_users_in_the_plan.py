"""A job that uses a model waits for its place, but neither for the end of the training nor for its success."""

from __future__ import annotations

import pytest

from ziggurat.entities import Job, NodeResources, ResourceRequest, Share
from ziggurat.jobs.plan import Fail, Start, plan


def a_job(name: str, state: str, kind: str, **fields: object) -> Job:
    spec = fields.pop("spec", {})
    needs = ResourceRequest(slot="cpu")
    return Job(id=name, kind=kind, name=name, state=state, folder="", spec=spec, needs=needs, **fields)


@pytest.mark.parametrize("kind", ["evaluate", "infer"])
@pytest.mark.parametrize("state", ["running", "stopped", "failed", "done"])
def test_the_state_of_the_training_does_not_matter(kind, state):
    training = a_job("model", state, "train")
    made = plan(
        [a_job("e", "queued", kind, depends_on=("model",)), training],
        [training] if state == "running" else [],
        [NodeResources(cpu_slots=2)],
        0.0,
    )

    assert made.actions == (Start("e", (Share(""),)),)


def test_a_training_that_is_gone_fails_it():
    made = plan([a_job("e", "queued", "evaluate", depends_on=("model",))], [], [NodeResources(cpu_slots=2)], 0.0)

    (action,) = made.actions
    assert isinstance(action, Fail)


@pytest.mark.parametrize("state", ["queued", "running", "stopped", "done", "failed"])
def test_an_evaluation_after_the_training_waits(state):
    training = a_job("model", state, "train")
    waiting = a_job("e", "queued", "evaluate", depends_on=("model",), spec={"after_training": True})

    made = plan([waiting, training], [training] if state == "running" else [], [NodeResources(cpu_slots=1)], 0.0)

    actions = {action.job_id: type(action) for action in made.actions}
    if state in ("done", "failed"):
        assert actions == {"e": Start if state == "done" else Fail}
    else:
        assert "e" not in actions
