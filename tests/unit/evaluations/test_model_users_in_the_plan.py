"""A job that uses a model waits for its place, but neither for the end of the training nor for its success."""

from __future__ import annotations

import pytest

from ziggurat.entities import Job, ResourceRequest, Resources
from ziggurat.jobs.plan import Fail, Start, plan


def a_job(name: str, state: str, kind: str, **fields: object) -> Job:
    return Job(
        id=name, kind=kind, name=name, state=state, folder="", spec={}, needs=ResourceRequest(slot="cpu"), **fields
    )


@pytest.mark.parametrize("kind", ["evaluate", "infer"])
@pytest.mark.parametrize("state", ["running", "stopped", "failed", "done"])
def test_the_state_of_the_training_does_not_matter(kind, state):
    training = a_job("model", state, "train")
    made = plan(
        [a_job("e", "queued", kind, depends_on=("model",)), training],
        [training] if state == "running" else [],
        Resources(cpu_slots=2),
        0.0,
    )

    assert made.actions == (Start("e"),)


def test_a_training_that_is_gone_fails_it():
    made = plan([a_job("e", "queued", "evaluate", depends_on=("model",))], [], Resources(cpu_slots=2), 0.0)

    (action,) = made.actions
    assert isinstance(action, Fail)
