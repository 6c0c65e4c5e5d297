"""A check finds samples that are there twice, with what label and in which split, and what leaks."""

import json

import pytest
from small_datasets_for_checks import dataset_of, frames, jpeg, picture, shared_files

from ziggurat.datasets.checks import CheckLimits, check_dataset


def points(*pictures_and_classes, name="p"):
    """Return samples of (seed of an image, class)."""
    return [(f"{name}{n}.jpg", (jpeg(picture(seed)),), label) for n, (seed, label) in enumerate(pictures_and_classes)]


@pytest.fixture
def doubtful(tmp_path):
    train = points((1, 0), (2, 1), (1, 0), (3, 1), (4, 0), (5, 0), name="train")
    val = points((4, 0), (3, 0), (6, 1), name="val")
    with dataset_of(tmp_path / "set", {"train": train, "val": val}, class_names=("cat", "dog")) as dataset:
        yield dataset


def test_a_sample_that_is_twice_in_its_split_is_found(doubtful):
    finding = check_dataset(doubtful)["duplicate"]
    assert (finding.severity, finding.count) == ("warning", 1)
    assert finding.exclude == {"train": (2,)}
    (case,) = finding.cases
    assert (case.key, case.split, case.row) == ("train2.jpg", "train", 2)
    assert case.note == "equal to train0.jpg (train)"


def test_of_duplicates_across_splits_the_training_one_goes(doubtful):
    finding = check_dataset(doubtful)["duplicate-across-splits"]
    assert (finding.severity, finding.count) == ("error", 4)
    assert finding.exclude == {"train": (3, 4)}
    assert [(each.key, each.note) for each in finding.cases] == [
        ("train3.jpg", "equal to val1.jpg (val)"),
        ("train4.jpg", "equal to val0.jpg (val)"),
        ("val0.jpg", "equal to train4.jpg (train)"),
        ("val1.jpg", "equal to train3.jpg (train)"),
    ]


def test_duplicates_with_different_labels_are_errors(doubtful):
    finding = check_dataset(doubtful)["duplicate-with-other-label"]
    assert finding.count == 2
    assert finding.exclude == {"train": (3,), "val": (1,)}
    assert finding.text == "2 samples have the content of another sample, but not its label."


def test_leaving_out_what_findings_say_mends_them(doubtful, tmp_path):
    report = check_dataset(doubtful)
    gone = {
        (split, row)
        for kind in ("duplicate", "duplicate-across-splits", "duplicate-with-other-label")
        for split, rows in report[kind].exclude.items()
        for row in rows
    }
    kept = {
        split: [(p.key, p.parts, p.label) for p in doubtful.samples(split) if (split, p.row) not in gone]
        for split in doubtful.splits
    }
    with dataset_of(tmp_path / "mended", kept, class_names=("cat", "dog")) as mended:
        kinds = {finding.kind for finding in check_dataset(mended).findings}
    assert not any(kind.startswith(("duplicate", "near", "leak")) for kind in kinds)


def test_near_duplicates_and_leaks_name_what_they_are_like(tmp_path):
    clip = frames(1, 4)
    train = [(f"f{n}.jpg", (jpeg(clip[n]),), 0) for n in (0, 1)] + points((9, 0), (10, 1))
    val = [(f"f{n}.jpg", (jpeg(clip[n]),), 0) for n in (2, 3)] + points((11, 1), (12, 1), name="val")
    with dataset_of(tmp_path / "set", {"train": train, "val": val}) as dataset:
        report = check_dataset(dataset)
        strict = check_dataset(dataset, limits=CheckLimits(max_distance=0))
    near, leak = report["near-duplicate"], report["leak"]
    assert near.exclude == {"train": (1,), "val": (0, 1)}
    assert near.cases[1].note == "like f0.jpg (train)"
    assert leak.exclude == {"val": (0, 1)}
    assert leak.cases[0].note.startswith("near-duplicate of f")
    assert leak.text.startswith("This split leaks: 50.0% of the validation samples have a near duplicate in training")
    assert "duplicate" not in report
    assert strict["near-duplicate"].count <= near.count


def test_near_duplicates_with_other_labels_are_to_be_looked_at(tmp_path):
    clip = frames(2, 2)
    train = [("a.jpg", (jpeg(clip[0]),), 0), ("b.jpg", (jpeg(clip[1]),), 1), *points((9, 0))]
    with dataset_of(tmp_path / "set", {"train": train}) as dataset:
        finding = check_dataset(dataset)["near-duplicate-with-other-label"]
    assert finding.severity == "warning"
    assert [str(case) for case in finding.cases] == [
        "train 0 a.jpg like b.jpg (train)",
        "train 1 b.jpg like a.jpg (train)",
    ]


