"""What a studio and its workers write is for the user who runs it, or for a group that shares the workspace."""

import os
import signal
import stat

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

import cv2
import numpy as np
from studio_process import StudioProcess, call, tiny_training

from ziggurat.client import Client


@pytest.fixture
def usual_umask():
    """The umask of most systems, under which everybody may read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    for number in range(8):
        name = folder / ("cat", "dog")[number % 2] / f"{number}.png"
        name.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(name), np.full((8, 8, 3), 20 * number, np.uint8))
    return folder


def use_everything(workspace, pictures):
    """Make a dataset from an upload, a training, an export and an evaluation in a studio; return its workspace."""
    studio = StudioProcess(workspace)
    try:
        with Client(studio.address) as client:
            place = client.datasets.upload(pictures)
            dataset = client.datasets.create({"source": place, "name": "pets", "workers": 0})
            client.wait(dataset["id"], every_s=0.1)
            spec = tiny_training(1) | {"data": {"source": "digits", "options": {"size": 8}}}
            (job,) = client.train(spec)
            assert client.wait(job["id"], every_s=0.1)["state"] == "done"
            client.models.predict(job["id"], [pictures / "cat" / "0.png"])
            client.datasets.relabel(dataset["id"], ["train/0"], 0)
    finally:
        studio.end(signal.SIGTERM)


def with_rights(workspace, bits):
    """Return the files and folders in a workspace whose rights have one of some bits."""
    paths = [path for path in sorted(workspace.rglob("*")) if not path.is_symlink()]
    assert len(paths) > 30
    return [str(path.relative_to(workspace)) for path in paths if stat.S_IMODE(path.stat().st_mode) & bits]


@pytest.mark.nightly
def test_new_workspace_is_for_its_owner(usual_umask, tmp_path, pictures):
    use_everything(tmp_path / "workspace", pictures)
    assert stat.S_IMODE((tmp_path / "workspace").stat().st_mode) == 0o700
    assert with_rights(tmp_path / "workspace", 0o077) == []


@pytest.mark.nightly
def test_shared_workspace_is_for_its_group(usual_umask, tmp_path, pictures):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    workspace.chmod(0o2750)
    use_everything(workspace, pictures)
    assert with_rights(workspace, 0o007) == []
    readable = with_rights(workspace, 0o040)
    assert {path.partition("/")[0] for path in readable} >= {"jobs", "datasets", "uploads", "logs"}
    assert "studio.db" not in readable, "hashes of passwords are in it"
    (job,) = (workspace / "jobs").iterdir()
    assert [path.name for path in job.iterdir() if not path.stat().st_mode & 0o040] == []


def test_job_of_the_shell_is_for_its_owner(usual_umask, tmp_path):
    flags = ("--network", "mlp", "--backend", "null", "--data", "digits", "--epochs", "1", "--steps-per-epoch", "2")
    for words, place in (((), tmp_path / "workspace"), (("--out", str(tmp_path / "out")), tmp_path / "out")):
        answer = call(tmp_path / "workspace", "train", *flags, *words)
        assert answer.returncode == 0, answer.stderr
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert [path for path in place.rglob("*") if path.stat().st_mode & 0o077] == []
