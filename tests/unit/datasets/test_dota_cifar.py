"""DOTA's text labels, CIFAR's batches and Roboflow's tables of classes are read, and what cannot come is counted."""

import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from detection_sources import save_picture, scan
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ziggurat.datasets.format_registry import guess_format, importer
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError

ANY = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
GOOD = "10 10 30 10 30 20 10 20 plane 0"
TURNED = "20,10,30,20,20,30,10,20,small-vehicle,1"


def dota(folder, lines, *, split="train", header="imagesource:GoogleEarth\ngsd:0.14\n"):
    for number, each in enumerate(lines, 1):
        save_picture(folder / split / "images" / f"P{number}.png", 80, 60)
        label = folder / split / "labelTxt" / f"P{number}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text(header + "\n".join(each) + "\n")
    return folder


# ---- DOTA


def test_corners_become_outlines_and_boxes(tmp_path):
    source = dota(dota(tmp_path, [[GOOD, TURNED], []]), [[GOOD]], split="val")
    assert guess_format(source).format == "dota"
    found = scan(importer("dota"), source)
    assert found.splits() == {
        "train/images/P1.png": "train",
        "train/images/P2.png": "train",
        "val/images/P1.png": "val",
    }
    first, second = found.objects("train/images/P1.png")
    assert found.schema.class_names == ("plane", "small-vehicle")
    assert (first.box, first.difficult) == ((10, 10, 30, 20), False)
    assert (second.box, second.difficult) == ((10, 10, 30, 30), True)
    assert second.polygons == ((20, 10, 30, 20, 20, 30, 10, 20),)
    assert found.count() == 3
    assert sorted(found.kinds()) == ["box-of-outline", "no-label"]


def test_labels_beside_the_images_are_found(tmp_path):
    dota(tmp_path, [[GOOD]])
    for path in (tmp_path / "train").rglob("P1.*"):
        path.rename(tmp_path / path.name)
    assert guess_format(tmp_path).format == "dota"
    assert scan(importer("dota"), tmp_path).count() == 1


@pytest.mark.parametrize(
    "line",
    ["0 0.1 0.1 0.3 0.1 0.3 0.2 0.1 0.2", "1,2,3,2,3,4,1,4,a word of a sign", "Car 0.0 0 1.5 1 2 3 4 1 1 1 1 1 1 1"],
)
def test_other_texts_are_not_claimed(tmp_path, line):
    assert importer("dota").guess(dota(tmp_path, [[line]], header="")) is None


@st.composite
def rows(draw):
    numbers = draw(st.lists(st.integers(0, 59), min_size=8, max_size=8))
    kind = draw(st.sampled_from(["good", "nan", "short", "flat"]))
    cells = [str(number) for number in ([5] * 8 if kind == "flat" else numbers)]
    cells[0] = "x" if kind == "nan" else cells[0]
    return " ".join([*(cells[:6] if kind == "short" else cells), draw(st.sampled_from(["plane", "ship"])), "0"])


@ANY
@given(lines=st.lists(st.lists(rows(), max_size=4), min_size=1, max_size=3))
def test_lines_in_are_objects_out_and_objects_lost(lines):
    lines = [[GOOD, *lines[0]], *lines[1:]]
    with tempfile.TemporaryDirectory() as folder:
        found = scan(importer("dota"), dota(Path(folder), lines))
    # A file none of whose lines is one of DOTA is another text, whose image is left out and listed.
    read = [each for each in lines if not each or any(len(line.split()) == 10 and line[0] != "x" for line in each)]
    assert len(found.samples) == len(read)
    lost = sum(problem.objects for problem in found.problems)
    assert found.count() + lost == sum(map(len, read))
    assert all(problem.why or problem.kind == "zero-size-box" for problem in found.problems if problem.objects)


# ---- CIFAR


