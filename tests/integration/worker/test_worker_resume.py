"""Interrupted at any step, by whatever, and resumed: bit for bit the same as never interrupted."""

import json
import shutil
import signal

import numpy as np
import pytest
from worker_jobs import (
    LAST,
    MAY_DIFFER_WITH_THREADS,
    STEPS,
    curves_of,
    differences,
    end_of,
    events_of,
    make_job,
    outcome_of,
    steps_of,
)

from tests.waiting import take_time
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.events import AttemptStarted, CheckpointSaved
from ziggurat.layout import JobFolder
from ziggurat.specs import load_train_spec

EVERY_MOMENT = [1, STEPS - 1, STEPS, STEPS + 1, LAST - 1, LAST]


@pytest.fixture(scope="module")
def uninterrupted(workers, data, tmp_path_factory):
    """What the tiny job comes to where nobody disturbs it."""
    folder = make_job(tmp_path_factory.mktemp("uninterrupted") / "job", data)
    assert workers.execute(folder) == 0
    return outcome_of(folder)


def test_the_outcome_has_what_must_be_equal(uninterrupted):
    assert uninterrupted["checkpoint"] == f"step-{LAST:08d}"
    assert {"arrays/layer1/W", "arrays/momentum/layer1/W", "arrays/random/pcg64"} <= set(uninterrupted)
    assert {"meta/callbacks/EarlyStopping/best", "meta/random/python", "meta/batches/taken"} <= set(uninterrupted)
    assert len(uninterrupted["curves/drawn"]) == LAST
    assert [point[0] for point in uninterrupted["curves/validation_error"]] == [0, STEPS, LAST]
    assert [line["epoch_num"] for line in uninterrupted["stats"]] == [1, 2]


def test_the_same_job_twice_is_the_same(workers, job, uninterrupted):
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), uninterrupted) == []


def test_an_old_job_without_a_backend_keeps_its_own(workers, job):
    path = JobFolder(job).spec
    content = json.loads(path.read_text())
    del content["backend"]
    path.write_text(json.dumps(content))

    assert workers.execute(job) == 0

    assert load_train_spec(path).backend == "null"
    (started,) = events_of(job, AttemptStarted)
    assert started.backend == "null"


@pytest.mark.parametrize("step", EVERY_MOMENT)
@pytest.mark.parametrize(("how", "code"), [("kill", -9), ("term", 75), ("ValueError", 1)])
def test_interrupted_and_resumed_equals_uninterrupted(workers, job, uninterrupted, how, code, step):
    assert workers.execute(job, f"{how}:{step}") == code
    if how == "term":
        assert steps_of(job)[-1] == step
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), uninterrupted) == []
    assert end_of(job).outcome == "done"


def test_a_spec_with_names_of_0_1_resumes_bit_for_bit(workers, job, uninterrupted):
    assert workers.execute(job, f"term:{STEPS + 1}") == 75
    path = JobFolder(job).spec
    content = json.loads(path.read_text())
    rule = content["checkpoints"]
    rule["keep_every_hours"] = rule.pop("keep_checkpoint_every_n_hours")
    content["accumulate"] = content.pop("gradient_accumulation_steps")
    content["average_weights"] = content.pop("ema_decay")
    path.write_text(json.dumps(content))

    assert workers.execute(job) == 0
    assert differences(outcome_of(job), uninterrupted) == []


@pytest.mark.parametrize("moment", ["train", "epoch 1", "epoch 2"])
@pytest.mark.parametrize(("how", "code"), [("kill", -9), ("term", 75), ("ValueError", 1)])
def test_also_between_the_steps(workers, job, uninterrupted, how, code, moment):
    ends_all_the_same = (how, moment) == ("term", "epoch 2")  # the last epoch is complete: nothing is left to resume
    assert workers.execute(job, f"{how}:{moment}") == (0 if ends_all_the_same else code)
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), uninterrupted) == []


def test_interrupted_again_and_again(workers, job, uninterrupted):
    for step, how in enumerate(["term", "kill", "ValueError"] * 3, start=1):
        workers.execute(job, f"{how}:{step}")
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), uninterrupted) == []


