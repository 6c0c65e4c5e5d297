"""Whatever people ask for, in any state and in any order, the table of states says what happens."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from jobs_doubles import FakeExecutor, MemoryStore, machine, new_job

from ziggurat.errors import JobError
from ziggurat.events import ScalarLogged
from ziggurat.jobs import Supervisor
from ziggurat.jobs.state_machine import TRANSITIONS
from ziggurat.layout import JobFolder

PLACES = 2
any_job = st.integers(0, 5)
KINDS_OF_END = {"done": ("done", 0), "stopped": ("stopped", 75), "failed": ("failed", 4), "lost": ("", -9)}


class Studio(RuleBasedStateMachine):
    """People, workers and kills of the studio, against what the table expects."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.workspace = Path(self.folder.name)
        self.store = MemoryStore()
        self.executor = FakeExecutor(machines=[machine(cpu_slots=PLACES)])
        self.supervisor = self.new_supervisor()
        self.expected = {}
        self.points = {}
        self.count = 0

    def new_supervisor(self):
        return Supervisor(self.store, self.executor, self.workspace)

    def teardown(self):
        self.supervisor.close()
        self.folder.cleanup()

    def chosen(self, number):
        names = sorted(self.expected)
        return names[number % len(names)] if names else None

    def ask(self, number, event, act):
        """Ask for something; the table says whether it is done or refused."""
        name = self.chosen(number)
        if name is None:
            return
        is_request = event in ("stop", "pause")
        if is_request and self.expected[name] == "stopping" and self.row(name).paused == (event == "pause"):
            return  # asked again, force is used: test_jobs_forced_stop shows it
        after = TRANSITIONS[self.expected[name]].get(event)
        if after is None:
            with pytest.raises(JobError, match="Only"):
                act(name)
        else:
            act(name)
            self.expected[name] = after

    # ---- people

    @rule()
    @precondition(lambda self: self.count < 8)
    def submit(self):
        name = f"job{self.count}"
        self.count += 1
        self.supervisor.submit(new_job(self.workspace, name))
        self.expected[name] = "queued"
        self.points[name] = 0

    @rule(number=any_job)
    def stop(self, number):
        self.ask(number, "stop", self.supervisor.stop)

    @rule(number=any_job)
    def pause(self, number):
        self.ask(number, "pause", self.supervisor.pause)

    @rule(number=any_job)
    def resume(self, number):
        self.ask(number, "resume", self.supervisor.resume)

    @rule(number=any_job)
    def retry(self, number):
        self.ask(number, "retry", self.supervisor.retry)

    @rule(number=any_job)
    def delete(self, number):
        self.ask(number, "delete", self.supervisor.delete)
        self.expected = {name: state for name, state in self.expected.items() if state}

    @rule(number=any_job)
    def delete_by_force(self, number):
        name = self.chosen(number)
        if name is not None:
            self.supervisor.delete(name, force=True)
            del self.expected[name]

    @rule(number=any_job, other=any_job)
    def reorder(self, number, other):
        name, before = self.chosen(number), self.chosen(other)
        if name is None or before is None:
            return
        if {self.expected[name], self.expected[before]} != {"queued"}:
            with pytest.raises(JobError, match="Only jobs in the queue"):
                self.supervisor.reorder(name, before=before)
        else:
            self.supervisor.reorder(name, before=before)

    @rule(number=any_job, priority=st.integers(-2, 2))
    def set_priority(self, number, priority):
        name = self.chosen(number)
        if name is not None:
            self.supervisor.set_priority(name, priority)

    # ---- workers

    @rule(number=any_job)
    def put_a_point(self, number):
        alive = sorted(self.executor.alive)
        if alive:
            folder = alive[number % len(alive)]
            self.points[folder.name] += 1
            self.executor.put(folder, self.points[folder.name])

    @rule(number=any_job, how=st.sampled_from(sorted(KINDS_OF_END)))
    def end_one(self, number, how):
        alive = sorted(self.executor.alive)
        if alive:
            folder = alive[number % len(alive)]
            outcome, code = KINDS_OF_END[how]
            self.executor.end(folder, outcome, code)
            event = "lost" if how == "lost" else f"end_{how}"
            if how == "lost" and self.expected[folder.name] == "stopping":
                event = "end_stopped"  # killed after it was asked to stop
            self.tick(ended={folder.name: TRANSITIONS[self.expected[folder.name]][event]})

    # ---- the studio

    @rule()
    def just_tick(self):
        self.tick()

    @rule()
    def another_supervisor(self):
        self.supervisor.close()
        self.supervisor = self.new_supervisor()

    def tick(self, ended=None):
        self.executor.now += 1
        self.expected.update(ended or {})
        self.supervisor.tick(self.executor.now)
        queued = [name for name, state in self.expected.items() if state == "queued"]
        places = PLACES - sum(state in ("running", "stopping") for state in self.expected.values())
        order = sorted(queued, key=lambda name: (-self.row(name).priority, self.row(name).position))
        for name in order[: max(0, places)]:
            self.expected[name] = "running"
        for name in order[max(0, places) :]:
            assert self.row(name).reason

    def row(self, name):
        return self.store.jobs.get(name)

    # ---- what always holds

    @invariant()
    def states_are_those_of_the_table(self):
        assert {name: job.state for name, job in self.store.jobs.rows.items()} == self.expected

    @invariant()
    def workers_are_where_jobs_are_active(self):
        active = {name for name, state in self.expected.items() if state in ("running", "stopping")}
        assert {folder.name for folder in self.executor.alive} == active
        assert len(active) <= PLACES
        for name in active:
            asked = JobFolder(self.workspace / "jobs" / name).stop_request.exists()
            assert asked == (self.expected[name] == "stopping")

    @invariant()
    def no_point_is_missing_or_doubled_once_it_ended(self):
        for name, state in self.expected.items():
            if state in ("done", "failed"):
                taken = self.store.events.taken.get(name, [])
                steps = [event.step for event in taken if isinstance(event, ScalarLogged)]
                assert steps == list(range(1, self.points[name] + 1))

    @invariant()
    def folders_are_there_for_jobs_and_for_nothing_else(self):
        jobs = self.workspace / "jobs"
        there = {path.name for path in jobs.iterdir()} if jobs.is_dir() else set()
        assert there == set(self.expected)


TestStudio = Studio.TestCase
TestStudio.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
