"""Number of changes of a store: what pages keep is used until it differs."""

from __future__ import annotations

from pathlib import Path

from store_samples import new_job

from ziggurat.entities import JobChange
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
