"""How long a plan of the queue holds: while nothing moves it is not made anew, and what moves is seen at once."""

from dataclasses import replace

import pytest
from jobs_doubles import machine

from ziggurat.entities import JobChange, ResourceRequest

SOMEBODY_ELSES = "a word that only a new plan replaces"


@pytest.fixture
def waiting(studio):
    """Return a studio in which `a` and `b` run, and `c` waits with a reason that no plan gave it."""
    for name in ("a", "b", "c"):
        studio.submit(name)
    studio.tick()
    studio.tick()  # the first plan had something to do, so it is made once more
    assert studio.states() == {"a": "running", "b": "running", "c": "queued"}
    assert studio.job("c").reason.startswith("waits for one of 2 CPU slots")
    studio.store.jobs.note("c", reason=SOMEBODY_ELSES)
    return studio


def test_a_plan_holds_for_ten_seconds_where_nothing_moves(waiting):
    for _ in range(9):
        waiting.tick()
        assert waiting.job("c").reason == SOMEBODY_ELSES
    waiting.tick()
    assert waiting.job("c").reason.startswith("waits for one of 2 CPU slots")


def test_a_clock_that_went_back_ends_a_plan(waiting):
    waiting.tick(-3600.0)
    assert waiting.job("c").reason.startswith("waits for one of 2 CPU slots")


def test_whoever_asks_gets_a_new_plan_at_once(waiting):
    waiting.supervisor.wake()
    waiting.tick()
    assert waiting.job("c").reason.startswith("waits for one of 2 CPU slots")


def test_notes_of_a_job_need_no_new_plan_but_its_priority_does(waiting):
    waiting.supervisor.change("c", JobChange(notes="good"))
    waiting.tick()
    assert waiting.job("c").reason == SOMEBODY_ELSES
    waiting.supervisor.change("c", JobChange(priority=3))
    waiting.tick()
    assert waiting.job("c").reason.startswith("waits for one of 2 CPU slots")


def test_the_next_job_starts_in_the_look_that_sees_an_end(waiting):
    waiting.executor.end(waiting.folder("a"), "done", 0, "all epochs are done")
    waiting.tick()
    assert waiting.states() == {"a": "done", "b": "running", "c": "running"}


def test_a_machine_that_has_more_gets_a_new_plan_at_once(waiting):
    waiting.machine = replace(waiting.machine, cpu_slots=3)
    waiting.tick()
    assert waiting.job("c").state == "running"


def test_a_busy_accelerator_and_a_disk_with_room_need_no_plan(studio):
    for each in ("a", "b"):
        studio.submit(each, needs=ResourceRequest(devices=1, slot="device"))
    studio.machine = machine(1, disk_free_bytes=900, disk_reserve_bytes=100)
    studio.tick()
    studio.tick()
    studio.store.jobs.note("b", reason=SOMEBODY_ELSES)
    busy = replace(studio.machine.devices[0], load=0.9)
    studio.machine = replace(studio.machine, devices=(busy,), disk_free_bytes=800)
    studio.tick()
    assert studio.job("b").reason == SOMEBODY_ELSES
    studio.machine = replace(studio.machine, disk_free_bytes=90)
    studio.tick()
    assert "disk" in studio.job("b").reason
