"""What a worker says of a divergence, and what a person set by hand, in the store; a resume undoes what it repeats."""

from __future__ import annotations

from dataclasses import replace

import pytest
from store_samples import ended, message, new_job, point, started

from ziggurat.entities import JobFilter
from ziggurat.events import DivergenceNoticed, ErrorRaised, HyperparameterChanged
from ziggurat.store import Store


def diverged(noticed: int, state: str = "diverged", **fields: object) -> DivergenceNoticed:
    values = {"tag": "validation_cost", "value": 948.0, "step": 10, "epoch": 2, "best": 1.21, "best_epoch": 1}
    return DivergenceNoticed(time=5.0, state=state, noticed_step=noticed, **{**values, **fields})  # pyright: ignore


def by_hand(step: int, value: float, source: str = "person") -> HyperparameterChanged:
    return HyperparameterChanged(time=3.0, name="learning_rate", value=value, previous=0.01, step=step, source=source)


def test_divergence_is_a_part_of_the_job(store: Store) -> None:
    store.jobs.add(new_job("a"))
    assert store.events.take("a", 0, 1, [started(), diverged(30)])

    held = store.jobs.get("a").divergence
    assert held is not None
    assert held.text == "Diverged: the validation loss rose to 948 at epoch 2 (best 1.21 at epoch 1)."
    (listed,) = store.jobs.page(JobFilter(conditions=(("facts.divergence.epoch", "=", 2),))).jobs
    assert listed.divergence == held


def test_divergence_goes_when_the_run_recovered(store: Store) -> None:
    store.jobs.add(new_job("a"))
    store.events.take("a", 0, 1, [started(), diverged(30)])
    store.events.take("a", 1, 2, [diverged(60, "recovered")])

    assert store.jobs.get("a").divergence is None


@pytest.mark.parametrize("in_one_batch", [True, False])
@pytest.mark.parametrize(("resumed_at", "holds"), [(29, False), (30, True)])
def test_divergence_is_undone_by_an_earlier_resume(
    store: Store, in_one_batch: bool, resumed_at: int, holds: bool
) -> None:
    store.jobs.add(new_job("a"))
    first, second = [started(), diverged(30)], [started(6.0, attempt=2, at=resumed_at)]
    if in_one_batch:
        store.events.take("a", 0, 2, [*first, *second])
    else:
        store.events.take("a", 0, 1, first)
        store.events.take("a", 1, 2, second)

    assert (store.jobs.get("a").divergence is not None) is holds


def test_divergence_without_a_number_is_said(store: Store) -> None:
    store.jobs.add(new_job("a"))
    store.events.take("a", 0, 1, [diverged(30, value=None, best=None)])

    held = store.jobs.get("a").divergence
    assert held is not None
    assert held.text == "Diverged: the validation loss became NaN or infinite at step 10."


NOT_FINITE = {"step": 4, "tag": "cost", "epoch": 1, "non_finite": "NaN", "learning_rate": 1000.0}


@pytest.mark.parametrize("older", [False, True], ids=["now", "earlier release"])
def test_outcome_is_diverged_if_the_loss_was_not_finite(store: Store, older: bool) -> None:
    details = {"step": 4, "tag": "cost"} if older else NOT_FINITE
    error = {"error": "not_finite", "message": "No.", "details": details}
    for name, said in (("a", error), ("b", {**error, "details": {"step": 4, "tag": "model/w"}}), ("c", {"error": "x"})):
        store.jobs.add(new_job(name))
        raised = ErrorRaised(time=5.0, error=said, traceback='"error":"not_finite" "tag":"cost"', step=4)
        store.events.take(name, 0, 1, [started(), raised, ended(outcome="failed")])
        store.jobs.move(name, ("queued",), "failed")

    job = store.jobs.get("a")
    assert (job.state, job.outcome) == ("failed", "diverged")
    assert job.divergence is not None
    assert job.divergence.text == (
        "Diverged: the loss became NaN or infinite at step 4."
        if older
        else "Diverged: the loss became NaN at step 4, learning rate 1000."
    )
    assert _with_outcome(store, "diverged") == ["a"]
    assert _with_outcome(store, "failed") == ["c", "b"]
    store.jobs.move("a", ("failed",), "queued")
    assert store.jobs.get("a").outcome == "", "it is tried again"
    assert _with_outcome(store, "diverged") == []


