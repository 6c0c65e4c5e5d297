"""Names in filters of jobs: what is unknown, what was meant, and candidates while one types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from ziggurat.entities import JobFilter
from ziggurat.errors import UsageError
from ziggurat.store import NameRange
from ziggurat.workspace.job_query import JobQuery, parse_conditions, parse_filter
from ziggurat.workspace.studio.job_names import JobNames


class Known:
    """Names of a store with two settings, a text and a curve of the validation."""

    def __init__(self) -> None:
        self.found = {
            "learning_rate": NameRange(minimum=0.001, maximum=0.5),
            "optimizer.name": NameRange(texts=("adam", "sgd")),
            "validation_accuracy": NameRange(minimum=0.1, maximum=0.9, is_curve=True),
            "validation_map": NameRange(minimum=0.1, maximum=0.4, is_curve=True),
        }

    def known(self, names: Any, /) -> dict[str, bool]:
        return {name: bool(self.found[name].texts) for name in names if name in self.found}

    def all(self) -> list[str]:
        return list(self.found)

    def ranges(self, names: Any, /) -> dict[str, NameRange]:
        return {name: self.found[name] for name in names if name in self.found}

    def texts_of(self, column: str, /) -> list[str]:
        return ["lenet", "resnet 18"] if column == "network" else []


def _checked(text: str) -> Any:
    now = datetime(2026, 9, 27, 10, 5, 30, tzinfo=UTC)
    return JobNames(Known(), lambda: now).checked(JobFilter(conditions=parse_conditions(text))).conditions


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("learning_rate > 0.01", (("learning_rate", ">", 0.01),)),
        ("accuracy >= 90 %", (("validation_accuracy", ">=", 0.9),)),
        ("state = Finished and epoch > 3", (("state", "=", "done"), ("epoch", ">", 3))),
        ("optimizer.name != sgd", (("optimizer.name", "!=", "sgd"),)),
        ("batch_size = 8", (("batch_size", "=", 8),)),  # a setting that no job has yet
        ("val/accuracy > 0.9", (("validation_accuracy", ">", 0.9),)),
        ("Validation Accuracy > 0.9", (("validation_accuracy", ">", 0.9),)),
        ("mAP > 0.2", (("validation_map", ">", 0.2),)),
        ("mAP 50:95 > 0.2", (("validation_map", ">", 0.2),)),
        ("Learning rate < 0.1", (("learning_rate", "<", 0.1),)),
        ("dataset = clothes", (("dataset", "=", "clothes"),)),
        ("name ~ lenet", (("name", "~", "lenet"),)),
        ('dataset = a | "b | c"', (("dataset", "=", ("a", "b | c")),)),
        ("state = finished | diverged", (("outcome", "=", ("done", "diverged")),)),
        ("duration > 5 min", (("elapsed", ">", 300.0),)),
        ("created > yesterday", (("created", ">=", 1_790_380_800.0),)),
        ("created = 2026-09-26", (("created", ">=", 1_790_380_800.0), ("created", "<", 1_790_467_200.0))),
        ("ended <= today", (("ended", "<", 1_790_553_600.0),)),
        ("started > 3 h ago", (("started", ">", 1_790_492_700.0),)),
        ("elapsed < 1 h 30 min", (("elapsed", "<", 5400.0),)),
        ("Duration > 1:30", (("elapsed", ">", 90.0),)),
        ("started > last week", (("started", ">", 1_789_898_700.0),)),
        ("created > 1 month ago", (("created", ">", 1_787_911_500.0),)),
        ("batch_size < 2k", (("batch_size", "<", 2000.0),)),
        ("learning_rate < 1 MiB", (("learning_rate", "<", 1048576.0),)),
        ("name = 007", (("name", "=", "007"),)),
        ("Name = 42", (("name", "=", "42"),)),
        ("project = a/b | c d", (("project", "=", ("a/b", "c d")),)),
        ("kind = Training | map", (("kind", "=", ("train", "embed")),)),
        ("Sweep = 1", (("group", "=", "1"),)),
        ("Samples > 10", (("facts.samples", ">", 10),)),
        ('name = "salt and pepper" and epoch > 1', (("name", "=", "salt and pepper"), ("epoch", ">", 1))),
    ],
)
def test_conditions_that_mean_something(text: str, conditions: Any) -> None:
    assert _checked(text) == conditions


@pytest.mark.parametrize(
    ("text", "rule", "suggestion"),
    [
        ("lr > 0.01", "Unknown name `lr`.", "learning_rate"),
        ("learning_rat > 0.01", "Unknown name `learning_rat`.", "learning_rate"),
        ("val_acc > 0.9", "Unknown name `val_acc`.", "validation_accuracy"),
        ("gibberish > 1", "Unknown name `gibberish`.", None),
        ("learning_rate > 0,01", "`learning_rate` is a number.", "0.01"),
        ("learning_rate > high", "`learning_rate` is a number.", None),
        ("state = fail", "`state` is one of queued, running, stopping, done, failed, stopped.", "failed"),
        ("learning_rate > 0.01 and", "A condition is missing after `and`.", None),
        ("and learning_rate > 0.01", "A condition is missing before `and`.", None),
        ("learning_rate >", "A value is missing after `>`.", None),
        ("learning_rate ==", "A value is missing after `==`.", None),
        ("> 0.01", "A name is missing before `>`.", None),
        ("learning_rate", "A condition is a name, an operator and a value.", None),
        ("epoch > 1 or epoch < 0", "Conditions are joined by `and`; several values of one name by `|`.", None),
        ("state = failed |", "A value is missing beside `|` in `state = failed |`.", None),
        ("epoch ~ 3", "`~` looks for a part of a text, and `epoch` is none.", None),
        ("created > someday", "`someday` is no time.", None),
        ("Metric > 0.9", "The column `Metric` shows another metric in each row.", "map"),
        ("created = today | yesterday", "`created` is compared with one time, not with several.", None),
    ],
)
def test_a_mistake_says_what_was_meant(text: str, rule: str, suggestion: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        _checked(text)
    shape = caught.value.as_dict()
    assert shape["rule"] == rule
    assert (shape.get("details") or {}).get("suggestion") == suggestion


def test_words_and_conditions_share_a_box() -> None:
    assert parse_filter("salt and pepper").words == ("salt and pepper",)
    found = parse_filter("resnet and learning_rate > 0.01")
    assert found.words == ("resnet",)
    assert found.conditions == (("learning_rate", ">", 0.01),)
    assert parse_filter("  ").words == ()


def test_job_query_refuses_more_than_20_conditions() -> None:
    rule = "The filter has 21 conditions; at most 20 are allowed."
    text = " and ".join(["epoch > 1"] * 21)
    for parse in (parse_conditions, parse_filter):
        with pytest.raises(UsageError, match=rule):
            parse(text)
    for where in ([" and ".join(["a=1"] * 21)], ["epoch > 1"] * 21, ["epoch > 1 and epoch > 2"] * 10 + ["epoch > 3"]):
        with pytest.raises(ValidationError, match=rule):
            JobQuery(where=where)
    assert len(JobQuery(where=["epoch > 1 and name = 'a and b'"] * 10).chosen().conditions) == 20


def test_candidates_have_type_and_range() -> None:
    names = JobNames(Known())
    first = names.candidates("lear")[0]
    assert (first.text, first.kind, first.note) == ("learning_rate", "number", "0.001 to 0.5")
    assert names.candidates("epoch > 1 and val")[0].completed == "epoch > 1 and validation_accuracy "
    assert names.candidates("epoch > 1 and val")[0].kind == "metric"
    assert names.candidates("lr")[0].text == "learning_rate"
    assert [each.text for each in names.candidates("network = ")] == ["lenet", "resnet 18"]
    assert names.candidates("network = res")[0].completed == 'network = "resnet 18" '
    assert [each.text for each in names.candidates("optimizer.name = s")] == ["sgd"]
    assert len(names.candidates("e")) <= 8
    assert names.candidates("") == names.candidates("learning_rate > 0") == []
