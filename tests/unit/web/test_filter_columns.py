"""Every column that a list of jobs can show is a name of the filter, with the operators that its values have."""

from __future__ import annotations

import pytest
from home_samples import ended_training

from ziggurat.entities import JobFilter, NewJob
from ziggurat.errors import UsageError
from ziggurat.store import Store
from ziggurat.web.columns import column_choices, columns_of
from ziggurat.workspace.job_query import parse_conditions

TABS = ("all", "train", "model", "dataset", "test")
OF_ROWS = {"Metric", "Result"}
"""Columns with another metric in each row: the filter asks for the metric."""
PLACES = {"Published as"}
"""Columns that lead elsewhere."""
SHELL = ("id", "name", "kind", "state", "progress", "reason")
"""Columns of ``ziggurat job list``; its result is the best value."""
VALUES = ("= x", "= 1", "> 1", "~ x", "= done", "= train", "> yesterday", "= yes")


def names_of(jobs, text):
    return [job.name for job in jobs.page(JobFilter(conditions=parse_conditions(text))).jobs]


def accepted(jobs, name):
    """Return the values that a name is compared with, and what is wrong with the others."""
    found, mistakes = [], []
    for value in VALUES:
        try:
            names_of(jobs, f"{name} {value}")
        except UsageError as error:
            mistakes.append(error.rule)
        else:
            found.append(value)
    return found, mistakes


@pytest.fixture
def trained(studio, train):
    """Two trainings that ended, a clone and an evaluation of the second one, and a dataset."""
    first = ended_training(studio, train, 0.6, spec={"name": "My run"}, tags=("good", "new"))
    second = ended_training(studio, train, 0.9, spec={"name": "42", "batch_size": 8}, notes="for owls")
    clone = train(spec={"name": "clone", "network": "linear", "epochs": 5}, parent=second.id)
    with Store.open(studio.root / "studio.db") as store:
        test = NewJob(id="t", kind="evaluate", name="test", folder="jobs/t", spec={}, depends_on=(second.id,))
        pets = NewJob(id="p", kind="dataset", name="pets", folder="datasets/p", spec={})
        return [first, second, clone, store.jobs.add(test), store.datasets.add_finished(pets, {"samples": 10})]


def test_every_column_is_a_name_of_the_filter(studio, trained):
    shown = {column.title for tab in TABS for column in columns_of(tab, ())} | {*SHELL}
    sorts = {column.sort for tab in TABS for column in columns_of(tab, ()) if column.sort}
    chosen = {name for part in column_choices(trained, ()) for name in part}
    assert len(chosen) > 40
    for name in (shown - OF_ROWS - PLACES) | sorts | chosen:
        found, mistakes = accepted(studio.jobs, name)
        assert found, f"`{name}` is accepted with no value: {mistakes[0]}"


@pytest.mark.parametrize("name", sorted(OF_ROWS))
def test_a_column_of_several_metrics_names_one_that_exists(studio, trained, name):
    with pytest.raises(UsageError, match=r"Name the metric, as in `accuracy > 0\.9`, or `best > 0\.9`"):
        names_of(studio.jobs, f"{name} > 0.5")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("name = 42", ["42"]),
        ('name = "My run"', ["My run"]),
        ("Name ~ run", ["My run"]),
        ("best > 0.8", ["42"]),  # its newest value is 0.8
        ("Best <= 0.6", ["My run"]),
        ("tags = good", ["My run"]),
        ("tag != good and kind = training", ["42", "clone"]),
        ("tags ~ GOO", ["My run"]),
        ("notes ~ owls", ["42"]),
        ("model = 42", ["test"]),
        ("model = mlp", ["42", "My run"]),
        ("Used by = 1", ["42"]),
        ("parent = 42", ["clone"]),
        ("Samples > 5", ["pets"]),
        ("Steps = 40 and Status = finished", ["42", "My run"]),
        ("duration > 1 min", ["42", "My run"]),
        ("duration > 1 min 10 s", []),
        ("state = finished | queued and epochs < 5", ["42", "My run"]),
    ],
)
def test_what_a_condition_leaves(studio, trained, text, found):
    assert sorted(names_of(studio.jobs, text)) == sorted(found)
