"""Words of the list of runs: names of files and metrics keep their letters."""

from __future__ import annotations

import pytest

from tests.unit.web.html_page import html_of
from ziggurat.store import Store
from ziggurat.web.columns import Best


def test_a_metric_keeps_its_letters() -> None:
    assert Best(tag="validation_map", value=0.3, word="highest", title="validation mAP 50:95").metric == "mAP 50:95"
    assert Best(tag="validation_accuracy", value=0.3, word="highest").metric == "Validation accuracy"


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("train.py, line 10: no such name", "train.py, line 10: no such name"),
        ("`cost` must be finite.", "cost must be finite"),
        ("the worker was lost", "The worker was lost"),
    ],
)
def test_a_reason_keeps_the_name_that_it_begins_with(visit, studio, train, reason, shown) -> None:
    job = train()
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job.id, ("queued",), "failed", ended=20.0, reason=reason)

    assert shown in html_of(visit.get("/")).one(f"#row-{job.id}").text
