"""A job evaluates a LeNet, and another one predicts for the same images; both agree with the task."""

import json
from pathlib import Path

import pytest
from tensorflow_jobs import digit_pictures, lenet_job, save_pictures

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.entities import EXIT_DONE
from ziggurat.layout import JobFolder
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest
from ziggurat.workspace.studio.predictions import Predictions, SampleFilter


def execute(folder: Path, **fields: object) -> Predictions:
    folder.mkdir()
    JobFolder(folder).spec.write_text(json.dumps({"version": 1, "model": str(lenet_job()), **fields}))
    assert main([str(folder)], request=StopRequest()) == EXIT_DONE
    return Predictions(JobFolder(folder).results)


def test_a_lenet_on_a_split_and_on_the_pictures_of_that_split(tmp_path: Path) -> None:
    pictures, labels = digit_pictures()
    files = save_pictures(tmp_path, pictures)
    lines = "".join(f"{Path(file).name} {label}\n" for file, label in zip(files, labels, strict=True))
    (tmp_path / "list.txt").write_text(lines)

    split = execute(tmp_path / "split", kind="evaluate", split="val")
    many = execute(tmp_path / "many", kind="infer", source=str(tmp_path / "list.txt"), batch_size=50)

    known = evaluate({"folder": str(lenet_job())})
    assert len(split) == len(many) == 270
    assert split.summary["checkpoint"] == many.summary["checkpoint"] == known["checkpoint"]
    assert split.figures["confusion"] == many.figures["confusion"] == known["confusion"]
    assert split.figures["accuracy"] == pytest.approx(known["accuracy"])
    assert split.figures["top5"] == pytest.approx(known["top_5"])
    assert split.summary["scalars"] == pytest.approx(known["scalars"])
    assert split.scores == pytest.approx(many.scores, abs=1e-5)
    assert split.curves(3, 200)["average_precision"] > 0.9
    wrong = split.samples(split.select(SampleFilter(only="wrong")))
    assert len(wrong) == round(270 * (1 - known["accuracy"]))
    assert all(each["label"] == labels[each["row"]] != each["predicted"] for each in wrong)
