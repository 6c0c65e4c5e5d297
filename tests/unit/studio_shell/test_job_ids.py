"""Every new job gets a folder, and so an id, that no other job can get."""

import itertools
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("argon2", reason="the extra `studio` is not installed")

from tests.unit.studio_samples import add_pets
from ziggurat.entities import ResourceRequest
from ziggurat.errors import JobError, SpecError, StorageError
from ziggurat.records.manifest import Manifest
from ziggurat.settings import Settings
from ziggurat.specs import parse_spec
from ziggurat.workspace.new_jobs import (
    JobRequest,
    claim_folder,
    create_job,
    create_job_in,
    make_jobs,
    new_job_ids,
    new_job_names,
)
from ziggurat.workspace.studio.bootstrap import open_studio

NOW = 1_795_276_800.0
TRAINING = {"kind": "train", "version": 1, "name": "tiny", "backend": "null", "network": "mlp", "data": "digits"}

NO_NEEDS = ResourceRequest()


def test_ids_sort_by_time():
    stamps = (NOW, NOW + 1, NOW + 3600, NOW + 86_400 * 40)
    ids = [next(new_job_ids(stamp)) for stamp in stamps]
    assert ids == sorted(ids)


def test_names_count_up_where_they_are_taken(tmp_path):
    made = [claim_folder(tmp_path, new_job_names("My LeNet!", NOW)).name for _ in range(3)]
    stem = made[0]
    assert stem.startswith("my-lenet-2026")
    assert made == [stem, f"{stem}-2", f"{stem}-3"]


def test_taken_folder_is_left_alone_and_another_one_made(tmp_path):
    taken = tmp_path / "jobs" / "first"
    taken.mkdir(parents=True)
    (taken / "spec.json").write_text("of another job")
    made = create_job_in(parse_spec(TRAINING), tmp_path / "jobs", ["first", "second"])
    assert made.path == tmp_path / "jobs" / "second"
    assert (taken / "spec.json").read_text() == "of another job"


def test_id_of_a_dataset_is_not_given_to_a_training(tmp_path):
    (tmp_path / "datasets" / "first").mkdir(parents=True)
    made = claim_folder(tmp_path / "jobs", ["first", "second"], apart_from=[tmp_path / "datasets"])
    assert made.name == "second"
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["second"]


def test_without_a_free_name_nothing_is_made(tmp_path):
    (tmp_path / "first").mkdir()
    with pytest.raises(StorageError, match="No name for a new job is free in"):
        claim_folder(tmp_path, ["first"])


def test_spec_that_cannot_be_used_leaves_no_folder(tmp_path):
    spec = parse_spec(TRAINING | {"network": {"source": "file", "path": str(tmp_path / "none.py")}})
    with pytest.raises(Exception, match="cannot be read as Python text:"):
        create_job_in(spec, tmp_path / "jobs", new_job_ids(NOW))
    assert not (tmp_path / "jobs").exists()


def test_chosen_folder_with_a_job_is_refused(tmp_path):
    create_job(parse_spec(TRAINING), tmp_path / "j1")
    with pytest.raises(JobError, match=r"j1 already contains a job.* Go on with that one by: ziggurat resume"):
        create_job(parse_spec(TRAINING), tmp_path / "j1")


def test_sweeps_of_200_jobs_in_one_second(tmp_path):
    rates = [0.001 * number for number in range(1, 201)]
    request = JobRequest(spec=TRAINING, sweep={"learning_rate": rates})
    submitted = []
    for _ in range(3):
        make_jobs(
            request,
            tmp_path / "jobs",
            lambda new: submitted.append(new),
            owner="anna",
            now=NOW,
            needs=lambda _: NO_NEEDS,
        )
    assert len({new.id for new in submitted}) == 600
    assert [new.spec["learning_rate"] for new in submitted[:200]] == rates
    assert len({new.group for new in submitted}) == 3


def test_a_sweep_reads_the_manifest_of_its_dataset_once(tmp_path, monkeypatch):
    with open_studio(Settings(workspace=tmp_path / "workspace"), start=False) as studio:
        place = studio.jobs.get(add_pets(studio, tmp_path / "source")).folder
    expected, reads, load = Manifest.load(Path(place)).id, [], Manifest.load
    monkeypatch.setattr(Manifest, "load", lambda folder: reads.append(folder) or load(folder))
    request = JobRequest(spec=TRAINING | {"data": place}, sweep={"learning_rate": [0.1, 0.2, 0.3]})
    submitted = []
    make_jobs(request, tmp_path / "jobs", submitted.append, owner="", now=NOW, needs=lambda _: NO_NEEDS)
    assert [new.needs.datasets for new in submitted] == [(expected,)] * 3
    assert len(reads) == 1


def test_sweep_that_fails_removes_only_what_it_made(tmp_path):
    (tmp_path / "jobs" / "other").mkdir(parents=True)
    request = JobRequest(spec=TRAINING, sweep={"learning_rate": [0.1, 0.2, 0.3]})
    refusals = itertools.chain([None, None], itertools.repeat(SpecError("Refused.")))

    def submit(_new):
        error = next(refusals)
        if error is not None:
            raise error

    with pytest.raises(SpecError):
        make_jobs(request, tmp_path / "jobs", submit, owner="", now=NOW, needs=lambda _: NO_NEEDS)
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["other"]


def test_versions_made_in_one_second_have_their_own_ids(tmp_path):
    with open_studio(Settings(workspace=tmp_path / "workspace"), start=False) as studio:
        pets = add_pets(studio, tmp_path / "source")
        made = [studio.datasets.relabel(pets, [f"train/{row}"], 0).id for row in range(3)]
        assert len({pets, *made}) == 4
        with pytest.raises(Exception, match="row"):
            studio.datasets.relabel(pets, ["train/1000"], 0)
        assert {path.name for path in (studio.root / "datasets").iterdir()} == {pets, *made}
