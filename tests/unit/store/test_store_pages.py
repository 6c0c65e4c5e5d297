"""Pages of jobs: filters, conditions and orders, against a model in plain Python."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_samples import new_job, point

from ziggurat.entities import JOB_STATES, Job, JobFilter
from ziggurat.errors import UnknownNameError
from ziggurat.store import Store

NOW = 1_700_000_000.0
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
WORDS = ["lenet", "LeNet 5", "Ünet", "a_b", "100%"]
NUMBERS = [-1.5, 0, 0.5, 1, 2**40, math.inf]


def test_a_renamed_field_has_one_name_in_lists(store: Store) -> None:
    for job_id, name, value in (("a", "average_weights", 0.9), ("b", "ema_decay", 0.99), ("c", "ema_decay", 0.5)):
        store.jobs.add(new_job(job_id, spec={"kind": "train", name: value}))
    for name in ("average_weights", "ema_decay"):
        found = store.jobs.page(JobFilter(conditions=((name, ">=", 0.9),), sort=name))
        assert [(job.id, job.spec["ema_decay"]) for job in found.jobs] == [("b", 0.99), ("a", 0.9)]


def test_conditions_on_fields_of_the_spec_and_on_curves(store: Store) -> None:
    for job_id, rate, accuracy in (("a", 0.1, 0.9), ("b", 0.01, 0.99), ("c", 0.2, None), ("d", 0.3, math.nan)):
        store.jobs.add(new_job(job_id, spec={"learning_rate": rate, "optimizer": {"name": "sgd"}}))
        # The rate is a curve as well; the field of the spec comes first.
        store.events.take(job_id, 0, 1, [point("learning_rate", 1, 5.0)])
        if accuracy is not None:
            store.events.take(job_id, 1, 2, [point("validation_accuracy", 1, accuracy)])

    def ids(*conditions: tuple[str, str, Any], **others: Any) -> str:
        return "".join(job.id for job in store.jobs.page(JobFilter(conditions=conditions, **others)).jobs)

    assert ids(("learning_rate", ">", 0.05), sort="learning_rate") == "dca"
    assert ids(("learning_rate", ">", 0.05), ("validation_accuracy", ">", 0.5)) == "a"
    assert ids(("optimizer.name", "=", "sgd"), sort="id", descending=False) == "abcd"
    assert ids(("optimizer.name", "!=", "sgd")) == ids(("optimizer.name", ">", 3)) == ids(("nothing", "!=", 1)) == ""
    assert ids(sort="validation_accuracy") == "badc"  # no value, or a NaN, comes last
    assert ids(sort="validation_accuracy", descending=False) == "abdc"
    assert ids(("learning_rate", "<", math.nan)) == ids(("learning_rate", ">", None)) == ""
    assert ids(("optimizer.name", "~", "SG"), sort="id", descending=False) == "abcd"
    assert ids(("id", "=", ("a", "c")), sort="id") == "ca"
    assert ids(("id", "!=", ("a", "c")), sort="id") == "db"
    assert ids(("learning_rate", "~", 1)) == ids(("learning_rate", "~", "1")) == ""
    with pytest.raises(UnknownNameError, match="`<>` is not a known comparison"):
        ids(("learning_rate", "<>", 1))


def test_jobs_are_found_by_the_name_of_their_dataset(store: Store) -> None:
    store.jobs.add(new_job("d", kind="dataset", name="clothes"))
    store.jobs.add(new_job("a", spec={"data": {"source": "/w/datasets/d"}}, depends_on=("d",)))
    store.jobs.add(new_job("b", spec={"data": {"source": "/elsewhere/clothes"}}))
    store.jobs.add(new_job("c", spec={"data": {"source": "/elsewhere/other_clothes"}}))

    def ids(operator: str, value: Any) -> list[str]:
        found = store.jobs.page(JobFilter(kinds=("train",), conditions=(("dataset", operator, value),), sort="id")).jobs
        return [job.id for job in found]

    assert ids("=", "clothes") == ["b", "a"]
    assert ids("!=", "clothes") == ["c"]
    assert ids("~", "cloth") == ["c", "b", "a"]
    assert ids("=", ("clothes", "other_clothes")) == ["c", "b", "a"]
    assert ids("=", 3) == []


def test_elapsed_time_and_states(store: Store) -> None:
    for job_id, state, began, end in (
        ("a", "done", 10.0, 20.0),
        ("b", "running", NOW - 5, None),
        ("c", "queued", None, None),
    ):
        store.jobs.add(new_job(job_id))
        store.jobs.note(job_id, started=began, ended=end)
        store.jobs.move(job_id, ["queued"], state)
    by = lambda sort, **options: "".join(job.id for job in store.jobs.page(JobFilter(sort=sort, **options)).jobs)  # noqa: E731
    assert by("elapsed") == "abc"
    assert by("elapsed", descending=False) == "bac"
    assert by("state", descending=False) == "cba"
    assert [job.id for job in store.jobs.page(JobFilter(conditions=(("elapsed", ">", 7),))).jobs] == ["a"]


number, word = st.sampled_from(NUMBERS), st.sampled_from(WORDS)
specs = st.fixed_dictionaries({}, optional={"rate": number, "word": word, "mixed": number | word})
made_jobs = st.lists(
    st.fixed_dictionaries(
        {
            "spec": specs,
            "curve": st.none() | st.sampled_from([*NUMBERS, math.nan]),
            "name": st.sampled_from(WORDS),
            "state": st.sampled_from(JOB_STATES),
            "kind": st.sampled_from(["train", "dataset"]),
            "project": st.sampled_from(["", "p", "q"]),
            "tags": st.lists(st.sampled_from(["t", "u"]), unique=True).map(tuple),
            "priority": st.integers(-1, 2),
            "created": st.sampled_from([1.0, 2.0, 3.0]),
        }
    ),
    max_size=12,
)
names = st.sampled_from(["rate", "word", "mixed", "nothing", "priority", "name"])
filters = st.builds(
    JobFilter,
    kinds=st.sampled_from([(), ("train",)]),
    states=st.sampled_from([(), ("done", "running")]),
    project=st.sampled_from([None, "", "p"]),
    text=st.sampled_from(["", "LENET", "ünet", "%", "_"]),
    tag=st.sampled_from(["", "t"]),
    conditions=st.lists(
        st.tuples(names, st.sampled_from(list(COMPARE)), st.sampled_from(WORDS + NUMBERS)), max_size=2
    ).map(tuple),
    sort=st.sampled_from(["created", "name", "state", "priority", "rate", "word", "mixed", "nothing", "id"]),
    descending=st.booleans(),
    offset=st.integers(0, 3),
    limit=st.integers(0, 5),
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(made=made_jobs, wanted=st.lists(filters, min_size=1, max_size=6))
def test_pages_are_what_plain_python_would_choose(
    store: Store, made: list[dict[str, Any]], wanted: list[JobFilter]
) -> None:
    for job in store.jobs.in_states(JOB_STATES):
        store.jobs.delete(job.id)
    for number, one in enumerate(made):
        fields = {name: value for name, value in one.items() if name not in ("curve", "state")}
        store.jobs.add(new_job(f"j{number}", **fields))
        if one["curve"] is not None:
            store.events.take(f"j{number}", 0, 1, [point("rate", 1, one["curve"])])
        store.jobs.move(f"j{number}", ["queued"], one["state"])
    jobs = [store.jobs.get(f"j{number}") for number in range(len(made))]
    for one in wanted:
        chosen = _in_order([job for job in jobs if _is_chosen(job, one)], one)
        page = store.jobs.page(one)
        assert page.total == len(chosen)
        assert [job.id for job in page.jobs] == [job.id for job in chosen[one.offset : one.offset + one.limit]]


def _is_chosen(job: Job, wanted: JobFilter) -> bool:
    texts = (job.name, job.id, job.notes, job.network, *job.tags)
    return (
        (not wanted.kinds or job.kind in wanted.kinds)
        and (not wanted.states or job.state in wanted.states)
        and (wanted.project is None or job.project == wanted.project)
        and (not wanted.tag or wanted.tag in job.tags)
        and any(wanted.text.casefold() in text.casefold() for text in texts)
        and all(_holds(_value(job, name), comparison, value) for name, comparison, value in wanted.conditions)
    )


def _holds(value: Any, comparison: str, wanted: Any) -> bool:
    if value is None or isinstance(value, str) != isinstance(wanted, str):
        return False
    return COMPARE[comparison](value, wanted)


def _value(job: Job, name: str) -> Any:
    if name in ("priority", "name", "created", "id"):
        return getattr(job, name)
    if name == "state":
        return JOB_STATES.index(job.state)
    if name in job.spec:
        return job.spec[name]
    summary = job.scalars.get(name)
    return None if summary is None or math.isnan(summary.last) else summary.last


def _in_order(jobs: list[Job], wanted: JobFilter) -> list[Job]:
    def value(job: Job) -> Any:
        found = _value(job, wanted.sort)
        small = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
        return found.translate(small) if wanted.sort == "name" else found

    jobs = sorted(jobs, key=lambda job: (job.created, job.id), reverse=True)
    numbers = [job for job in jobs if isinstance(value(job), int | float)]
    texts = [job for job in jobs if isinstance(value(job), str)]
    missing = [job for job in jobs if value(job) is None]
    by_value = {"key": value, "reverse": wanted.descending}
    return _stable(numbers, **by_value) + _stable(texts, **by_value) + missing


def _stable(jobs: list[Job], *, key: Any, reverse: bool) -> list[Job]:
    return sorted(jobs, key=key, reverse=reverse)  # Python keeps the order of equals in both directions
