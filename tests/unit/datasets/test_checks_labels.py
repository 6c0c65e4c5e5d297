"""A check finds boxes, classes, masks and labels that cannot be right, and says where."""

import sys

import cv2
import numpy as np
import pytest
from small_datasets_for_checks import dataset_of, jpeg, picture

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.checks import CheckLimits, Predictions, check_dataset, read_predictions
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.records.schema import Schema


def box(left, top, right, bottom, number=0):
    return {"class": number, "box": [left, top, right, bottom]}


def classified(*classes, name="p", start=0):
    return [(f"{name}{n}.jpg", (jpeg(picture(start + n)),), label) for n, label in enumerate(classes)]


# ---- boxes


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    """Images of 128 x 96 with boxes, most of them wrong."""
    labels = [
        [box(0, 0, 128, 96), box(10, 10, 60, 60)],
        [box(20, 20, 20, 40), box(5, 5, 50, 50), box(30, 9, 60, 9)],
        [box(100, 10, 140, 60)],
        [box(-9, 0, 30, 30), box(1, 1, 50, 3)],
        [box(4, 4, 30, 30), box(4, 4, 30, 30), box(4, 4, 30, 30, 1)],
        [box(0, 0, 40, 40, 7), box(0, 0, 500, 500, -1)],
        [],
        [box(0, 0, float("nan"), 40)],
    ]
    points = [(f"{n}.jpg", (jpeg(picture(n)),), label) for n, label in enumerate(labels)]
    folder = tmp_path_factory.mktemp("boxes") / "set"
    with dataset_of(folder, {"train": points}, kind="detection", class_names=("cell", "platelet")) as dataset:
        yield check_dataset(dataset)


@pytest.mark.parametrize(
    ("kind", "severity", "count", "rows"),
    [
        ("zero-size-box", "error", 3, (1, 7)),
        ("box-outside", "warning", 2, (2, 3)),
        ("tiny-box", "note", 1, (3,)),
        ("duplicate-box", "warning", 1, (4,)),
        ("unknown-box-class", "error", 1, (5,)),
        ("no-objects", "note", 1, (6,)),
    ],
)
def test_boxes_that_cannot_be_right_are_found(boxes, kind, severity, count, rows):
    finding = boxes[kind]
    assert (finding.severity, finding.count, finding.exclude) == (severity, count, {"train": rows})
    assert [case.row for case in finding.cases] == list(rows)


def test_a_case_shows_the_box(boxes):
    finding = boxes["zero-size-box"]
    assert finding.text == "3 boxes in 2 samples have no width or no height."
    assert [case.note for case in finding.cases] == [
        "class 0, box (20, 20, 20, 40)",
        "class 0, box (0, 0, nan, 40)",
    ]


# ---- classes


def test_classes_that_are_small_missing_or_unequal_are_found(tmp_path):
    splits = {
        "train": classified(*[0] * 24, *[1] * 2),
        "val": classified(0, 2, 2, name="val", start=40),
    }
    with dataset_of(tmp_path / "set", splits, class_names=("cat", "dog", "owl", "yak")) as dataset:
        report = check_dataset(dataset)
    found = {finding.kind: finding for finding in report.findings}
    assert set(found) == {
        "class-not-in-training-but-val",
        "small-class",
        "imbalance",
        "class-missing-in-val",
        "empty-class",
    }
    assert found["class-not-in-training-but-val"].text == "1 class of val is not in training: owl."
    assert found["class-not-in-training-but-val"].exclude == {"val": (1, 2)}
    assert found["small-class"].text == "1 class has fewer than 10 samples in training: dog (2)."
    assert found["imbalance"].text.endswith("12.0 times the samples of the smallest in training: cat (24), dog (2).")
    assert found["class-missing-in-val"].text == "1 class of training is not in val: dog."
    assert found["empty-class"].text == "1 class has nothing in any split: yak."


def test_limits_say_from_where_on(tmp_path):
    with dataset_of(tmp_path / "set", {"train": classified(0, 0, 1)}, class_names=("cat", "dog")) as dataset:
        report = check_dataset(dataset, limits=CheckLimits(min_per_class=1, max_imbalance=2))
    assert report.findings == ()


def test_labels_that_are_missing_or_of_no_class_are_errors(tmp_path):
    with dataset_of(tmp_path / "set", {"train": classified(0, None, 5)}, class_names=("cat",)) as dataset:
        report = check_dataset(dataset, limits=CheckLimits(min_per_class=1))
    assert report["empty-label"].exclude == {"train": (1,)}
    assert report["unknown-class"].exclude == {"train": (2,)}
    assert report["unknown-class"].cases[0].note == "class 5"


# ---- masks and sizes


def test_masks_with_unknown_values_or_other_sizes_are_found(tmp_path):
    plain = np.zeros((96, 128), np.uint8)
    strange, ignored = plain.copy(), np.full_like(plain, 255)
    strange[3, 4], strange[5, 6], strange[0, 0] = 7, 9, 255
    masks = [plain, strange, cv2.resize(plain, (64, 48)), ignored]
    points = [(f"{n}.jpg", (jpeg(picture(n)), encode_image(mask, "png")), None) for n, mask in enumerate(masks)]
    schema = Schema(kind="segmentation", class_names=("road", "sky"), ignore_class=255)
    with dataset_of(tmp_path / "set", {"train": points}, schema=schema) as dataset:
        report = check_dataset(dataset)
        some = check_dataset(dataset, limits=CheckLimits(most_masks=2))
    assert report["unknown-mask-value"].cases[0].note == "values 7, 9"
    assert report["unknown-mask-value"].exclude == {"train": (1,)}
    assert report["mask-size"].cases[0].note == "64 x 48 over 128 x 96"
    assert report["empty-mask"].exclude == {"train": (3,)}
    assert sum(finding.count for finding in some.findings) <= 2


