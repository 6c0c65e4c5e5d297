"""Events in the store: each batch once, later attempts make earlier points void, summaries stay true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_samples import ended, message, new_job, point, saved, started

from ziggurat.entities import Attempt
from ziggurat.errors import JobError
from ziggurat.events import (
    CheckpointRemoved,
    CheckpointSaved,
    EpochEnded,
    ErrorRaised,
    Event,
    Message,
    Progress,
    ScalarLogged,
    UnknownEvent,
    decode_event,
    effective_scalars,
)
from ziggurat.store import Store


def test_a_batch_is_taken_once(store: Store) -> None:
    store.jobs.add(new_job("a"))
    assert store.events.take("a", 0, 100, [point("loss", 1, 0.5)])
    assert not store.events.take("a", 0, 100, [point("loss", 1, 0.7)])
    assert not store.events.take("a", 50, 150, [point("loss", 2, 0.7)])
    assert store.events.take("a", 100, 200, [point("loss", 2, 0.25)])
    job = store.jobs.get("a")
    assert job.events_offset == 200
    assert store.curves.curve("a", "loss").values.tolist() == [0.5, 0.25]
    with pytest.raises(JobError):
        store.events.take("nobody", 0, 1, [])


def test_a_whole_attempt(store: Store) -> None:
    store.jobs.add(new_job("a"))
    store.jobs.move("a", ["queued"], "running")
    events: list[Event] = [
        started(1.0),
        Progress(time=2.0, epoch=1, global_step=5, total_steps=30, remaining_s=9.0, steps_per_s=2.5,
                 data_wait_share=0.1),
        point("loss", 10, 0.5), saved(10, loss=0.5), EpochEnded(time=3.0, epoch=1, global_step=10, duration_s=2.0),
        message("Look."), saved(20), CheckpointRemoved(time=4.0, name="step-00000020"),
    ]  # fmt: skip
    assert store.events.take("a", 0, 10, events)
    job = store.jobs.get("a")
    assert (job.state, job.attempt, job.epoch, job.global_step, job.total_steps) == ("running", 1, 1, 10, 30)
    assert (job.started, job.ended, job.remaining_s, job.steps_per_s, job.data_wait_share) == (1.0, None, 9.0, 2.5, 0.1)
    assert (job.max_epoch, job.stage, job.error) == (3, "", None)
    [checkpoint] = store.curves.checkpoints("a")
    assert (checkpoint.name, checkpoint.scalars, checkpoint.created) == ("step-00000010", {"loss": 0.5}, 110.0)
    assert [said.text for said in store.curves.messages("a")] == ["Look."]

    error = ErrorRaised(time=8.0, error={"error": "data", "message": "No."}, traceback="Traceback …", step=12)
    assert store.events.take("a", 10, 20, [error, ended(outcome="failed", step=12)])
    job = store.jobs.get("a")
    assert job.error == {"error": "data", "message": "No.", "traceback": "Traceback …"}
    assert (job.ended, job.exit_code, job.remaining_s, job.global_step, job.state) == (9.0, 6, None, 12, "running")
    assert store.curves.attempts("a") == [
        Attempt(number=1, started=1.0, ended=9.0, outcome="failed", exit_code=6, reason="because", pid=7, host="here",
                first_step=0, last_step=12)
    ]  # fmt: skip


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_a_resumed_attempt_makes_later_points_void(store: Store, in_one_batch: bool) -> None:
    store.jobs.add(new_job("a"))
    first = [started(1.0), *(point("loss", step, -float(step)) for step in range(1, 26)), point("only_late", 24, 1.0)]
    first += [saved(10), saved(20)]
    second = [started(50.0, at=10, checkpoint="step-00000010"), point("loss", 11, 7.0)]
    for offset, batch in enumerate([first + second] if in_one_batch else [first, second]):
        assert store.events.take("a", offset, offset + 1, batch)
    curve = store.curves.curve("a", "loss")
    assert curve.steps.tolist() == list(range(1, 12))
    assert curve.values.tolist() == [-float(step) for step in range(1, 11)] + [7.0]
    assert store.curves.tags("a") == ["loss"]
    summary = store.jobs.get("a").scalars["loss"]
    assert (summary.last, summary.minimum, summary.maximum, summary.count, summary.last_step) == (
        7.0,
        -10.0,
        7.0,
        11,
        11,
    )
    assert [checkpoint.step for checkpoint in store.curves.checkpoints("a")] == [10]
    one, two = store.curves.attempts("a")
    assert (one.outcome, one.ended, one.last_step, two.number, two.first_step) == ("lost", None, 25, 2, 10)
    job = store.jobs.get("a")
    assert (job.attempt, job.global_step, job.epoch, job.started) == (2, 11, 1, 50.0)


def test_numbers_that_are_none(store: Store) -> None:
    store.jobs.add(new_job("a"))
    values = [math.nan, math.inf, 1.0, -math.inf, math.nan]
    store.events.take("a", 0, 1, [point("x", step, value) for step, value in enumerate(values)])
    store.events.take("a", 1, 2, [point("y", 0, math.nan)])
    curve = store.curves.curve("a", "x")
    assert [repr(value) for value in curve.values.tolist()] == ["nan", "inf", "1.0", "-inf", "nan"]
    summary = store.jobs.get("a").scalars["x"]
    assert math.isnan(summary.last)
    assert (summary.minimum, summary.maximum, summary.count) == (-math.inf, math.inf, 5)
    assert math.isnan(store.jobs.get("a").scalars["y"].minimum)


def test_damaged_events_are_passed_over(store: Store) -> None:
    store.jobs.add(new_job("a"))
    lines = [
        '{"type":"scalar","time":1,"tag":"x","value":1.5,"step":3,"epoch":1}',
        '{"type":"scalar","time":1,"tag":"x","value":1.5,"step":"4","epoch":1}',
        '{"type":"scalar","time":1,"tag":"x","value":1.5,"step":-4,"epoch":1}',
        '{"type":"scalar","time":1,"tag":7,"value":1.5,"step":5,"epoch":1}',
        '{"type":"scalar","time":1,"tag":"x","value":1.5,"step":99999999999999999999999999,"epoch":1}',
        '{"type":"scalar","time":1,"tag":"x","value":"NaN","step":6,"epoch":9e99}',
        '{"type":"scalar","time":NaN,"tag":"x","value":2,"step":6,"epoch":1}',
        '{"type":"scalar","time":"1","tag":"x","value":2,"step":6,"epoch":1}',
        '{"type":"attempt_started","time":1,"attempt":"1","pid":1,"host":"h","backend":"b","release":"r"}',
        '{"type":"progress","time":1,"epoch":1,"global_step":4,"total_steps":9,"remaining_s":"Infinity"}',
        '{"type":"checkpoint_saved","time":1,"name":"c","step":1,"epoch":1,"scalars":["x"]}',
        '{"type":"checkpoint_saved","time":1,"name":"d","step":1,"epoch":1,"scalars":{"x":"NaN","y":{},"z":2}}',
        '{"type":"message","time":1,"level":"info","text":["no"]}',
        '{"type":"message","time":1,"level":"info","text":"nul \\u0000 \\ud800"}',
        '{"type":"error","time":1,"error":"text"}',
        '{"type":"of the future","time":1}',
    ]
    events = [decode_event(line) for line in lines]
    assert isinstance(events[-1], UnknownEvent)
    assert store.events.take("a", 0, 1, events)
    job = store.jobs.get("a")
    assert store.curves.curve("a", "x").steps.tolist() == [3]
    assert (job.global_step, job.attempt, job.remaining_s, job.total_steps, job.error) == (4, 0, None, 9, None)
    [checkpoint] = store.curves.checkpoints("a")
    assert checkpoint.name == "d"
    assert math.isnan(checkpoint.scalars["x"])
    assert checkpoint.scalars["z"] == 2
    assert [said.text for said in store.curves.messages("a")] == ["nul \ufffd \ufffd"]


def test_names_of_any_length_are_cut(store: Store) -> None:
    store.jobs.add(new_job("a"))
    name = "x" * 100_000
    events = [point(name, 1, 1.0), CheckpointSaved(time=1.0, name=name, step=1, epoch=1, reason=name), message(name)]
    assert store.events.take("a", 0, 1, events)
    assert store.curves.tags("a") == ["x" * 500]
    assert [one.name for one in store.curves.checkpoints("a")] == ["x" * 500]


def test_the_newest_thousand_messages_stay(store: Store) -> None:
    store.jobs.add(new_job("a"))
    store.jobs.add(new_job("b"))
    store.events.take("b", 0, 1, [message("other")])
    for batch in range(3):
        said: list[Message] = [
            message(f"{batch}-{number}", level=("info", "warning")[number % 2]) for number in range(600)
        ]
        store.events.take("a", batch, batch + 1, said)
    texts = [said.text for said in store.curves.messages("a", limit=5000)]
    assert (len(texts), texts[0], texts[-1]) == (1000, "1-200", "2-599")
    assert [said.text for said in store.curves.messages("a", levels=["warning"], limit=2)] == ["2-597", "2-599"]
    assert len(store.curves.messages("b")) == 1


def test_a_reset_job_is_read_again_from_the_start(store: Store) -> None:
    store.jobs.add(new_job("a", notes="kept"))
    events = [started(), point("loss", 1, 1.0), saved(10), message("hello"), ended()]
    store.events.take("a", 0, 9, events)
    before = store.jobs.get("a")
    store.events.reset("a")
    job = store.jobs.get("a")
    assert (job.events_offset, job.attempt, job.global_step, job.ended, job.scalars, job.notes) == (
        0,
        0,
        0,
        None,
        {},
        "kept",
    )
    assert store.curves.attempts("a") == store.curves.checkpoints("a") == store.curves.messages("a") == []
    store.events.take("a", 0, 9, events)
    assert store.jobs.get("a") == before


def test_a_lost_attempt_says_so(store: Store) -> None:
    store.jobs.add(new_job("a"))
    store.events.take("a", 0, 1, [started()])
    store.events.lose_attempt("a", "the worker is gone")
    assert [(one.outcome, one.reason) for one in store.curves.attempts("a")] == [("lost", "the worker is gone")]
    store.events.take("a", 1, 2, [ended()])  # it spoke after all
    store.events.lose_attempt("a", "the worker is gone")
    assert [(one.outcome, one.reason) for one in store.curves.attempts("a")] == [("done", "because")]


def test_many_points_take_little_time(sqlite_store: Store) -> None:
    sqlite_store.jobs.add(new_job("a"))
    events = [point(f"tag-{number % 5}", number // 5, float(number)) for number in range(50_000)]
    assert sqlite_store.events.take("a", 0, 1, events)
    assert sqlite_store.jobs.get("a").scalars["tag-3"].count == 10_000


some_points = st.builds(
    point, st.sampled_from(["x", "y"]), st.integers(0, 12), st.sampled_from([-1.0, 0.5, 2.0, math.nan, math.inf])
)
some_events = st.lists(
    some_points | st.builds(lambda at: started(at=at), st.integers(0, 12)) | st.builds(saved, st.integers(0, 12)),
    max_size=25,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(events=some_events, cuts=st.lists(st.integers(0, 25), max_size=4))
def test_however_events_are_cut_into_batches_the_sum_is_the_same(
    store: Store, events: list[Event], cuts: list[int]
) -> None:
    store.jobs.delete("a")
    store.jobs.add(new_job("a"))
    borders = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    for begin, end in pairwise(borders):
        assert store.events.take("a", begin, end, events[begin:end])
        assert not store.events.take("a", begin, end, events[begin:end])
    expected = _expected_curves(events)
    assert store.curves.tags("a") == sorted(expected)
    for tag, points in expected.items():
        curve = store.curves.curve("a", tag)
        assert curve.steps.tolist() == sorted(points)
        assert list(map(repr, curve.values.tolist())) == [repr(points[step]) for step in sorted(points)]
        summary = store.jobs.get("a").scalars[tag]
        numbers = [value for value in points.values() if not math.isnan(value)]
        assert (summary.count, summary.last_step, repr(summary.last)) == (
            len(points),
            max(points),
            repr(points[max(points)]),
        )
        assert repr(summary.minimum) == repr(min(numbers, default=math.nan))
        assert repr(summary.maximum) == repr(max(numbers, default=math.nan))
    assert {one.name for one in store.curves.checkpoints("a")} == _expected_checkpoints(events)
    assert len(store.curves.attempts("a")) == sum(event.type == "attempt_started" for event in events)


def _expected_curves(events: Sequence[Event]) -> dict[str, dict[int, float]]:
    curves: dict[str, dict[int, float]] = {}
    for one in effective_scalars(events):
        assert isinstance(one, ScalarLogged)
        curves.setdefault(one.tag, {})[one.step] = one.value
    return curves


def _expected_checkpoints(events: Sequence[Event]) -> set[str]:
    kept: dict[str, int] = {}
    for event in events:
        if isinstance(event, CheckpointSaved):
            kept[event.name] = event.step
        elif event.type == "attempt_started":
            kept = {name: step for name, step in kept.items() if step <= event.global_step}  # type: ignore[attr-defined]
    return set(kept)
