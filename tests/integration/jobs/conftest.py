"""Fixtures of the job tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("alembic", reason="the extra `studio` is not installed")

from jobs_studio import Curves, Studio, curves_of, make_workspace, paced


@pytest.fixture
def workspace(tmp_path) -> Path:
    """A workspace with data."""
    return make_workspace(tmp_path)


@pytest.fixture
def new_studio(workspace) -> Iterator[type[Studio]]:
    """Make studios in the workspace; what is left of them is ended after the test."""
    made: list[Studio] = []

    def make(**options):
        made.append(Studio(workspace, **options))
        return made[-1]

    yield make  # pyright: ignore[reportReturnType]
    for studio in made:
        studio.supervisor.close()
    store = made[-1].store
    for job in store.jobs.in_states(("running", "stopping")):
        handle = made[-1].executor.adopt(Path(job.folder), None)
        if handle is not None:
            made[-1].executor.kill(handle)
    for studio in made:
        studio.store.close()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> Curves:
    """The curves of the tiny job where nobody disturbs it."""
    studio = Studio(make_workspace(tmp_path_factory.mktemp("undisturbed")))
    folder = studio.train("job", callbacks=paced(0.0))
    studio.wait_for("job", "done")
    curves = studio.curves("job")
    studio.close()
    assert curves == curves_of(folder)
    assert [step for step, _ in curves["drawn"]] == list(range(1, 25))
    return curves
