"""What is found in a source before a dataset is made of it: the same as afterwards, and a part of what is large."""

from __future__ import annotations

import base64
import json
import shutil

import cv2
import numpy as np
import pytest

from tests.waiting import take_time
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.errors import DataError, SpecError
from ziggurat.records.run_lengths import run_lengths
from ziggurat.specs import parse_spec
from ziggurat.worker.commands.dataset_previews import OVER, Deadline, preview_dataset
from ziggurat.worker.dataset_job import creation_request


@pytest.fixture
def pets(tmp_path):
    """A folder with 20 images of two classes, and a file that is none."""
    source = tmp_path / "pets"
    for number in range(20):
        path = source / ("cat", "dog")[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((20, 30, 3), 10 * number, np.uint8))
    (source / "dog" / "broken.png").write_bytes(b"nothing")
    (source / "loose.png").write_bytes(b"x")
    return source


@pytest.fixture
def look(tmp_path):
    """Look at a source in this process."""

    def call(source, *, samples=100, at_most=10_000, time_limit_s=30.0, **fields):
        folder = tmp_path / f"look{len(list(tmp_path.glob('look*')))}"
        folder.mkdir()
        spec = {"kind": "dataset", "version": 1, "source": str(source), **fields}
        numbers = {"samples": samples, "at_most": at_most, "time_limit_s": time_limit_s}
        return preview_dataset({"spec": spec, "folder": str(folder), **numbers})

    return call


def test_a_preview_tells_what_the_data_set_will_be(look, pets, tmp_path):
    fields = {"source": str(pets), "splits": {"val_share": 0.2, "test_share": 0.1}, "seed": 4, "workers": 0}
    found = look(pets, **{name: value for name, value in fields.items() if name != "source"})

    made = create_dataset(creation_request(parse_spec({"kind": "dataset", "version": 1, **fields})), tmp_path / "made")
    counts = found["counts"]
    unreadable = sum(each["kind"] == "unreadable" for each in found["problems"])
    assert (found["format"], found["title"], found["kind"]) == ("class_folders", "Class folders", made.schema.kind)
    assert 0 < found["confidence"] <= 1
    assert counts["is_complete"] is True
    assert (counts["total"], unreadable) == (21, 1)
    assert counts["train"] + counts["val"] + counts["test"] == 21
    assert sum(note.count for note in made.splits.values()) == 20
    assert abs(counts["train"] - made.splits["train"].count) <= 1
    assert [each["name"] for each in found["classes"]] == list(made.schema.class_names) == ["cat", "dog"]
    assert [each["count"] for each in found["classes"]] == [10, 11]
    assert {(each["kind"], each["key"]) for each in found["problems"]} == {
        ("unreadable", "dog/broken.png"),
        ("no-label", "loose.png"),
    }


def test_samples_are_pictures_as_they_would_be_stored(look, pets):
    found = look(pets, samples=4, size=[10, 12], channels=1)

    assert len(found["samples"]) == 3  # the last of the four is broken
    assert found["problems"][0]["key"] == "dog/broken.png"
    one = found["samples"][0]
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(one["png"]), np.uint8), cv2.IMREAD_UNCHANGED)
    assert (one["key"], one["label"], one["text"]) == ("cat/00.png", "cat", None)
    assert (one["width_px"], one["height_px"], picture.shape) == (12, 10, (10, 12))


def test_a_large_source_is_looked_at_up_to_a_number(look, tmp_path):
    content = cv2.imencode(".png", np.zeros((2, 2), np.uint8))[1].tobytes()
    for name in ("a", "b", "c"):
        (tmp_path / "many" / name).mkdir(parents=True)
        for number in range(500):
            (tmp_path / "many" / name / f"{number:04d}.png").write_bytes(content)

    part = look(tmp_path / "many", at_most=700, samples=5)
    whole = look(tmp_path / "many", at_most=1500, samples=5)

    assert (part["counts"]["total"], part["counts"]["is_complete"]) == (700, False)
    assert [(each["name"], each["count"]) for each in part["classes"]] == [("a", 500), ("b", 200)]
    assert len(part["samples"]) == 5
    assert part["warnings"] == ["Only a part of the source was looked at: the first 700 samples."]
    assert (whole["counts"]["total"], whole["counts"]["is_complete"]) == (1500, True)


def test_no_time_is_no_error(look, pets):
    found = look(pets, format="class_folders", time_limit_s=0.0)

    assert found["counts"] == {"train": 0, "val": 0, "test": 0, "total": 0, "is_complete": False}
    assert found["samples"] == []


