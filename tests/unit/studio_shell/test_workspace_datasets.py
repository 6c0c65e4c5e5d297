"""Datasets: the same use cases find one by the path of its folder and by its id in a studio."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.studio_samples import CHEAP, add_pets
from ziggurat.errors import DataError, JobError
from ziggurat.settings import Settings
from ziggurat.workspace.datasets import Datasets
from ziggurat.workspace.studio.bootstrap import open_studio


def test_a_dataset_is_the_same_by_path_and_by_id(tmp_path: Path) -> None:
    with open_studio(Settings(workspace=tmp_path / "workspace"), start=False, passwords=CHEAP) as studio:
        job_id = add_pets(studio, tmp_path / "pets")
        by_id, by_path, place = studio.datasets, Datasets(), str(studio.datasets.folder(job_id))

        assert by_path.describe(place) == by_id.describe(job_id)
        assert by_path.explore(place, {"class_name": "dog"}) == by_id.explore(job_id, {"class_name": "dog"})
        assert by_path.problems(place) == by_id.problems(job_id) == []
        assert by_path.picture(place, "val", 0) == by_id.picture(job_id, "val", 0)
        assert by_path.check(place).as_json() == by_id.check(job_id).as_json()
        assert by_path.statistics(place).as_json() == by_id.statistics(job_id).as_json()


def test_an_unknown_dataset_is_refused_by_path_and_by_id(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        Datasets().describe(str(tmp_path / "nothing"))
    settings = Settings(workspace=tmp_path / "workspace")
    with open_studio(settings, start=False, passwords=CHEAP) as studio, pytest.raises(JobError):
        studio.datasets.describe("nothing")