def test_boxes_that_were_drawn_anew_are_the_same_label(tmp_path):
    def labelled(number, *boxes):
        return f"{number}.jpg", (jpeg(picture(1)),), [{"class": c, "box": list(box)} for c, *box in boxes]

    train = [labelled(0, (0, 1, 2, 50, 60)), labelled(1, (0, 2, 2, 51, 60)), labelled(2, (1, 1, 2, 50, 60))]
    with dataset_of(tmp_path / "two", {"train": train[:2]}, kind="detection") as dataset:
        assert "duplicate-with-other-label" not in check_dataset(dataset)
    with dataset_of(tmp_path / "three", {"train": train}, kind="detection") as dataset:
        assert check_dataset(dataset)["duplicate-with-other-label"].count == 3


def test_a_clean_set_has_no_finding(tmp_path):
    splits = {"train": points(*((n, n % 2) for n in range(24))), "val": points(*((n, n % 2) for n in range(30, 36)))}
    with dataset_of(tmp_path / "set", splits, class_names=("cat", "dog")) as dataset:
        report = check_dataset(dataset, verify=True)
    assert report.findings == ()
    assert report.as_text() == "set: 30 samples, 0 findings (every record was read)."


def test_a_report_is_json_and_text(doubtful):
    report = check_dataset(doubtful, limits=CheckLimits(most_cases=1))
    content = json.loads(json.dumps(report.as_json()))
    assert content["counts"]["error"] == 2
    assert content["dataset_id"] == doubtful.manifest.id
    assert [each["severity"] for each in content["findings"]] == sorted(
        (each["severity"] for each in content["findings"]), key=("error", "warning", "note").index
    )
    assert all(len(each["cases"]) <= 1 for each in content["findings"])
    text = report.as_text()
    assert "error: duplicate-with-other-label (2): 2 samples have the content" in text
    assert "  train 3 train3.jpg equal to val1.jpg (val)" in text


def test_without_hashes_only_equal_content_is_found(tmp_path):
    splits = {"train": points((1, 0), (1, 0), (2, 0))}
    with dataset_of(tmp_path / "set", splits, hashes=False) as dataset:
        report = check_dataset(dataset)
    assert report["duplicate"].count == 1
    assert "near-duplicate" not in report


def test_a_check_says_that_hashes_are_missing(tmp_path):
    clip = [jpeg(frame) for frame in frames(1, 4)]
    splits = {
        "train": [(f"{n}.jpg", (clip[n],), 0) for n in range(3)],
        "val": [("3.jpg", (clip[3],), 0)],
    }
    with dataset_of(tmp_path / "set", splits, hashes=False) as dataset:
        report, verified = check_dataset(dataset), check_dataset(dataset, verify=True)
    assert report["no-picture-hash"].text == (
        "4 samples have no perceptual hash: near duplicates and their leaks are not found."
    )
    assert (report["no-picture-hash"].severity, report["no-picture-hash"].exclude) == ("note", {})
    assert "leak" not in report
    assert "no-picture-hash" not in verified
    assert verified["leak"].count == 1


def test_texts_lack_no_hashes(tmp_path):
    splits = {"train": [("1", (b"some text",), 0), ("2", (b"more text",), 1)]}
    with dataset_of(tmp_path / "set", splits, kind="text-classification", readable=False) as dataset:
        assert "no-picture-hash" not in check_dataset(dataset)


def test_the_pictures_that_raccoon_has_twice_are_found(tmp_path):
    files = shared_files("raccoon-voc/images/*.jpg")
    samples = [(file.name, (file.read_bytes(),), [{"class": 0, "box": [0, 0, 9, 9]}]) for file in files]
    halves = {"train": samples[:100], "val": samples[100:]}
    with dataset_of(tmp_path / "raccoon", halves, kind="detection", class_names=("raccoon",)) as dataset:
        report = check_dataset(dataset)
    found = {
        name
        for kind in ("duplicate", "duplicate-across-splits", "near-duplicate")
        if kind in report
        for case in report[kind].cases
        for name in (case.key, case.note.split()[2] if kind[0] == "d" else case.note.split()[1])
    }
    numbers = {name.removeprefix("raccoon-").removesuffix(".jpg") for name in found}
    assert numbers >= {"11", "116", "21", "45", "65", "98", "83", "120", "50", "52", "74", "51", "85"}