def test_an_archive_is_looked_into(look, pets, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", pets.parent, pets.name)

    found = look(archive)

    assert found["counts"]["total"] == 21
    assert [each["name"] for each in found["classes"]] == ["cat", "dog"]


def test_tables_and_texts_are_shown_as_text(look, tmp_path):
    rows = "\n".join(f"{number},{number * 2},{'yes' if number % 2 else 'no'}" for number in range(30))
    (tmp_path / "rows.csv").write_text(f"size,weight,good\n{rows}\n")

    found = look(tmp_path / "rows.csv", samples=2)

    assert found["kind"] == "table"
    assert found["samples"][0]["png"] is None
    assert "size: 0" in found["samples"][0]["text"]


def test_boxes_are_counted_in_words(look, tmp_path):
    cv2.imwrite(str(tmp_path / "one.png"), np.zeros((20, 20, 3), np.uint8))
    content = {
        "images": [{"id": 1, "file_name": "one.png", "width": 20, "height": 20}],
        "annotations": [
            {
                "id": number,
                "image_id": 1,
                "category_id": 1 + number // 2,
                "bbox": [1, 1, 5, 5],
                "area": 25,
                "iscrowd": 0,
            }
            for number in range(3)
        ],
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "bus"}],
    }
    (tmp_path / "instances.json").write_text(json.dumps(content))

    found = look(tmp_path / "instances.json", format="coco")

    assert [each["label"] for each in found["samples"]] == ["2 × car, bus"]
    assert {each["name"]: each["count"] for each in found["classes"]} == {"car": 2, "bus": 1}


def test_a_wrong_option_or_format_is_named_by_its_field(look, pets):
    with pytest.raises(SpecError) as option:
        look(pets, format="class_folders", options={"min_per_clas": 1})
    assert option.value.details["field"] == "options.min_per_clas"
    assert "Did you mean `min_per_class`" in option.value.advice
    with pytest.raises(SpecError) as kind:
        look(pets, options={"min_per_class": "two"})
    assert kind.value.details["field"] == "options.min_per_class"
    with pytest.raises(SpecError) as named:
        look(pets, format="class_folder")
    assert named.value.details["field"] == "format"


