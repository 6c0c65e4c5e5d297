"""Any course of additions, moves, changes, batches and deletions leaves what a model in plain Python has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from tests.unit.store.store_samples import new_job, point, started
from ziggurat.entities import JOB_STATES, JobChange, JobFilter
from ziggurat.events import Event
from ziggurat.store import Store


@dataclass
class ModelJob:
    """A job as the model has it."""

    state: str = "queued"
    priority: int = 0
    tags: tuple[str, ...] = ()
    offset: int = 0
    steps: dict[int, float] = field(default_factory=dict)


class StoreMachine(RuleBasedStateMachine):
    """The store beside its model; ``order`` is the queue."""

    jobs = Bundle("jobs")

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.model: dict[str, ModelJob] = {}
        self.order: list[str] = []
        self.made = 0
        for job in store.jobs.in_states(JOB_STATES):
            store.jobs.delete(job.id)

    @rule(target=jobs, priority=st.integers(-1, 1), tags=st.sampled_from([(), ("t",), ("t", "u")]))
    def add(self, priority: int, tags: tuple[str, ...]) -> str:
        self.made += 1
        job_id = f"j{self.made}"
        self.store.jobs.add(new_job(job_id, priority=priority, tags=tags, created=float(self.made)))
        self.model[job_id] = ModelJob(priority=priority, tags=tags)
        self.order.append(job_id)
        return job_id

    @rule(job_id=jobs, source=st.sampled_from(JOB_STATES), target_state=st.sampled_from(JOB_STATES))
    def move(self, job_id: str, source: str, target_state: str) -> None:
        moved = self.store.jobs.move(job_id, [source], target_state)
        assert moved == (self.model[job_id].state == source)
        if moved:
            self.model[job_id].state = target_state

    @rule(job_id=jobs, priority=st.integers(-1, 1))
    def change(self, job_id: str, priority: int) -> None:
        self.store.jobs.change(job_id, JobChange(priority=priority), 0.0)
        self.model[job_id].priority = priority

    @rule(job_id=jobs, before=jobs)
    def reorder(self, job_id: str, before: str) -> None:
        self.store.jobs.reorder(job_id, before=before)
        if job_id != before:
            self.order.remove(job_id)
            self.order.insert(self.order.index(before), job_id)

    @rule(job_id=jobs)
    def put_last(self, job_id: str) -> None:
        self.store.jobs.reorder(job_id)
        self.order.remove(job_id)
        self.order.append(job_id)

    @rule(job_id=jobs, slip=st.sampled_from([0, 0, 1, -1]), at=st.none() | st.integers(0, 6),
          steps=st.lists(st.integers(0, 8), max_size=4))  # fmt: skip
    def take(self, job_id: str, slip: int, at: int | None, steps: list[int]) -> None:
        job = self.model[job_id]
        events: list[Event] = [started(at=at)] if at is not None else []
        events += [point("loss", step, float(job.offset + step)) for step in steps]
        assert self.store.events.take(job_id, job.offset + slip, job.offset + 10, events) == (slip == 0)
        if slip:
            return
        if at is not None:
            job.steps = {step: value for step, value in job.steps.items() if step <= at}
        job.steps |= {step: float(job.offset + step) for step in steps}
        job.offset += 10

    @rule(job_id=consumes(jobs))
    def delete(self, job_id: str) -> None:
        self.store.jobs.delete(job_id)
        del self.model[job_id]
        self.order.remove(job_id)

    @invariant()
    def the_store_has_what_the_model_has(self) -> None:
        queue = sorted(self.order, key=lambda job_id: -self.model[job_id].priority)
        assert [job.id for job in self.store.jobs.in_states(JOB_STATES)] == queue
        states = [job.state for job in self.model.values()]
        assert self.store.jobs.counts() == {state: states.count(state) for state in JOB_STATES}
        assert self.store.jobs.tags() == sorted({tag for job in self.model.values() for tag in job.tags})
        curves = self.store.curves.many(self.order, "loss")
        for job_id, job in self.model.items():
            assert self.store.jobs.get(job_id).events_offset == job.offset
            found = curves.get(job_id)
            points = {} if found is None else dict(zip(found.steps.tolist(), found.values.tolist()))
            assert points == job.steps
        last = {job_id: job.steps[max(job.steps)] for job_id, job in self.model.items() if job.steps}
        wanted = JobFilter(sort="loss", conditions=(("loss", ">=", 3),), limit=100)
        chosen = [job.id for job in self.store.jobs.page(wanted).jobs]
        assert [last[job_id] for job_id in chosen] == sorted(
            (value for value in last.values() if value >= 3), reverse=True
        )


@pytest.mark.parametrize("address", ["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)], indirect=True)
def test_the_store_and_its_model(store: Store) -> None:
    machine: Any = lambda: StoreMachine(store)  # noqa: E731
    checks = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)
    few = settings(max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=checks)
    run_state_machine_as_test(machine, settings=few)
