"""A warm network says what ``ziggurat predict`` and ``ziggurat evaluate`` say, to the last digit."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from inference_jobs import digit_labels, digit_pictures, digits_job, named_by, save_pictures
from PIL import Image

from ziggurat.errors import UsageError
from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.commands.trained import open_trained_job


@pytest.fixture(scope="module")
def pool() -> Iterator[InferencePool]:
    with InferencePool(INFERENCE_COMMAND, os.environ) as made:
        yield made


def test_warm_predictions_are_those_of_the_task(pool: InferencePool, tmp_path: Path) -> None:
    pictures = digit_pictures(70)
    large = Image.fromarray(np.arange(90 * 60 * 3, dtype=np.uint32).astype(np.uint8).reshape(90, 60, 3))
    coded = io.BytesIO()
    large.save(coded, "JPEG")
    pictures[3] = ("large.jpg", coded.getvalue())  # scaled, and made gray
    pictures[40] = ("cut.png", pictures[40][1][:100])
    paths = save_pictures(tmp_path, pictures)
    cold = predict({"folder": str(digits_job()), "images": paths, "top": 3})
    warm = pool.predict(digits_job(), None, named_by(paths, pictures), 3)
    assert cold.pop("notes") == []  # of files with rows, which nothing warm reads
    assert warm == cold
    assert len(warm["predictions"]) == 69
    assert [each["file"] for each in warm["failures"]] == [paths[40]]


def test_a_warm_evaluation_is_that_of_the_task(pool: InferencePool) -> None:
    cold = evaluate({"folder": str(digits_job()), "split": "val"})
    count = cold["samples"]
    pictures, labels = digit_pictures(count), digit_labels(count)
    warm = pool.evaluate(digits_job(), None, [("bad", b"none"), *pictures], [0, *labels])
    assert warm["samples"] == count
    assert [each["file"] for each in warm["failures"]] == ["bad"]
    for name in ("accuracy", "top_5", "confusion", "classes"):
        assert warm[name] == cold[name]
    assert warm["scalars"] == pytest.approx(cold["scalars"], rel=1e-6)
    assert warm["accuracy"] > 0.9


def test_activations_and_weights_have_figures_and_pictures(pool: InferencePool) -> None:
    picture = digit_pictures(1)[0]
    answer = pool.activations(digits_job(), None, picture)
    job = open_trained_job(digits_job())
    weights = {each["name"]: each for each in answer["weights"]}
    assert {name: each["shape"] for name, each in weights.items()} == {
        "layer1/W": [576, 32],
        "layer1/b": [32],
        "layer2/W": [32, 10],
        "layer2/b": [10],
    }
    assert answer["parameters"] == sum(each["parameters"] for each in answer["weights"]) == 576 * 32 + 32 + 320 + 10
    for name, each in weights.items():
        values = job.state.arrays[name].astype(np.float64)
        counts, edges = np.histogram(values, 20)
        assert each["histogram"] == {"counts": counts.tolist(), "edges": edges.tolist()}
        assert (each["mean"], each["deviation"]) == pytest.approx((values.mean(), values.std()))
    (output,) = answer["activations"]
    assert (output["name"], output["shape"]) == ("probabilities", [10])
    assert output["mean"] == pytest.approx(0.1)
    assert answer["classes"] == pool.predict(digits_job(), None, [picture])["predictions"][0]["classes"]
    assert answer["input"]["shape"] == [24, 24, 1]
    for each in (answer["input"], output, *weights.values()):
        with Image.open(io.BytesIO(each["png"])) as image:
            assert image.format == "PNG"
            assert max(image.size) <= 300
    assert pool.activations(digits_job(), None, picture, weights=False)["weights"] == []


def test_the_description_says_what_to_send(pool: InferencePool) -> None:
    found = pool.describe(digits_job(), None, "cpu")
    assert (found["device"], found["step"], found["picture"]["size"]) == ("cpu", 78, [28, 28])


def test_a_device_that_is_none_is_refused_here(pool: InferencePool) -> None:
    with pytest.raises(UsageError, match=", not `cpu` or the index of an accelerator"):
        pool.describe(digits_job(), None, "gpu")


def test_grad_cam_needs_a_network_that_gives_gradients(pool: InferencePool) -> None:
    with pytest.raises(
        UsageError, match=r"one of the TensorFlow or PyTorch backend \(received: a network of the backend null"
    ):
        pool.grad_cam(digits_job(), None, digit_pictures(1)[0])