def test_what_is_not_here_is_said(look, tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        look(tmp_path / "nothing")
    with pytest.raises(DataError, match="before it is fetched"):
        look("https://example.org/pets.zip")


def test_near_duplicates_are_left_for_later(look, pets):
    found = look(pets, splits={"method": "cluster"})

    assert found["counts"]["total"] == 21
    assert any("look alike" in warning for warning in found["warnings"])


def test_preview_says_whether_splits_are_random(look, pets):
    assert look(pets)["is_random"] is True
    assert look(pets, splits={"method": "cluster"})["is_random"] is False
    assert look(pets, splits={"method": "stem", "pattern": "(..)"})["is_random"] is False
    for split in ("train", "val"):
        shutil.copytree(pets / "cat", pets.parent / "divided" / split / "cat")
        shutil.copytree(pets / "dog", pets.parent / "divided" / split / "dog")
    assert look(pets.parent / "divided")["is_random"] is False
    assert look(pets.parent / "divided", splits={"test_share": 0.2})["is_random"] is True


def test_a_rule_that_cannot_be_is_a_warning(look, pets):
    found = look(pets, splits={"method": "time"})

    assert (found["counts"]["train"], found["counts"]["total"]) == (0, 21)
    assert any("needs samples with a time" in warning for warning in found["warnings"])


def test_a_call_that_never_ends_is_ended():
    def forever():
        while True:
            take_time(0.01)

    with Deadline(0.2) as deadline:
        assert deadline.call(len, "abc") == 3
        assert deadline.call(forever) is OVER
        assert deadline.call(len, "abc") is OVER
        assert deadline.is_over


def test_a_request_for_creation_is_checked_as_one(look, pets):
    assert CreationRequest(source=str(pets), name="x").encoding == "original"
    with pytest.raises(SpecError) as wrong:
        look(pets, splits={"val_share": 2})
    assert wrong.value.details["field"] == "splits.val_share"


def _coco(root, boxes, size=(40, 60)):
    """Write a COCO source of one image, (height, width), with boxes of (class number, left, top, width, height)."""
    (root / "images").mkdir(parents=True)
    cv2.imwrite(str(root / "images" / "1.png"), np.full((*size, 3), 90, np.uint8))
    content = {
        "images": [{"id": 1, "file_name": "1.png", "height": size[0], "width": size[1]}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": number, "image_id": 1, "category_id": name, "bbox": box, "area": 1, "iscrowd": 0}
            for number, (name, *box) in enumerate(boxes, 1)
        ],
    }
    (root / "annotations.json").write_text(json.dumps(content))
    return root


def test_a_part_of_a_source_keeps_the_kind_of_the_whole(look, tmp_path):
    source = _coco(tmp_path / "coco", [(1, 10, 5, 20, 30)])
    content = json.loads((source / "annotations.json").read_text())
    for name in ("images", "annotations"):
        content[name].append({**content[name][0], "id": 2, "image_id": 2, "file_name": "2.png"})
    (source / "annotations.json").write_text(json.dumps(content))
    shutil.copy(source / "images" / "1.png", source / "images" / "2.png")

    part = look(source, at_most=1)

    assert not part["counts"]["is_complete"]
    assert part["kind"] == look(source)["kind"] == "detection"
    assert part["classes"] == [], "their names are known at the end of the walk"
    assert part["samples"][0]["png"]
    assert part["samples"][0]["objects"][0]["box"] == [10, 5, 30, 35]


def test_boxes_are_shown_in_pixels_of_the_stored_picture(look, tmp_path):
    source = _coco(tmp_path / "coco", [(1, 10, 5, 20, 30), (2, 0, 0, 60, 40)])

    (plain,) = look(source)["samples"]
    (fitted,) = look(source, size=[20, 30], resize_mode="squash")["samples"]

    seen = [(each["class"], each["name"], each["box"]) for each in plain["objects"]]
    assert seen == [(0, "cat", [10, 5, 30, 35]), (1, "dog", [0, 0, 60, 40])]
    assert (plain["width_px"], plain["height_px"], plain["more_objects"], plain["mask_png"]) == (60, 40, 0, None)
    assert [each["box"] for each in fitted["objects"]] == [[5, 2.5, 15, 17.5], [0, 0, 30, 20]]
    assert (fitted["width_px"], fitted["height_px"]) == (30, 20)


def test_of_very_many_boxes_the_first_are_shown(look, tmp_path):
    (sample,) = look(_coco(tmp_path / "coco", [(1, 1, 1, 5, 5)] * 203))["samples"]

    assert (len(sample["objects"]), sample["more_objects"], sample["label"]) == (200, 3, "203 × cat")


def test_boxes_of_yolo_are_shown(look, tmp_path):
    source = tmp_path / "yolo"
    for name in ("images", "labels"):
        (source / name / "train").mkdir(parents=True)
    cv2.imwrite(str(source / "images" / "train" / "1.png"), np.full((40, 60, 3), 90, np.uint8))
    (source / "labels" / "train" / "1.txt").write_text("1 0.5 0.5 0.5 0.25\n")
    (source / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/train\nnames: [cat, dog]\n")

    sample = look(source)["samples"][0]

    assert [(each["name"], each["box"]) for each in sample["objects"]] == [("dog", [15, 15, 45, 25])]


def test_masks_are_class_numbers_as_large_as_the_picture(look, tmp_path):
    source = tmp_path / "masks"
    mask = np.zeros((200, 400), np.uint8)
    mask[:, 200:] = 2
    for name, content in (("images", np.full((200, 400, 3), 90, np.uint8)), ("masks", mask)):
        (source / name).mkdir(parents=True)
        cv2.imwrite(str(source / name / "1.png"), content)

    found = look(source, format="masks")
    (sample,) = found["samples"]

    assert (found["kind"], found["colours"], found["ignore_class"]) == ("segmentation", [], None)
    shown = cv2.imdecode(np.frombuffer(base64.b64decode(sample["mask_png"]), np.uint8), cv2.IMREAD_UNCHANGED)
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(sample["png"]), np.uint8), cv2.IMREAD_UNCHANGED)
    assert shown.shape == picture.shape[:2] == (80, 160)
    assert (shown[:, :79].max(), shown[:, 81:].min(), shown.max(), sample["objects"]) == (0, 1, 1, None)


def _masks(root, **masks):
    """Write images of 8 x 8 pixels with masks: arrays, or bytes of a file."""
    for name in ("images", "masks"):
        (root / name).mkdir(parents=True)
    for name, mask in masks.items():
        cv2.imwrite(str(root / "images" / f"{name}.png"), np.zeros((8, 8, 3), np.uint8))
        content = mask if isinstance(mask, bytes) else cv2.imencode(".png", mask)[1].tobytes()
        (root / "masks" / f"{name}.png").write_bytes(content)
    return root


