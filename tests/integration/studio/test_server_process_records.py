"""What a training recorded, asked for by the client and by ``ziggurat job``."""

import json
import signal

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

from studio_process import StudioProcess, call, tiny_training

from ziggurat.client import Client


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """A studio with a training that is done."""
    workspace = tmp_path_factory.mktemp("studio") / "workspace"
    process = StudioProcess(workspace)
    process.workspace = workspace
    rule = {"tag": "validation_cost", "patience": 9}
    spec = {**tiny_training(2), "early_stopping": rule, "validation": {"every_epochs": 1}}
    with Client(process.address) as client:
        (job,) = client.train(spec)
        process.done = client.wait(job["id"], timeout_s=60, every_s=0.1)
    yield process
    process.end(signal.SIGTERM)


@pytest.mark.nightly
def test_the_client_returns_all_records(studio):
    job = studio.done["id"]
    with Client(studio.address) as client:
        load, samples = client.machine_load(job), client.sample_predictions(job)
        assert load["steps"][-1] == 40
        assert {"job_memory_bytes", "images_per_s"} <= {curve["name"] for curve in load["curves"]}
        assert [each["epoch"] for each in samples["records"]] == [0, 1, 2]
        kinds = [each["kind"] for each in client.timeline(job)]
        assert kinds[0] == "started"
        assert {"best", "done"} <= set(kinds)
        assert client.early_stopping(job)["patience"] == 9
        steps = client.curves(job, ["cost"])["cost"]["steps"]
        assert steps[:5] == [1, 2, 3, 4, 5]


def test_the_shell_shows_load_samples_and_timeline(studio):
    job = studio.done["id"]
    load = call(studio.workspace, "job", "load", job)
    assert load.stdout.splitlines()[0].split() == ["load", "last", "mean", "maximum"]
    assert "Throughput" in load.stdout
    assert "curves" in json.loads(call(studio.workspace, "job", "load", job, "--json").stdout)

    newest = call(studio.workspace, "job", "samples", job).stdout.splitlines()
    assert newest[0].startswith("After epoch 2, step 40")
    assert len(newest) == 2 + 9
    assert call(studio.workspace, "job", "samples", job, "--epoch", "1.5").stdout.startswith("After epoch 1, step 20")

    told = call(studio.workspace, "job", "timeline", job)
    assert told.returncode == 0
    assert "Training started" in told.stdout
    assert "of 9 epochs without gain" in told.stdout


def test_without_records_the_shell_says_so(studio, tmp_path):
    spec = {**tiny_training(1), "sample_predictions": False, "machine_load_s": 0}
    with Client(studio.address) as client:
        (job,) = client.train(spec)
        client.wait(job["id"], timeout_s=60, every_s=0.1)
    for command in ("load", "samples"):
        found = call(studio.workspace, "job", command, job["id"])
        assert found.returncode == 0
        assert found.stdout.startswith("No ")
