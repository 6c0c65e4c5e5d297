"""Import of a network of Caffe from the shell and over REST: files, report, and errors with their line."""

import asyncio
import json
import subprocess
import sys

import httpx
import pytest

from tests.caffe_files import LENET, LENET_SOLVER, caffemodel
from tests.unit.studio_samples import make_empty_workspace, studio_in_copy
from ziggurat.api.app import create_app
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.layers import read_network
from ziggurat.compat.caffe.weights import random_arrays

pytestmark = pytest.mark.torch


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "lenet.prototxt").write_text(LENET)
    (folder / "solver.prototxt").write_text(LENET_SOLVER)
    (folder / "labels.txt").write_text("\n".join("abcdefghij"))
    arrays = random_arrays(build_graph(read_network(LENET), (1, 28, 28)))
    (folder / "lenet.caffemodel").write_bytes(caffemodel(arrays))
    return folder


def ziggurat(*words):
    return subprocess.run(
        [sys.executable, "-m", "ziggurat", *map(str, words)], capture_output=True, text=True, check=False, timeout=120
    )


def test_the_command_writes_a_folder_and_a_report(files, tmp_path):
    out = tmp_path / "new"
    options = ["--solver", files / "solver.prototxt", "--labels", files / "labels.txt", "--out", out]
    done = ziggurat("model", "import", files / "lenet.prototxt", files / "lenet.caffemodel", *options)
    assert done.returncode == 0, done.stderr
    assert "The network file gives the same as Caffe: largest difference" in done.stdout
    assert "ip1    InnerProduct  500           400,500" in done.stdout
    names = ["labels.txt", "network.py", "report.json", "train.json", "weights.safetensors"]
    assert sorted(each.name for each in out.iterdir()) == names
    report = json.loads((out / "report.json").read_text())
    assert report["parity"]["holds"]
    assert report["parity"]["largest_difference"] < 1e-5
    assert report["weights"]["file"] == "lenet.caffemodel"
    again = ziggurat("model", "import", files / "lenet.prototxt", "--input", "1x28x28", "--out", out)
    assert again.returncode == 2
    assert "The folder of an import is new or empty (received: " in again.stderr


def test_the_command_names_the_line_of_an_error(files, tmp_path):
    (files / "lenet.prototxt").write_text(LENET.replace("kernel_size: 5", "kernel_size: five", 1))
    done = ziggurat(
        "model", "import", files / "lenet.prototxt", "--input", "1x28x28", "--out", tmp_path / "n", "--json"
    )
    assert done.returncode == 4
    error = json.loads(done.stdout)
    assert error["error"] == "caffe"
    assert error["rule"] == "Line 18: `kernel_size` is 'five', not a whole number."
    assert error["details"] == {"line": 18}
    assert not (tmp_path / "n").exists()


def post(studio, content):
    async def ask():
        transport = httpx.ASGITransport(create_app(studio), client=("127.0.0.1", 40000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000", timeout=120) as client:
            return await client.post("/api/v1/imports/caffe", json=content)

    return asyncio.run(ask())


def test_rest_converts_a_text_and_keeps_its_weights(files, tmp_path):
    with studio_in_copy(make_empty_workspace(tmp_path / "empty"), tmp_path / "copy") as studio:
        studio.paths.allow(str(files))
        weights = str(files / "lenet.caffemodel")
        found = post(
            studio, {"text": LENET, "weights": weights, "labels": str(files / "labels.txt"), "name": "old-lenet"}
        )
        assert found.status_code == 200, found.text
        content = found.json()
        assert "self.ip2 = nn.Linear(500, classes)" in content["network"]
        assert content["parity"]["holds"]
        assert content["pretrained"] == "weights:old-lenet"
        assert studio.weights.get("old-lenet").classes == tuple("abcdefghij")
        wrong = post(studio, {"text": LENET.replace("SoftmaxWithLoss", "Mystery"), "input": "1x28x28"})
        assert wrong.status_code == 422 or wrong.status_code == 400
        assert "Line" in wrong.json()["message"]
        outside = post(studio, {"text": LENET, "weights": "/etc/hostname"})
        assert outside.json()["details"]["reason"] == "not-allowed" or "allowed" in outside.json()["message"]