def test_killed_behind_an_epochs_end_the_checkpoint_misses(workers, new_job):
    rule = {"every_epochs": 0, "every_steps": STEPS}  # saved before the end of the epoch had its turn
    whole, job = new_job(checkpoints=rule), new_job(checkpoints=rule)
    assert workers.execute(whole) == 0
    assert workers.execute(job, f"kill:{STEPS + 2}") == -9
    assert workers.execute(job) == 0
    assert curves_of(job) == curves_of(whole)


def test_killed_at_random_moments_until_it_is_done(workers, job, uninterrupted):
    random = np.random.default_rng(3)
    killed = 0
    while killed < 12:
        worker = workers.start(job)
        take_time(random.uniform(0, 0.4))  # the moment of the kill is the subject: none may be special
        if not worker.is_alive():
            break
        worker.signal(signal.SIGKILL)
        assert worker.wait() in (-9, 0)
        killed += 1
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), uninterrupted) == []


@pytest.mark.parametrize("kind", ["png", "jpg"])
def test_a_job_of_pictures_in_class_folders_too(workers, new_job, pictures, photographs, kind):
    crops = {"size": 8, "crop": 7}
    changes = {
        "png": {"data": pictures, "preprocessing": {**crops, "channels": 1}},
        "jpg": {
            "data": photographs,
            "preprocessing": crops,
            "augmentation": {"flip": "fliplr"},
        },  # only crops are decoded
    }[kind]
    whole, job = new_job(**changes), new_job(**changes)
    assert workers.execute(whole) == 0
    for how, code in (("kill:3", -9), ("term:7", 75), ("ValueError:9", 1)):
        assert workers.execute(job, how) == code
    assert workers.execute(job) == 0
    one, other = (outcome_of(folder, MAY_DIFFER_WITH_THREADS) for folder in (job, whole))
    assert "meta/batches/source/delivered" in one
    assert differences(one, other) == []


def test_the_best_that_is_kept_by_default_survives_too(workers, new_job):
    changes = {"epochs": 3, "checkpoints": {"every_steps": 4, "keep_last": 1}, "early_stopping": None}
    whole, job = new_job(**changes), new_job(**changes)
    assert workers.execute(whole) == 0
    for how, code in ((f"kill:{STEPS + 3}", -9), (f"term:{LAST + 2}", 75)):
        assert workers.execute(job, how) == code
    assert workers.execute(job) == 0

    assert differences(outcome_of(job), outcome_of(whole)) == []
    assert "names/best" in outcome_of(job)
    assert "meta/callbacks/KeepBest/tag" in outcome_of(job)


def test_a_job_goes_on_with_the_files_that_it_began_with(workers, new_job, pictures, tmp_path):
    mine = shutil.copytree(pictures, tmp_path / "mine")
    whole, job = (new_job(data=mine, preprocessing={"size": 8, "channels": 1}) for _ in range(2))
    assert workers.execute(whole) == 0
    assert workers.execute(job, "kill:3") == -9
    shutil.copytree(mine / "class0", mine / "another class")

    assert workers.execute(job) == 0

    one, other = (outcome_of(folder, MAY_DIFFER_WITH_THREADS) for folder in (job, whole))
    assert differences(one, other) == []


def test_a_checkpoint_whose_worker_was_killed_before_it_told(workers, data, tmp_path):
    whole, job = (make_job(tmp_path / name, data) for name in ("whole", "job"))
    assert workers.execute(whole) == 0
    expected = events_of(whole, CheckpointSaved)
    assert workers.execute(job, f"kill:{STEPS + 1}") == -9
    newest = CheckpointStore(JobFolder(job).checkpoints, writable=False).list()[-1].name
    path = JobFolder(job).events
    lines = path.read_bytes().splitlines(keepends=True)
    unlisted = [b'"checkpoint_saved"' in line and newest.encode() in line for line in lines]
    path.write_bytes(b"".join(lines[: unlisted.index(True)] if True in unlisted else lines))
    for _ in range(2):
        assert workers.execute(job) == 0
    found = events_of(job, CheckpointSaved)
    assert [each.reason for each in found if each.name == newest] == ["found on resume"]
    assert [(each.name, each.step, each.epoch, each.size_bytes > 0) for each in found] == [
        (each.name, each.step, each.epoch, True) for each in expected
    ]