def test_pictures_far_from_the_others_are_found(tmp_path):
    sizes = [(96 + n, 128 + n) for n in range(10)] + [(24, 32), (96, 900)]
    points = [(f"{n}.jpg", (jpeg(picture(n, size)),), 0) for n, size in enumerate(sizes)]
    with dataset_of(tmp_path / "set", {"train": points}, class_names=("cat",)) as dataset:
        finding = check_dataset(dataset)["size-outlier"]
    assert finding.exclude == {"train": (10, 11)}
    assert [case.note for case in finding.cases] == ["32 x 24", "900 x 96"]


# ---- predictions


@pytest.fixture
def mislabelled(tmp_path):
    """60 samples of three classes in turn; those in rows 7 and 20 have the label of another class."""
    classes = [n % 3 for n in range(60)]
    classes[7], classes[20] = 0, 1
    points = [(f"t{n}.txt", (f"text {n}",), label) for n, label in enumerate(classes)]
    with dataset_of(
        tmp_path / "set", {"train": points}, kind="text-classification", class_names=("a", "b", "c")
    ) as dataset:
        yield dataset


def probabilities():
    right = np.eye(3)[np.arange(60) % 3]
    return right * 0.85 + 0.05


def test_labels_that_predictions_contradict_are_found(mislabelled, tmp_path):
    pytest.importorskip("cleanlab")
    np.savez(tmp_path / "p.npz", probabilities=probabilities(), keys=[f"t{n}.txt" for n in range(60)])
    finding = check_dataset(mislabelled, predictions=tmp_path / "p.npz")["label-error"]
    assert finding.exclude == {"train": (7, 20)}
    assert {(each.row, each.note) for each in finding.cases} == {
        (7, "labeled a, predicted b (0.90)"),
        (20, "labeled b, predicted c (0.90)"),
    }
    assert finding.text == "2 of 60 samples with predictions have a label that is probably wrong."


def test_without_cleanlab_only_predictions_are_refused(mislabelled, monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    monkeypatch.setitem(sys.modules, "cleanlab.filter", None)
    assert check_dataset(mislabelled).samples == 60
    predictions = Predictions(splits=("train",) * 60, rows=np.arange(60), probabilities=probabilities())
    with pytest.raises(MissingDependencyError, match=r"`cleanlab` is needed for .*ziggurat\[labels\]"):
        check_dataset(mislabelled, predictions=predictions)


def test_predictions_are_read_from_csv_by_key_or_by_row(mislabelled, tmp_path):
    by_key, by_row = tmp_path / "key.csv", tmp_path / "row.csv"
    by_key.write_bytes(b"\xef\xbb\xbfkey,a,b,c\r\nt3.txt,0.1,0.2,0.7\r\n\r\nt0.txt,1,0,0\r\n")
    by_row.write_text("split,row,a,b,c\ntrain,3,0.1,0.2,0.7\ntrain,0,1,0,0\n")
    for path in (by_key, by_row):
        read = read_predictions(path, mislabelled)
        assert read.splits == ("train", "train")
        assert read.rows.tolist() == [3, 0]
        assert read.probabilities.tolist() == [[0.1, 0.2, 0.7], [1, 0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,a,b,c\nt3.txt,0,0,1\n", "its heading starts with"),
        ("key,a,b\nt3.txt,0,1\n", r"1 sample and \(1, 2\) probabilities for 3 classes"),
        ("key,a,b,c\nt3.txt,0,x,1\n", "could not convert"),
        ("key,a,b,c\nt3.txt,0,1\nt4.txt,0,0,1\n", "Predictions are a probability for each class"),
        ("key,a,b,c\nt3.txt,nan,0,1\n", r"Probabilities are from 0 to 1 \(received: "),
        ("key,a,b,c\nnobody.txt,0,0,1\n", r"of samples of the dataset \(received: `nobody\.txt`"),
        ("split,row,a,b,c\ntrain,60,0,0,1\n", r"received: `train 60`"),
        ("", "its heading starts with"),
    ],
)
def test_predictions_of_another_form_are_refused(mislabelled, tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_predictions(tmp_path / "p.csv", mislabelled)


def test_predictions_of_a_set_without_classes_are_refused(tmp_path):
    points = [("0.jpg", (jpeg(picture(0)),), [box(0, 0, 9, 9)])]
    with dataset_of(tmp_path / "set", {"train": points}, kind="detection", class_names=("cell",)) as dataset:
        predictions = Predictions(splits=("train",), rows=np.zeros(1, np.int64), probabilities=np.ones((1, 1)))
        with pytest.raises(DataError, match=r"sets that have a class a sample \(received: kind detection"):
            check_dataset(dataset, predictions=predictions)
