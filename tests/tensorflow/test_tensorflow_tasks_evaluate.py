"""``evaluate`` counts every sample once and ``predict`` agrees with it, with the preprocessing of the training."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorflow_jobs import AUTOENCODER, digit_pictures, lenet_job, quick_job, save_pictures

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.errors import CheckpointError, DataError, SpecError, UnknownNameError
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict


@pytest.fixture(scope="module")
def job() -> str:
    return str(lenet_job())


@pytest.fixture(scope="module")
def figures(job: str) -> dict:
    return evaluate({"folder": job})


@pytest.fixture(scope="module")
def chosen(job: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, np.ndarray]:
    """What ``predict`` takes each validation image for, and what it is."""
    pictures, labels = digit_pictures()
    files = save_pictures(tmp_path_factory.mktemp("val"), pictures)
    found = predict({"folder": job, "images": files, "top": 1})
    assert [each["file"] for each in found["predictions"]] == files
    return np.array([each["classes"][0]["number"] for each in found["predictions"]]), labels


def test_accuracy_is_that_of_the_predictions_of_the_samples(figures: dict, chosen: tuple) -> None:
    predicted, labels = chosen
    assert figures["samples"] == len(labels) == 270
    assert figures["samples"] % 64, "there is a remainder"
    assert figures["accuracy"] == pytest.approx((predicted == labels).mean(), abs=1e-12)
    assert figures["accuracy"] > 0.9


def test_the_confusion_matrix_counts_each_sample_once(figures: dict, chosen: tuple) -> None:
    predicted, labels = chosen
    matrix = np.zeros((10, 10), int)
    for label, taken in zip(labels, predicted, strict=True):
        matrix[label, taken] += 1
    assert figures["confusion"] == matrix.tolist()
    assert np.sum(figures["confusion"]) == 270


def test_precision_and_recall_of_each_class(figures: dict, chosen: tuple) -> None:
    predicted, labels = chosen
    for number, each in enumerate(figures["classes"]):
        right = ((predicted == number) & (labels == number)).sum()
        assert each["class"] == str(number)
        assert each["samples"] == (labels == number).sum()
        assert each["recall"] == pytest.approx(right / (labels == number).sum())
        assert each["precision"] == pytest.approx(right / (predicted == number).sum())
    assert figures["accuracy"] <= figures["top_5"] <= 1


def test_the_cost_is_what_the_training_logged_at_that_checkpoint(job: str, figures: dict) -> None:
    meta = CheckpointStore(Path(job) / "checkpoints", writable=False).load(figures["checkpoint"]).meta
    logged = {tag: point[1] for tag, point in meta["latest"].items()}
    assert figures["step"] == meta["global_step"]
    assert figures["scalars"]["cost"] == pytest.approx(logged["validation_cost"], rel=1e-5)
    assert figures["scalars"]["accuracy"] == pytest.approx(logged["validation_accuracy"], rel=1e-6)
    assert figures["accuracy"] == pytest.approx(1 - logged["validation_error"], rel=1e-6)


@pytest.mark.parametrize(("split", "samples"), [("train", 1252), ("test", 275)])
def test_other_splits(job: str, split: str, samples: int) -> None:
    found = evaluate({"folder": job, "split": split})
    assert (found["split"], found["samples"], np.sum(found["confusion"])) == (split, samples, samples)


def test_an_unknown_split_names_the_nearest(job: str) -> None:
    with pytest.raises(UnknownNameError, match=r"`vall` is not a known split of this data\. Did you mean `val`\?"):
        evaluate({"folder": job, "split": "vall"})


def test_checkpoints_by_their_names(job: str) -> None:
    store = CheckpointStore(Path(job) / "checkpoints", writable=False)
    best, latest = store.names()["min-validation_error"], store.list()[-1].name
    image = {"folder": job, "images": []}
    assert predict({**image})["checkpoint"] == best
    for name, found in {"best": best, "min-validation_error": best, "latest": latest, latest: latest}.items():
        assert predict({**image, "checkpoint": name})["checkpoint"] == found


def test_an_unknown_checkpoint_lists_the_known(job: str) -> None:
    with pytest.raises(CheckpointError, match=r"There is no checkpoint `step-7` in .*There are: step-"):
        evaluate({"folder": job, "checkpoint": "step-7"})


def test_pictures_of_any_kind_are_preprocessed_as_in_training(job: str, tmp_path: Path) -> None:
    pictures, labels = digit_pictures()
    grey = Image.fromarray(pictures[0][:, :, 0])
    kinds = {"grey.png": grey, "rgb.png": grey.convert("RGB"), "large.png": grey.resize((280, 280), 0)}
    for name, image in kinds.items():
        image.save(tmp_path / name)
    found = predict({"folder": job, "images": [str(tmp_path / name) for name in kinds], "top": 10})
    rows = [{each["class"]: each["probability"] for each in one["classes"]} for one in found["predictions"]]
    assert rows[1] == pytest.approx(rows[0], abs=1e-6)
    assert found["predictions"][2]["classes"][0]["number"] == labels[0]
    for one in found["predictions"]:
        shares = [each["probability"] for each in one["classes"]]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1, abs=1e-5)


def test_bad_files_are_named_and_the_others_predicted(job: str, tmp_path: Path) -> None:
    good = save_pictures(tmp_path, digit_pictures()[0][:2])
    (tmp_path / "bad.png").write_bytes(b"no image")
    files = [good[0], str(tmp_path / "bad.png"), str(tmp_path / "gone.png"), good[1]]
    found = predict({"folder": job, "images": files})
    assert [each["file"] for each in found["predictions"]] == good
    assert [each["file"] for each in found["failures"]] == files[1:3]
    assert "it is no image of a known format" in found["failures"][0]["message"]
    assert "No such file or directory" in found["failures"][1]["message"]
    assert found["failures"][0]["error"] == "datapoint"


def test_a_network_that_is_no_classifier(tmp_path: Path) -> None:
    job = quick_job(tmp_path / "job", AUTOENCODER)
    found = evaluate({"folder": str(job)})
    assert set(found["scalars"]) == {"cost", "largest"}
    assert not found["classifier"]
    assert "confusion" not in found
    (one,) = predict({"folder": str(job), "images": save_pictures(tmp_path, digit_pictures()[0][:1])})["predictions"]
    assert one["outputs"]["output"]["shape"] == [28, 28, 1]
    picture = np.array(one["outputs"]["output"]["values"])
    assert picture.shape == (28, 28, 1)
    assert ((picture > 0) & (picture < 1)).all()


def test_a_fine_tuned_network_needs_no_pretrained_model(tmp_path: Path) -> None:
    hooked = AUTOENCODER.replace(
        "    @model_property\n    def loss",
        "    def fineTuneHook(self, net):\n"
        "        return slim.fully_connected(slim.flatten(net), self.nclasses, activation_fn=None, scope='head')\n\n"
        "    @model_property\n    def loss",
    ).replace("digits.mse_loss(self.inference, self.x / 255.0)", "digits.classification_loss(self.inference, self.y)")
    first = quick_job(tmp_path / "first", AUTOENCODER)
    job = quick_job(tmp_path / "job", hooked, steps=2, pretrained=str(first), optimizer="adam")
    content = json.loads((job / "spec.json").read_text())
    (job / "spec.json").write_text(json.dumps({**content, "pretrained": str(tmp_path / "gone")}))
    assert np.sum(evaluate({"folder": str(job)})["confusion"]) == 270


def test_class_weights_are_in_the_cost(tmp_path: Path) -> None:
    text = AUTOENCODER.replace(
        "return tf.reshape(net, [-1, 28, 28, 1])",
        "return slim.fully_connected(net, 10, activation_fn=None, scope='out')",
    ).replace("digits.mse_loss(self.inference, self.x / 255.0)", "digits.classification_loss(self.inference, self.y)")
    plain = evaluate({"folder": str(quick_job(tmp_path / "plain", text))})
    weighted = evaluate({"folder": str(quick_job(tmp_path / "weighted", text, class_weights=[9.0] + [0.0] * 9))})
    assert plain["accuracy"] == weighted["accuracy"]
    assert plain["scalars"]["cost"] != pytest.approx(weighted["scalars"]["cost"], rel=1e-3)


def test_a_checkpoint_of_another_network(tmp_path: Path) -> None:
    job = quick_job(tmp_path / "job", AUTOENCODER)
    content = json.loads((job / "spec.json").read_text())
    content["network"]["text"] = AUTOENCODER.replace("8, scope='encode'", "9, scope='encode'")
    (job / "spec.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"model/encode/weights has shape \(784, 8\) instead of \(784, 9\)"):
        evaluate({"folder": str(job)})


def test_a_job_that_has_trained_nothing(tmp_path: Path) -> None:
    job = quick_job(tmp_path / "job", AUTOENCODER)
    (job / "preprocessing.json").unlink()
    with pytest.raises(DataError, match="must hold the preprocessing of its model"):
        evaluate({"folder": str(job)})
    for path in sorted((job / "checkpoints").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(CheckpointError, match=r"The job .* must have a checkpoint\. Train it first\."):
        evaluate({"folder": str(job)})
    with pytest.raises(CheckpointError, match="There is no checkpoint `best`"):
        evaluate({"folder": str(job), "checkpoint": "best"})
    (job / "spec.json").write_text("{")
    with pytest.raises(SpecError):
        evaluate({"folder": str(job)})