def test_outcome_of_an_error_stored_earlier_is_diverged(store: Store) -> None:
    store.jobs.add(new_job("a"))
    store.jobs.move("a", ("queued",), "failed")
    store.jobs.note("a", error={"error": "not_finite", "details": {"step": 4, "tag": "cost"}})

    held = store.jobs.get("a").divergence
    assert held is not None
    assert held.text == "Diverged: the loss became NaN or infinite at step 4."
    assert _with_outcome(store, "diverged") == ["a"]


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_divergence_stays_as_it_was_first_noticed(store: Store, in_one_batch: bool) -> None:
    store.jobs.add(new_job("a"))
    error = {"error": "not_finite", "details": {"step": 60, "tag": "cost"}}
    first, second = [started(), diverged(30)], [ErrorRaised(time=9.0, error=error, traceback="", step=60)]
    if in_one_batch:
        store.events.take("a", 0, 2, [*first, *second])
    else:
        store.events.take("a", 0, 1, first)
        store.events.take("a", 1, 2, second)
    held = store.jobs.get("a").divergence
    assert held is not None
    assert held.step == 10

    store.events.take("a", 2, 3, [diverged(70, "recovered"), diverged(90, step=80)])
    held = store.jobs.get("a").divergence
    assert held is not None
    assert held.step == 80, "one after it recovered is another one"


def _with_outcome(store: Store, outcome: str) -> list[str]:
    found = store.jobs.page(JobFilter(conditions=(("outcome", "=", outcome),), sort="outcome")).jobs
    return [job.id for job in found]


def test_divergence_is_forgotten_with_a_reset(store: Store) -> None:
    store.jobs.add(new_job("a"))
    store.events.take("a", 0, 1, [started(), diverged(30)])
    store.events.reset("a")

    assert store.jobs.get("a").divergence is None


def test_interventions_are_messages_of_their_own(store: Store) -> None:
    store.jobs.add(new_job("a"))
    events = [started(), by_hand(4, 5.0), by_hand(8, 0.02, "schedule"), message("Look."), point("loss", 9, 1.0)]
    store.events.take("a", 0, 1, events)

    (said,) = store.curves.messages("a", levels=("intervention",))
    assert (said.step, said.text) == (4, "Learning rate set by hand: 0.01 to 5")


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_interventions_of_repeated_steps_go(store: Store, in_one_batch: bool) -> None:
    store.jobs.add(new_job("a"))
    first = [started(), by_hand(4, 0.1), by_hand(8, 5.0), ended(outcome="stopped")]
    second = [started(20.0, attempt=2, at=4), by_hand(4, 0.3)]
    if in_one_batch:
        store.events.take("a", 0, 2, [*first, *second])
    else:
        store.events.take("a", 0, 1, first)
        store.events.take("a", 1, 2, second)

    kept = store.curves.messages("a", levels=("intervention",))
    assert [said.text.rpartition(" ")[2] for said in kept] == ["0.1", "0.3"]


@pytest.mark.parametrize(("largest", "expected"), [(True, (20, 2, 0.5)), (False, (40, 4, 0.25))])
def test_extremes_are_of_trained_networks_and_the_first(
    store: Store, largest: bool, expected: tuple[int, int, float]
) -> None:
    for job_id in ("a", "b"):
        store.jobs.add(new_job(job_id))
    values = [(0, 0.75 if largest else 0.0), (10, 0.375), (20, 0.5), (30, 0.5), (40, 0.25), (50, 0.25)]
    points = [point("accuracy", step, value, epoch=step // 10) for step, value in values]
    store.events.take("a", 0, 1, [started(), *points, point("accuracy", 60, float("nan"))])

    curve = store.jobs.get("a").scalars["accuracy"]
    wanted = {"a": curve, "b": replace(curve, tag="loss")}
    assert store.curves.extremes(wanted, largest=largest) == {"a": expected}

    better = 0.875 if largest else 0.125
    store.events.take("a", 1, 2, [point("accuracy", 70, better, epoch=7)])
    changed = {"a": store.jobs.get("a").scalars["accuracy"]}
    assert store.curves.extremes(changed, largest=largest) == {"a": (70, 7, better)}