def cifar10(folder, labels=(0, 2, 1, 2), names=(b"plane", b"car", b"bird")):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        data = random.integers(0, 256, (len(labels), 3072), np.uint8)
        (folder / name).write_bytes(pickle.dumps({b"data": data, b"labels": list(labels)}, protocol=2))
    if names:
        (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": list(names)}, protocol=2))
    return folder


def walked(source, **options):
    one = importer("cifar")
    found = one.scan(source, one.checked_options(options))
    each = list(found)
    return (
        [one for one in each if isinstance(one, Sample)],
        [one for one in each if isinstance(one, Problem)],
        found.schema,
    )


def test_batches_become_images_with_classes(tmp_path):
    source = cifar10(tmp_path / "cifar")
    assert guess_format(source).format == "cifar"
    samples, problems, schema = walked(source)
    assert (len(samples), problems, schema.class_names) == (12, [], ("plane", "car", "bird"))
    assert [each.split for each in samples] == ["train"] * 8 + ["test"] * 4
    assert (samples[5].key, samples[5].label) == ("data_batch_2/00001", 2)
    with importer("cifar").reader(source, {}) as reader:
        image = reader.read(str(samples[5].parts[0]))
    values = pickle.loads((source / "data_batch_2").read_bytes(), encoding="bytes")[b"data"][1]
    assert image.shape == (32, 32, 3)
    assert image[0, 1].tolist() == [values[1], values[1025], values[2049]]


def test_cifar_100_has_fine_and_coarse_classes(tmp_path):
    data = np.zeros((2, 3072), np.uint8)
    content = {b"data": data, b"fine_labels": [1, 0], b"coarse_labels": [0, 0]}
    for name in ("train", "test"):
        (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
    meta = {b"fine_label_names": [b"apple", b"bear"], b"coarse_label_names": [b"living"]}
    (tmp_path / "meta").write_bytes(pickle.dumps(meta, protocol=2))
    guess = guess_format(tmp_path)
    assert (guess.format, "fine and coarse" in guess.reason) == ("cifar", True)
    assert [walked(tmp_path, labels=name)[2].class_names for name in ("fine", "coarse")] == [
        ("apple", "bear"),
        ("living",),
    ]
    assert [each.label for each in walked(tmp_path)[0]] == [1, 0, 1, 0]


@ANY
@given(labels=st.lists(st.integers(-2, 4) | st.none(), min_size=1, max_size=6))
def test_labels_in_are_samples_out_and_samples_lost(labels):
    with tempfile.TemporaryDirectory() as folder:
        samples, problems, _ = walked(cifar10(Path(folder), [0, *labels]))
    assert len(samples) + sum(problem.left_out for problem in problems) == 3 * (1 + len(labels))
    assert {problem.kind for problem in problems} <= {"unknown-class"}


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("made-by-a-pickle",)


def test_nothing_in_a_batch_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = cifar10(tmp_path / "cifar")
    (source / "data_batch_1").write_bytes(pickle.dumps({b"data": Harmful(), b"labels": [1]}, protocol=2))
    with pytest.raises(DataError, match="plain data"):
        walked(source)
    assert not (tmp_path / "made-by-a-pickle").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({b"data": np.zeros((4, 3000), np.uint8), b"labels": [0] * 4}, "uint8 of (4, 3000)"),
        ({b"data": np.zeros((4, 3072), np.uint8), b"labels": [0] * 3}, "4 images and 3 labels"),
        ({b"data": np.zeros((4, 3072), np.uint8)}, "4 images and no labels"),
        ([1, 2], "list"),
    ],
)
def test_a_batch_of_another_form_is_refused(tmp_path, content, said):
    source = cifar10(tmp_path / "cifar")
    (source / "data_batch_1").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(DataError) as error:
        walked(source)
    assert said in str(error.value)


def test_classes_without_names_are_numbers(tmp_path):
    assert walked(cifar10(tmp_path / "cifar", names=()))[2].class_names == ("0", "1", "2")


# ---- Roboflow's table of classes


@pytest.mark.parametrize("several", [False, True])
def test_the_table_of_classes_of_each_split_is_read(tmp_path, several):
    for split in ("train", "valid", "test"):
        lines = ["filename, cat, red dog"]
        for number in range(3):
            save_picture(tmp_path / split / f"{number}_jpg.rf.0a.jpg", 20, 20)
            marks = "1, 1" if several and number == 0 else f"{number % 2}, {1 - number % 2}"
            lines.append(f"{number}_jpg.rf.0a.jpg, {marks}")
        (tmp_path / split / "_classes.csv").write_text("\n".join(lines) + "\n")
    guess = guess_format(tmp_path)
    found = scan(importer(guess.format), tmp_path, **guess.options)
    assert found.schema.kind == ("image-regression" if several else "image-classification")
    assert found.schema.class_names == ("cat", "red dog")
    assert sorted(found.splits().values()) == ["test"] * 3 + ["train"] * 3 + ["val"] * 3
    labels = [sample.label for key, sample in sorted(found.samples.items()) if key.startswith("train/")]
    assert labels == ([[1, 1], [1, 0], [0, 1]] if several else [1, 0, 1])
    assert found.problems == []
