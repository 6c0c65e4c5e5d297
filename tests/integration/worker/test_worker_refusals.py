"""Jobs that cannot begin: the exit code, the sentence, and the same sentence among the events."""

import json

import pytest
from worker_jobs import end_of, error_of, steps_of, tiny_spec

from ziggurat.layout import JobFolder


def refused(workers, folder, **options):
    """Start a worker that fails; return its exit code and its sentence."""
    worker = workers.start(folder, **options)
    code = worker.wait()
    assert worker.said.startswith("Error: ")
    assert worker.said.count("\n") == 1
    return code, worker.said.removeprefix("Error: ").rstrip("\n")


def with_spec(job, content):
    """Replace the spec of a job; return the job."""
    JobFolder(job).spec.write_text(content if isinstance(content, str) else json.dumps(content))
    return job


def test_no_job_in_the_folder(workers, tmp_path):
    code, text = refused(workers, tmp_path)
    assert code == 10
    assert text == (
        f"`{tmp_path}` is not the folder of a job: it has no spec.json. "
        "Start a job there with: ziggurat train --out FOLDER."
    )
    assert list(tmp_path.iterdir()) == []
    assert refused(workers, tmp_path / "nowhere")[0] == 10


SPECS = {
    "no JSON": ("{", "is not JSON:"),
    "no object": ("[1]", "holds a list, not a JSON object"),
    "newer": ({"kind": "train", "version": 99}, "version"),
    "unknown field": ({"epoch": 3}, "`epoch`"),
    "wrong value": ({"epochs": 0}, "`epochs`"),
    "unknown backend": ({"backend": "nul"}, "`nul` is not a known backend. Did you mean `null`?"),
    "unknown schedule": ({"schedule": "cosin"}, "Did you mean `cosine`?"),
    "unknown callback": ({"callbacks": ["test_strik"]}, "`test_strik` is not a known callback. Did you mean"),
    "unknown network": (
        {"network": "lenet"},
        "With the null backend, `network` must be one of mlp, table_mlp, linear, table_linear (received: lenet).",
    ),
    "option of a plugin": (
        {"callbacks": [{"name": "test_draws", "options": {"often": 3}}]},
        "The options of `test_draws` do not fit:",
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_that_is_not_valid(workers, job, data, name):
    change, text = SPECS[name]
    with_spec(job, change if isinstance(change, str) else {**tiny_spec(data), **change})
    code, said = refused(workers, job)
    assert code == 3
    assert text in said
    assert error_of(job).error["message"] == said
    assert (end_of(job).outcome, end_of(job).exit_code, end_of(job).reason) == ("failed", 3, said)
    assert said in JobFolder(job).log.read_text()


def test_a_backend_whose_framework_is_missing(workers, new_job):
    job = new_job(backend="test_missing")
    code, text = refused(workers, job)
    assert code == 8
    assert text.startswith(
        "The package `test_missing` is needed for the backend test_missing (No module named 'frame')"
    )
    assert error_of(job).error["error"] == "missing_dependency"


def test_a_setting_that_is_not_valid(workers, job):
    code, text = refused(workers, job, environment={"ZIGGURAT_LOG_LEVEL": "loud"})
    assert code == 3
    assert "must be `debug`, `info`, `warning` or `error` (received: 'loud' from ZIGGURAT_LOG_LEVEL)." in text
    assert end_of(job).reason == text


def test_data_smaller_than_a_batch(workers, new_job):
    job = new_job(batch_size=51)
    code, text = refused(workers, job)
    assert code == 4
    assert "received: `batch_size` 51 for 50 samples). Make `batch_size` smaller." in text


def test_a_checkpoint_of_another_network(workers, job, data):
    assert workers.execute(job, "term:3") == 75
    with_spec(job, tiny_spec(data, backend_options={"hidden": 9}))
    code, text = refused(workers, job)
    assert code == 7
    assert "A checkpoint is loaded by the network that it was saved from (received: " in text
    assert steps_of(job) == [3]


def test_a_wrong_call(workers, job):
    worker = workers.start(job, "--faster")
    assert worker.wait() == 2
    assert "--faster" in worker.said


def test_help_tells_the_exit_codes(workers, job):
    worker = workers.start(job, "--help")
    assert worker.wait() == 0
    assert "75  a stop was requested; everything is saved, and it can be resumed" in worker.said
