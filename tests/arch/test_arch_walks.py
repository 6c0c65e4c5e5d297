"""How many modules three walks enter. The limits fall with every change that makes a walk shorter, and never rise."""

import json
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from tools.structure_figures import WALKS

HERE = Path(__file__).parent / "walks"
ROOT = Path(__file__).parents[2]
JOB = "20260102-030405-0000abcd"
SLACK = 4
"""So many modules may be missing to the limit; more, and it is to be lowered."""


def run(*words, record="", later=False):
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, ROOT))), "TESTS_WALK": str(record)}
    if later:
        variables["TESTS_WALK_LATER"] = "1"
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def entered(folder):
    return {line for file in folder.iterdir() for line in file.read_text().splitlines()}


def check(name, found):
    limit = WALKS[name]
    listed = "\n".join(sorted(found))
    assert len(found) <= limit, f"{len(found)} modules; the limit is {limit}:\n{listed}"
    assert len(found) >= limit - SLACK, f"only {len(found)} modules: lower the limit of {limit} in structure_figures.py"


def make_images(folder):
    for number in range(80):
        path = folder / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(cv2.imencode(".png", np.full((28, 28), 3 * number, np.uint8))[1].tobytes())


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with a dataset and a job that trained on it by the NumPy backend, both made by the shell."""
    folder = tmp_path_factory.mktemp("walk")
    make_images(folder / "images")
    (folder / "record").mkdir()
    (folder / "spec.json").write_text(
        json.dumps(
            {
                "kind": "train", "version": 1, "backend": "null", "network": "mlp", "epochs": 1, "batch_size": 16,
                "data": str(folder / "workspace/datasets/pets"), "monitors": ["events"],
            }
        )
    )  # fmt: skip
    ziggurat = ("-m", "ziggurat", "--workspace", folder / "workspace")
    run(*ziggurat, "dataset", "create", folder / "images", "--out", folder / "workspace/datasets/pets",
        record=folder / "record")  # fmt: skip
    run(*ziggurat, "train", folder / "spec.json", "--out", folder / "workspace/jobs" / JOB, record=folder / "record")
    return folder


def test_images_to_events(workspace):
    assert (workspace / "workspace/jobs" / JOB / "events.jsonl").stat().st_size
    check("images", entered(workspace / "record"))


def test_a_request_to_the_queue(tmp_path):
    (tmp_path / "record").mkdir()
    run(HERE / "request_walk.py", tmp_path / "work", record=tmp_path / "record", later=True)
    check("request", entered(tmp_path / "record"))


def test_a_prediction(workspace, tmp_path):
    run("-m", "ziggurat", "--workspace", workspace / "workspace", "reindex", record="")
    run(HERE / "prediction_walk.py", workspace / "workspace", record=tmp_path, later=True)
    check("prediction", entered(tmp_path))
