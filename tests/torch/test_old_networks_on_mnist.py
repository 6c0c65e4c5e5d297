"""LeNet of Caffe and of Torch learns the 60,000 digits of MNIST with the settings of its time, in one epoch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import caffe_files, torch7_files

pytestmark = [pytest.mark.torch, pytest.mark.nightly]

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))


def ziggurat(*words):
    done = subprocess.run(
        [sys.executable, "-m", "ziggurat", *map(str, words)], capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def mnist(tmp_path_factory):
    if not (SHARED / "mnist").is_dir():
        pytest.skip("needs the files of MNIST")
    folder = tmp_path_factory.mktemp("mnist") / "set"
    ziggurat("dataset", "create", SHARED / "mnist", "--val-share", 0.02, "--out", folder)
    return folder


def trained(folder, mnist, **fields):
    """Return the share of the test images that are right after one epoch."""
    spec = json.loads((folder / "new" / "train.json").read_text()) | fields
    spec.pop("steps_per_epoch", None)
    (folder / "spec.json").write_text(json.dumps(spec | {"epochs": 1, "data": str(mnist)}))
    ziggurat("train", folder / "spec.json", "--out", folder / "job")
    return json.loads(ziggurat("evaluate", folder / "job", "--split", "test", "--json"))["accuracy"]


def test_lenet_of_caffe_is_right_for_97_percent(tmp_path, mnist):
    (tmp_path / "lenet.prototxt").write_text(caffe_files.LENET)
    (tmp_path / "solver.prototxt").write_text(caffe_files.LENET_SOLVER)
    words = ["--solver", tmp_path / "solver.prototxt", "--input", "1x28x28"]
    ziggurat("model", "import", tmp_path / "lenet.prototxt", *words, "--out", tmp_path / "new")
    assert trained(tmp_path, mnist) >= 0.97


def test_lenet_of_torch_is_right_for_97_percent(tmp_path, mnist):
    pytest.importorskip("lupa")
    (tmp_path / "lenet.lua").write_text(torch7_files.LENET)
    ziggurat("model", "import", tmp_path / "lenet.lua", "--input", "1x28x28", "--out", tmp_path / "new")
    solver = {
        "learning_rate": 0.01,
        "schedule": {"policy": "inv", "gamma": 0.01, "power": 0.75},
        "optimizer": {"name": "momentum", "momentum": 0.9},
        "weight_decay": 0.0005,
    }
    assert trained(tmp_path, mnist, **solver) >= 0.97
