"""The same calls of a Python session in a workspace folder and in a studio."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import ziggurat as zig
from ziggurat.errors import DataError, MissingJobError, UnknownNameError, UsageError, ZigguratError

SETTINGS = {"network": "mlp", "epochs": 2, "batch_size": 6, "size": 32}


@pytest.fixture
def run(home, files):
    """Return a run of the session's home; the first one trains."""
    try:
        return zig.load("shapes run")
    except MissingJobError:
        return train(files, name="shapes run")


def train(files, **settings):
    asked = {"preprocessing__size": [32, 32], "preprocessing__channels": 3, "batch_size": 6, "progress": False}
    return zig.train(files, "mlp", 2, **asked, **settings)


def test_a_run_is_done_and_shows_itself(run):
    assert (run.name, run.state) == ("shapes run", "done")
    assert repr(run).startswith("Run('shapes run', done, epoch 2 of 2, validation accuracy ")
    assert {"validation_accuracy", "validation_cost"} <= set(run.metrics)
    assert run.settings["epochs"] == 2
    assert len(run.curves["validation_cost"].values) >= 2
    assert run.curves.to_pandas()["validation_cost"].dropna().tolist() == list(run.curves["validation_cost"].values)
    assert "<svg" in run._repr_html_()


def test_evaluation_counts_the_split(run):
    found = run.evaluate()

    assert found.samples == 6
    assert found.confusion.shape == (2, 2)
    assert list(found.to_pandas()["class"]) == ["tall", "wide"]
    assert found.metrics["accuracy"] == found.accuracy


def test_images_of_every_type_predict_the_same(run, files):
    path = files / "tall" / "0.png"
    image = Image.open(path).convert("RGB")

    found = run.predict([str(path), path, image, np.asarray(image)])

    assert {each.label for each in found} == {found[0].label}
    assert found[0].probability == pytest.approx(found[3].probability)
    assert found[0].source == str(path)
    assert run.predict(np.stack([np.asarray(image)] * 2))[1].label == found[0].label
    assert list(found.to_pandas().columns) == ["source", "label", "probability"]


def test_wrong_inputs_say_what_the_run_takes(run, files):
    with pytest.raises(UsageError, match="This run takes images"):
        run.predict({"width": 3})
    with pytest.raises(DataError, match=r"`no\.png` does not exist"):
        run.predict("no.png")
    with pytest.raises(DataError, match="float64 numbers"):
        run.predict(np.zeros((4, 4)))
    with pytest.raises(DataError):
        run.predict(__file__)
    with pytest.raises(DataError, match="1 of 2 inputs cannot be read"):
        run.predict([files / "tall" / "0.png", __file__])
    with pytest.raises(UsageError, match="nothing to predict"):
        run.predict([])


def test_a_dataset_of_the_same_files_is_made_once(home, files):
    first = zig.dataset(files, progress=False)
    second = zig.dataset(files, progress=False)

    assert first.id == second.id
    assert repr(first) == "Dataset('shapes', image-classification, 2 classes, train 18, val 6)"
    assert zig.dataset("shapes").id == first.id
    assert first.classes == ["tall", "wide"]
    assert "data:image/png" in first._repr_html_()


def test_arrays_and_rows_become_datasets(home):
    images = np.zeros((8, 12, 12, 3), np.uint8)
    images[::2] += 200

    pictures = zig.dataset((images, ["light", "dark"] * 4), name="arrays", progress=False)
    rows = [{"size": float(number), "kind": "ab"[number % 2]} for number in range(8)]
    table = zig.dataset(rows, name="rows", format="table", target="kind", progress=False)

    assert pictures.classes == ["dark", "light"]
    assert sum(pictures.splits.values()) == 8
    assert table.columns == ["size", "kind"]
    assert zig.dataset((images, ["light", "dark"] * 4), name="arrays", progress=False).id == pictures.id


def test_unknown_names_say_what_was_meant(home, run, files):
    with pytest.raises(UnknownNameError, match="Did you mean `mlp`"):
        zig.train("shapes", "mpl", progress=False)
    with pytest.raises(UnknownNameError, match="Did you mean `learning_rate`"):
        zig.train("shapes", "mlp", learning_rat=0.1, progress=False)
    with pytest.raises(MissingJobError, match="Did you mean `shapes run`"):
        zig.load("shape run")
    with pytest.raises(DataError, match="`nowhere` is no path, and no dataset in "):
        zig.train("nowhere", progress=False)
    with pytest.raises(UnknownNameError, match="curve"):
        run.curves["acuracy"]
    with pytest.raises(ZigguratError):
        run.evaluate("vall")


def test_a_failed_training_names_its_log(home, files, tmp_path):
    with pytest.raises(ZigguratError, match=r"log\.txt") as caught:
        train(files, learning_rate=1e30, name="too fast")

    assert caught.value.details["run"]
    assert zig.load("too fast").state in ("diverged", "failed")


def test_runs_are_listed_newest_first(home, run):
    found = zig.runs()

    assert run.id in {each.id for each in found}
    assert found.to_pandas()["name"].isin(["shapes run"]).any()
    assert "shapes run" in found._repr_html_()
