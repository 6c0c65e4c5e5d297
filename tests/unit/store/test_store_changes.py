"""Number of changes of a store: what pages keep is used until it differs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_samples import new_job

from ziggurat.entities import JobChange, JobFilter
from ziggurat.store import Store


def test_the_number_differs_after_each_change_by_anyone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "studio.db") as store, Store.open(tmp_path / "studio.db") as other:
        before = store.change_number()
        assert before == store.change_number()
        store.jobs.counts()
        assert store.change_number() == before
        store.jobs.add(new_job("a"))
        own = store.change_number()
        other.jobs.change("a", JobChange(name="b"), 0.0)
        assert len({before, own, store.change_number()}) == 3


QUESTIONS: dict[str, Callable[[Store], Any]] = {
    "counts": lambda store: store.jobs.counts(),
    "totals": lambda store: store.jobs.totals(0.0),
    "page": lambda store: store.jobs.page(JobFilter()),
    "page by duration": lambda store: store.jobs.page(JobFilter(sort="elapsed")),
    "some": lambda store: store.jobs.some(["a", "new"]),
    "in_states": lambda store: store.jobs.in_states(("queued",)),
    "queue_order": lambda store: store.jobs.queue_order(),
    "sweeps": lambda store: store.jobs.sweeps(["sweep"]),
    "dependent_counts": lambda store: store.jobs.dependent_counts(["a"]),
    "projects": lambda store: store.projects.names(),
    "saved items": lambda store: store.saved_items.all("kim", "view"),
    "settings": lambda store: store.settings.all(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_kept_answers_follow_changes_by_another_process(tmp_path: Path, question: str) -> None:
    ask = QUESTIONS[question]
    with Store.open(tmp_path / "studio.db") as store, Store.open(tmp_path / "studio.db") as other:
        store.jobs.add(new_job("a", group="sweep"))
        before = ask(store)
        assert ask(store) == before
        other.jobs.add(new_job("new", group="sweep", project="p", depends_on=("a",)))
        other.saved_items.put("kim", "view", "mine", {})
        other.settings.set("jobs", 3)
        after = ask(store)
        assert after != before
        assert after == ask(other)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_kept_answer_is_the_askers_own(tmp_path: Path, question: str) -> None:
    ask = QUESTIONS[question]
    with Store.open(tmp_path / "studio.db") as store:
        store.jobs.add(new_job("a", group="sweep"))
        store.settings.set("jobs", 3)
        first = ask(store)
        kept = copy.deepcopy(first)
        if isinstance(first, list | dict):
            first.clear()
        assert ask(store) == kept


def test_many_questions_are_not_kept_for_ever(tmp_path: Path) -> None:
    with Store.open(tmp_path / "studio.db") as store:
        store.jobs.add(new_job("a"))
        for number in range(1000):
            assert store.jobs.page(JobFilter(words=(str(number),))).total == 0
        assert len(store.jobs._database._answers[1]) <= 256