def test_unreadable_masks_are_problems_and_leave_pictures(look, tmp_path):
    good = np.arange(64, dtype=np.uint8).reshape(8, 8) % 2
    cut_off = cv2.imencode(".png", np.random.default_rng(0).integers(0, 2, (8, 8), np.uint8))[1].tobytes()[:-30]
    source = _masks(
        tmp_path / "masks",
        a=good,
        b=cut_off,
        c=good[:4, :4],
        d=np.full((8, 8, 3), (0, 0, 200), np.uint8),
        e=b"no image",
    )

    found = look(source, format="masks", samples=9)

    assert [sample["png"] is not None for sample in found["samples"]] == [True] * 5
    assert [sample["mask_png"] is not None for sample in found["samples"]] == [True, False, False, False, False]
    assert {each["key"]: each["kind"] for each in found["problems"]} == dict.fromkeys(
        ("images/b.png", "images/c.png", "images/d.png", "images/e.png"), "unreadable"
    )
    assert [each["reason"] for each in found["problems"] if each["key"] == "images/c.png"] == [
        "Datapoint 'images/c.png' cannot be used: "
        "its mask has height and width (4, 4), the image (8, 8): they must be the same."
    ]
    assert found["problem_counts"] == {"unreadable": 4}


def test_values_without_a_class_are_a_problem_of_a_shown_mask(look, tmp_path):
    strange = np.zeros((8, 8), np.uint8)
    strange[0, :3] = 1, 7, 255
    source = _masks(tmp_path / "masks", a=np.ones((8, 8), np.uint8), b=strange)
    (source / "names.txt").write_text("nothing\nroad\n")
    options = {"classes": "names.txt", "ignore_class": 255, "mode": "index"}

    found = look(source, format="masks", options=options)

    assert [sample["mask_png"] is not None for sample in found["samples"]] == [True, True]
    counts = {each["name"]: each["count"] for each in found["classes"]}
    assert (found["masks"], counts) == (2, {"nothing": 1, "road": 2}), "classes are counted in the masks that are shown"
    shown, lost = found["problems"]
    assert (shown["kind"], shown["key"]) == ("unknown-mask-value", "images/b.png")
    assert shown["reason"] == "Its mask has values that no class has: 7."
    assert (lost["kind"], lost["key"]) == ("unknown-class", "masks/b.png")
    assert found["losses"][0]["unit"] == "names"


def test_masks_of_objects_are_in_pixels_of_the_stored_picture(look, tmp_path):
    source = _coco(tmp_path / "coco", [(1, 10, 5, 20, 30), (2, 0, 0, 60, 40)])
    content = json.loads((source / "annotations.json").read_text())
    mask = np.zeros((40, 60), np.uint8)
    mask[6:20, 10:30] = 1
    content["annotations"][0]["segmentation"] = run_lengths(mask)
    content["annotations"][1]["segmentation"] = {"size": [40, 60], "counts": "nonsense"}
    (source / "annotations.json").write_text(json.dumps(content))

    plain, fitted = look(source), look(source, size=[20, 30], resize_mode="squash")

    assert [each.get("mask") for each in plain["samples"][0]["objects"]] == [run_lengths(mask), None]
    shown = [each.get("mask") for each in fitted["samples"][0]["objects"]]
    assert shown == [run_lengths(mask[::2, ::2]), None]
    assert [(each["kind"], each["reason"]) for each in plain["problems"]] == [
        ("bad-mask", "annotation 2: its run lengths do not fit their size.")
    ]


def test_an_unclear_format_is_an_error_with_options(look, pets):
    loose = pets.parent / "loose"
    shutil.copytree(pets / "cat", loose)
    with pytest.raises(DataError, match="Choose one with --format") as caught:
        look(loose)
    assert [each["format"] for each in caught.value.details["options"]] == ["class_folders"]
    assert look(loose, format="class_folders", options={"classes": "none"})["counts"]["total"] == 10


def test_the_folder_that_alone_fits_is_looked_at(look, pets):
    above = pets.parent / "above"
    shutil.move(pets, above / "pets")
    found = look(above)
    assert (found["format"], found["folder"], found["counts"]["total"]) == ("class_folders", "pets", 21)


def test_a_column_that_determines_the_target_is_a_warning(look, tmp_path):
    rows = [f"{at % 2},{at},{('no', 'yes')[at % 2]}" for at in range(20)]
    (tmp_path / "lives.csv").write_text("\n".join(["survived,age,alive", *rows]) + "\n")
    assert any("`alive` determines the target `survived`" in each for each in look(tmp_path / "lives.csv")["warnings"])


@pytest.mark.parametrize(
    ("last", "options", "is_proposed"), [("gray", {}, True), ("color", {}, False), ("gray", {"channels": 3}, False)]
)
def test_gray_in_three_channels_is_proposed_as_gray(look, tmp_path, last, options, is_proposed):
    for number in range(4):
        pixels = np.repeat(np.full((8, 8, 1), 20 * number, np.uint8), 3, axis=2)
        if number == 3 and last == "color":
            pixels[0, 0] = 1, 2, 3
        folder = tmp_path / "images" / f"class {number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / f"{number}.png"), pixels)

    found = look(tmp_path / "images", **options)

    assert any("`channels=1`" in each for each in found["warnings"]) == is_proposed
