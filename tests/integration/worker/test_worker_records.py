"""What a worker records while it trains: points of the first steps, machine load, sample predictions."""

from worker_jobs import LAST, STEPS, curves_of, differences, make_job, outcome_of

from ziggurat.entities.machine_load import read_machine_load
from ziggurat.entities.sample_predictions import read_sample_predictions
from ziggurat.layout import JobFolder


def test_each_of_the_first_steps_has_a_point(workers, new_job):
    job = new_job()
    assert workers.execute(job) == 0
    assert [step for step, _, _ in curves_of(job)["cost"]] == list(range(1, LAST + 1))


def test_points_at_a_chosen_distance(workers, new_job):
    job = new_job(log_every_steps=4)
    assert workers.execute(job) == 0
    assert [step for step, _, _ in curves_of(job)["cost"]] == [4, STEPS, 8, LAST]


def test_the_load_of_every_attempt_is_there(workers, new_job):
    job = new_job(machine_load_s=0.05)
    assert workers.execute(job, f"kill:{STEPS}") == -9
    assert workers.execute(job) == 0
    load = read_machine_load(JobFolder(job).machine_load)
    assert len(set(load.attempts)) == 2
    assert {"job_cpu_percent", "job_memory_bytes", "disk_free_bytes"} <= {curve.name for curve in load.curves}
    assert load.steps[-1] == LAST


def test_nothing_is_recorded_where_it_is_switched_off(workers, new_job):
    job = new_job(machine_load_s=0, sample_predictions=False)
    assert workers.execute(job) == 0
    assert not JobFolder(job).machine_load.exists()
    assert not JobFolder(job).sample_predictions.exists()


def test_the_training_is_the_same_with_and_without_records(workers, new_job):
    recorded, plain = new_job(machine_load_s=0.05), new_job(machine_load_s=0, sample_predictions=False)
    for job in (recorded, plain):
        assert workers.execute(job) == 0
    assert differences(outcome_of(recorded), outcome_of(plain)) == ["samples"]


def test_points_of_every_step_change_no_result(workers, new_job):
    usual, rare = new_job(), new_job(log_every_steps=100)
    for job in (usual, rare):
        assert workers.execute(job) == 0
    one, other = outcome_of(usual), outcome_of(rare)
    different = set(differences(one, other))
    assert {name for name in different if name.startswith("arrays/")} == set()
    assert one["names/min-validation_error"] == other["names/min-validation_error"]


def test_samples_of_files_are_the_same_in_every_epoch(workers, tmp_path, photographs):
    job = make_job(tmp_path / "job", photographs, preprocessing={"size": [10, 12], "crop": 8}, batch_size=8)
    assert workers.execute(job) == 0
    found = read_sample_predictions(JobFolder(job).sample_predictions)
    assert [each["epoch"] for each in found.records] == [0, 1, 2]
    assert {each.label for each in found.samples} == {0, 1, 2}
    assert len({each.row for each in found.samples}) == len(found.samples) > 3
    assert all(JobFolder(job).sample_image(each.number).is_file() for each in found.samples)
