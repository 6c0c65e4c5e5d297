"""``demo`` starts a studio of its own and trains on handwritten digits in it, as a person would."""

import json
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.entities import JobFilter
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio
from ziggurat.workspace.studio.demo import DATASET_NAME, demo_images


def test_the_pictures_are_class_folders(tmp_path):
    root = demo_images(tmp_path / "digits")
    counts = [len(list((root / str(label)).glob("*.png"))) for label in range(10)]
    assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert decode_image((root / "3" / sorted((root / "3").iterdir())[0].name).read_bytes()).shape[:2] == (28, 28)


@pytest.mark.nightly
def test_the_data_set_of_an_earlier_demo_is_taken_again(tmp_path):
    with open_studio(Settings(workspace=tmp_path / "demo"), start=False) as studio:
        if not any(each.backend == "torch" and each.works for each in studio.machine.frameworks.find()):
            pytest.skip("needs PyTorch, which a worker would load")
        first, second = studio.demo.start(epochs=2), studio.demo.start(epochs=3)
        page = studio.jobs.page(JobFilter(kinds=("dataset",)))
        assert [(job.name, job.state) for job in page.jobs] == [(DATASET_NAME, "queued")]
        assert first.depends_on == second.depends_on == (page.jobs[0].id,)
        assert (first.framework, first.network, first.spec["epochs"]) == ("torch", "lenet", 2)


@pytest.mark.nightly
def test_demo_serves_a_studio_whose_model_is_shown(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "ziggurat", "demo", "--out", str(tmp_path / "demo"), "--no-open"]
        command += ["--port", str(port), "--epochs", "1", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            said = json.loads(process.stdout.readline())
            assert said["workspace"] == str(tmp_path / "demo")
            assert f":{port}/" not in said["address"]
            found = next(filter(None, (re.search(r"test it at (\S+)", line) for line in process.stderr)))
            page = httpx.get(found[1], headers={"Accept": "text/html"}, timeout=30)
            assert page.status_code == 200
            job = httpx.get(said["address"] + "api/v1/jobs/" + found[1].rpartition("/")[2], timeout=30).json()
            assert job["tags"] == ["demo"]
            for each in (job["id"], *job["depends_on"]):  # nothing goes on after the test
                httpx.delete(said["address"] + f"api/v1/jobs/{each}?force=true", timeout=60)
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(60) == 0
