"""LeNet classifies digits rightly, warm and cold alike."""

import importlib.util
import os
from pathlib import Path

import pytest
from inference_jobs import digit_labels, digit_pictures, lenet_job, named_by, save_pictures

from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool
from ziggurat.settings import load_settings
from ziggurat.workspace.tasks import Tasks

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="`tensorflow` is not installed"),
]


@pytest.mark.nightly
def test_lenet_says_the_same_warm_and_cold(tmp_path: Path) -> None:
    pictures, labels = digit_pictures(60), digit_labels(60)
    paths = save_pictures(tmp_path, pictures)
    cold = Tasks(load_settings()).predict(lenet_job(), paths, top=3)
    with InferencePool(INFERENCE_COMMAND, os.environ) as pool:
        first = pool.predict(lenet_job(), None, named_by(paths, pictures), 3)
        again = pool.predict(lenet_job(), None, named_by(paths, pictures), 3)
        layers = pool.activations(lenet_job(), None, pictures[0])
    assert cold.pop("notes") == []
    assert first == again == cold
    right = [each["classes"][0]["number"] == label for each, label in zip(first["predictions"], labels, strict=True)]
    assert sum(right) >= 54
    assert [(each["name"], each["shape"]) for each in layers["weights"]][:2] == [
        ("model/conv1/weights", [5, 5, 1, 20]),
        ("model/conv1/biases", [20]),
    ]
    assert all(each["png"] for each in (*layers["weights"], *layers["activations"]))
