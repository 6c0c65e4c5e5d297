"""``ziggurat submit`` against a real server with real workers."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

from tests.integration.studio.studio_process import StudioProcess
from tests.waiting import PROCESS_S, wait_until
from ziggurat.cli.main import main
from ziggurat.client import Client

TRAIN = """
import sys
import numpy as np
import shapes
from ziggurat.backends.null import NullProgram
from ziggurat.callbacks import Trainer

x, y = shapes.samples()
batches = [[x[i : i + 8], y[i : i + 8]] for i in range(0, 64, 8)]
Trainer(NullProgram(8, 2), batches).train(int(sys.argv[sys.argv.index("--epochs") + 1]))
print("the end")
"""
SHAPES = """
import numpy as np

def samples():
    x = np.random.random((64, 8)).astype(np.float32)
    return x, (x.sum(1) > 4).astype(np.int64)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Return the address of a studio."""
    process = StudioProcess(tmp_path_factory.mktemp("studio") / "workspace")
    yield process.address.rstrip("/")
    process.end(signal.SIGTERM)


@pytest.fixture
def project(tmp_path) -> Path:
    """Return a folder with a program."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("secret")
    (folder / "train.py").write_text(TRAIN)
    (folder / "shapes.py").write_text(SHAPES)
    return folder


@pytest.mark.nightly
def test_a_folder_is_submitted_and_waited_for(server, project, capsys):
    words = ["submit", str(project), "--server", server, "--name", "mine", "--tag", "one", "--wait", "--json"]
    assert main([*words, "--", "--epochs", "3"]) == 0
    job = json.loads(capsys.readouterr().out)
    assert (job["kind"], job["name"], job["state"], job["tags"]) == ("program", "mine", "done", ["one"])
    assert job["spec"]["arguments"] == ["--epochs", "3"]
    assert (job["epoch"], job["max_epoch"], job["global_step"]) == (3, 3, 24)
    with Client(server) as client:
        assert client.curves(job["id"], ["cost"])["cost"]["steps"][-1] == 24
        assert [each["step"] for each in client.checkpoints(job["id"])] == [8, 16, 24]
        assert [each["name"] for each in client.programs.files(job["id"])] == ["train.py", "shapes.py"]
        assert client.programs.text(job["id"]) == TRAIN
        assert "the end" in client.log(job["id"])


def test_a_program_that_fails_says_its_line(server, tmp_path, capsys):
    script = tmp_path / "bad.py"
    script.write_text("import sys\n\nsys.argv[7]\n")
    assert main(["submit", str(script), "--server", server, "--wait"]) == 10
    assert "bad.py, line 3: IndexError: list index out of range (received: `sys.argv[7]`)." in capsys.readouterr().err


def test_a_submitted_program_is_stopped_and_resumed(server, project, capsys):
    assert main(["submit", str(project), "--server", server, "--", "--epochs", "1000000"]) == 0
    job_id = capsys.readouterr().out.split()[0]
    with Client(server) as client:
        wait_until(lambda: client.checkpoints(job_id), PROCESS_S)
        client.stop(job_id)
        wait_until(lambda: client.job(job_id)["state"] == "stopped", PROCESS_S)
        step = client.job(job_id)["global_step"]
        client.resume(job_id)
        wait_until(lambda: client.job(job_id)["global_step"] > step, PROCESS_S)
        assert client.attempts(job_id)[-1]["first_step"] == step
        client.stop(job_id, now=False)
        wait_until(lambda: client.job(job_id)["state"] == "stopped", PROCESS_S)


LOOP = """
import numpy as np
import ziggurat

for step in range(1, 4):
    ziggurat.log({"val/loss": 1 / step}, step=step)
    ziggurat.log_image("weights", np.full((3, 4), step / 4), step=step)
print("a line of the loop")
"""


def test_a_plain_loop_has_a_page_with_curves(server, tmp_path, capsys):
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    assert main(["submit", str(script), "--server", server, "--capture", "wandb, mlflow"]) == 0
    said = capsys.readouterr().out
    job_id = said.split()[0]
    assert said.rstrip().endswith(f"now: {server}/jobs/{job_id}")
    with Client(server) as client, httpx.Client(base_url=server, follow_redirects=True) as browser:
        done = client.wait(job_id)
        assert (done["state"], done["spec"]["capture"]) == ("done", ["wandb", "mlflow"])
        assert client.curves(job_id, ["val/loss"])["val/loss"]["steps"] == [1, 2, 3]
        page = browser.get(f"/jobs/{job_id}").text
        assert "a line of the loop" in page
        assert "program-without-curves" not in page
        place = f"/jobs/{job_id}/images"
        assert f"{place}/weights-00000003.png" in page
        assert f"{place}/weights-00000002.png" not in page
        image = browser.get(f"{place}/weights-00000003.png")
        assert (image.headers["content-type"], image.content[:4]) == ("image/png", b"\x89PNG")
        for wrong in ("weights-00000009.png", "..%2Fspec.json", "spec.json"):
            assert browser.get(f"{place}/{wrong}").status_code == 404


def test_a_tracker_without_stand_in_is_refused(server, tmp_path, capsys):
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    assert main(["submit", str(script), "--server", server, "--capture", "comet"]) == 3
    assert "comet" in capsys.readouterr().err
