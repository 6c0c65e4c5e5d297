"""Lists of jobs: what stands first, one entry for a sweep, the best of a dataset, names, outlines of curves."""

from __future__ import annotations

import pytest
from store_samples import new_job, point

from ziggurat.entities import JobFilter, Listing
from ziggurat.store import Store


def _ids(store: Store, **listing: object) -> str:
    return "".join(job.id for job in store.jobs.page(JobFilter(listing=Listing(**listing))).jobs)  # type: ignore[arg-type]


def _add(store: Store, job_id: str, accuracy: float | None = None, **fields: object) -> None:
    store.jobs.add(new_job(job_id, **fields))
    if accuracy is not None:
        store.events.take(job_id, 0, 1, [point("validation_accuracy", 5, accuracy)])


def test_active_jobs_and_the_next_ones_stand_first(store: Store) -> None:
    for number, job_id in enumerate("abcdef"):
        _add(store, job_id, created=float(number), priority=5 if job_id == "c" else 0)
    store.jobs.move("a", ("queued",), "done")
    store.jobs.move("b", ("queued",), "running", started=2.0)
    store.jobs.move("f", ("queued",), "running", started=1.0)
    assert _ids(store, pinned=2) == "fbcdea"
    assert _ids(store) == "fedcba"
    pages = [store.jobs.page(JobFilter(listing=Listing(pinned=2), offset=offset, limit=4)) for offset in (0, 4)]
    assert ["".join(job.id for job in page.jobs) for page in pages] == ["fbcd", "ea"]
    assert [page.total for page in pages] == [6, 6]
    chosen = JobFilter(words=("job",), listing=Listing(pinned=2))
    assert store.jobs.page(chosen).total == len(store.jobs.page(chosen).jobs)


def test_a_sweep_is_one_entry_wherever_its_jobs_are(store: Store) -> None:
    for number, (job_id, group) in enumerate(zip("abcde", ("", "s", "s", "s", "t"), strict=True)):
        _add(store, job_id, created=float(number), group=group)
    for job_id in "abc":
        store.jobs.move(job_id, ("queued",), "done")
    assert _ids(store, one_per_sweep=True) == "eba"
    assert _ids(store, one_per_sweep=True, pinned=5) == "bea"  # a job of `s` waits before that of `t`
    assert _ids(store, sweeps_only=True) == "edcb"
    assert _ids(store, sweeps_only=True, one_per_sweep=True) == "eb"


def test_only_what_is_in_a_list_stands_first_there(store: Store) -> None:
    _add(store, "x", kind="dataset")
    for number, (job_id, group) in enumerate(zip("abcd", ("", "s", "s", ""), strict=True)):
        _add(store, job_id, 0.5, created=float(number), group=group, depends_on=("x",), project="p" if number else "")
    store.jobs.move("a", ("queued",), "running", started=1.0)
    store.jobs.move("b", ("queued",), "done")
    for listing in (Listing(pinned=5, sweeps_only=True), Listing(pinned=5, best_per_dataset=True)):
        page = store.jobs.page(JobFilter(kinds=("train",), listing=listing))
        assert page.total == len(page.jobs), "a job that runs is no sweep, and not the best by running"
    assert _ids(store, pinned=5, sweeps_only=True) == "cb"
    page = store.jobs.page(JobFilter(states=("queued",), listing=Listing(pinned=5, one_per_sweep=True)))
    assert (page.total, [job.id for job in page.jobs if job.kind == "train"]) == (2, ["d"])


def test_a_sweep_is_summed_up(store: Store) -> None:
    for job_id, accuracy, rate in (("a", 0.5, 0.1), ("b", 0.9, 0.2), ("c", None, 0.2)):
        _add(store, job_id, accuracy, group="s", spec={"kind": "train", "learning_rate": rate})
    store.jobs.move("a", ("queued",), "done", started=1.0, ended=3.0)
    (found,) = store.jobs.sweeps(["s", "nothing"]).values()
    assert (found.best_id, found.rates, found.total) == ("b", 2, 3)
    assert found.states == {"done": 1, "queued": 2}
    assert (found.first_start, found.newest_end) == (1.0, None)
    totals = store.jobs.totals(2.0)
    assert (totals.sweeps, totals.failed, totals.kinds) == (1, 0, {"train": 3})
    store.jobs.move("b", ("queued",), "failed", ended=5.0)
    assert store.jobs.totals(2.0).failed == 1
    assert store.jobs.totals(5.0).failed == 0


def test_best_training_of_each_dataset_and_source(store: Store) -> None:
    _add(store, "x", kind="dataset")
    for job_id, accuracy, needs in (("a", 0.5, ("x",)), ("b", 0.9, ("x",)), ("c", None, ("x",)), ("d", 0.2, ())):
        _add(store, job_id, accuracy, depends_on=needs, spec={"kind": "train", "data": {"source": "digits"}})
    assert sorted(_ids(store, best_per_dataset=True)) == ["b", "d"]


def test_names_are_known_with_their_ranges(store: Store) -> None:
    for job_id, rate in (("a", 0.1), ("b", 0.5)):
        _add(store, job_id, 0.9, spec={"kind": "train", "learning_rate": rate, "optimizer": {"name": f"o{job_id}"}})
    assert store.names.all() == ["kind", "learning_rate", "optimizer.name", "validation_accuracy"]
    assert store.names.known(["learning_rate", "optimizer.name", "validation_accuracy", "no"]) == {
        "learning_rate": False, "optimizer.name": True, "validation_accuracy": False,
    }  # fmt: skip
    ranges = store.names.ranges(["learning_rate", "optimizer.name", "validation_accuracy", "no"])
    assert list(ranges) == ["learning_rate", "optimizer.name", "validation_accuracy"]
    assert (ranges["learning_rate"].minimum, ranges["learning_rate"].maximum) == (0.1, 0.5)
    assert ranges["optimizer.name"].texts == ("oa", "ob")
    assert ranges["validation_accuracy"].is_curve


def test_an_outline_has_few_points_and_follows_its_curve(store: Store) -> None:
    _add(store, "a")
    events = [point("loss", step, float(step)) for step in range(1, 1001)]
    store.events.take("a", 0, 1, [*events, point("other", 1, 5.0), point("loss", 1001, float("nan"))])

    def outline() -> tuple[tuple[int, float], ...]:
        return store.curves.outlines({"a": store.jobs.get("a").scalars["loss"]})["a"]

    first = outline()
    assert 30 <= len(first) <= 42
    assert first[0][0] == 1
    assert [value for _, value in first] == sorted(value for _, value in first)
    assert first[5][1] == pytest.approx(first[5][0] + 12.5, abs=1)  # the mean of a part
    store.events.take("a", 1, 2, [point("loss", 2000, -1.0)])
    assert outline()[-1] == (2000, -1.0)
    assert store.curves.outlines({}) == {}
