"""Nothing of COCO's files is lost without a count: other spellings are read, and what cannot be read is told."""

import json

import numpy as np
import pytest
from detection_sources import save_picture, save_text, scan
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.errors import DataError
from ziggurat.records.run_lengths import run_lengths

COCO = CocoImporter()
CATS = [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}]


def entry(number, name, **fields):
    return {"id": number, "file_name": name, "width": 100, "height": 80, **fields}


def one(picture=1, category=3, bbox=(10, 20, 30, 40), **fields):
    return {"image_id": picture, "category_id": category, "bbox": bbox, **fields}


def save(folder, images, annotations, categories=CATS, name="_annotations.coco.json"):
    content = {"images": images, "annotations": annotations, "categories": categories}
    save_text(folder / name, json.dumps(content))


def lost(found):
    return sum(problem.objects for problem in found.problems)


@pytest.mark.parametrize("number", [1, 1.0, "1", "1.0", " 1 "])
def test_ids_of_any_spelling_are_the_same_number(tmp_path, number):
    save_picture(tmp_path / "a.jpg")
    save(tmp_path, [entry(1, "a.jpg")], [one(number, number)], [{"id": 1.0, "name": "cat"}])
    found = scan(COCO, tmp_path)
    assert (found.boxes("a.jpg"), found.problems) == ([(10, 20, 40, 60)], [])
    assert found.schema.details["coco"]["categories"] == [{"id": 1, "name": "cat"}]


def test_ids_with_leading_zeros_are_names(tmp_path):
    for name in "ab":
        save_picture(tmp_path / f"{name}.jpg")
    save(tmp_path, [entry("01", "a.jpg"), entry(1, "b.jpg")], [one("01"), one("1", 7)])
    found = scan(COCO, tmp_path)
    assert (found.names("a.jpg"), found.names("b.jpg")) == (["cat"], ["dog"])


def test_numbers_of_boxes_and_sizes_may_be_texts(tmp_path):
    save_picture(tmp_path / "a.jpg")
    crowd = one(bbox=["1", "2", "30", "40.5"], iscrowd="0")
    save(tmp_path, [entry(1, "a.jpg", width="100", height=80.0)], [crowd])
    found = scan(COCO, tmp_path)
    assert (found.boxes("a.jpg"), found.objects("a.jpg")[0].crowd, found.problems) == ([(1, 2, 31, 42.5)], False, [])


@pytest.mark.parametrize("bbox", [None, [], [0, 0, 0, 0]])
@pytest.mark.parametrize("is_mask", [False, True])
def test_an_outline_or_a_mask_gives_the_box(tmp_path, bbox, is_mask):
    mask = np.zeros((80, 100), np.uint8)
    mask[20:60, 10:40] = 1
    outline = run_lengths(mask) if is_mask else [[10, 20, 40, 20, 40, 60]]
    save_picture(tmp_path / "a.jpg")
    save(tmp_path, [entry(1, "a.jpg")], [one(bbox=bbox, segmentation=outline)])
    found = scan(COCO, tmp_path)
    assert found.boxes("a.jpg") == [(10, 20, 40, 60)]
    assert lost(found) == 0


def test_categories_of_one_name_are_one_class_and_told(tmp_path):
    save_picture(tmp_path / "a.jpg")
    save(tmp_path, [entry(1, "a.jpg")], [one(1, 1), one(1, 2)], [{"id": 1, "name": "fish"}, {"id": 2, "name": "fish"}])
    found = scan(COCO, tmp_path)
    assert (found.schema.class_names, found.names("a.jpg")) == (("fish",), ["fish", "fish"])
    assert [(each.kind, each.reason) for each in found.problems] == [
        ("same-name", "2 classes are called 'fish': they are one class.")
    ]


def test_an_image_listed_twice_keeps_both_sets_of_objects(tmp_path):
    save_picture(tmp_path / "a.jpg")
    save(tmp_path, [entry(1, "a.jpg"), entry(2, "a.jpg")], [one(1), one(2, 7), one(2, 3)])
    found = scan(COCO, tmp_path)
    assert found.names("a.jpg") == ["cat", "dog"]  # the third is the first again
    assert [(each.kind, each.left_out) for each in found.problems] == [("duplicate-key", False)]


def test_an_image_of_two_files_is_never_trained_on(tmp_path):
    save_picture(tmp_path / "images/a.jpg")
    save(tmp_path, [entry(1, "a.jpg")], [one(1)], name="train.json")
    save(tmp_path, [entry(5, "a.jpg")], [one(5, 7)], name="val.json")
    found = scan(COCO, tmp_path)
    assert (found.splits(), found.names("images/a.jpg")) == ({"images/a.jpg": "val"}, ["cat", "dog"])
    assert found.kinds() == ["two-splits", "duplicate-key"]


def test_an_id_of_two_images_loses_the_second_and_counts_it(tmp_path):
    for name in "ab":
        save_picture(tmp_path / f"{name}.jpg")
    save(tmp_path, [entry(1, "a.jpg"), entry("1", "b.jpg"), entry(1, "a.jpg")], [one(1)])
    found = scan(COCO, tmp_path)
    assert list(found.samples) == ["a.jpg"]
    assert [(each.key, each.left_out, each.why) for each in found.problems] == [
        ("b.jpg", True, "another image has their id")
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"caption": "A cat."}, "The source has COCO captions: no task learns from these yet."),
        (
            {"keypoints": [1, 2, 2], "num_keypoints": 1},
            "The source has COCO key points without boxes: no task learns from these yet.",
        ),
        ({"category_id": 3}, "The source has COCO labels of whole images: they are not read from JSON."),
    ],
)
def test_files_without_any_box_are_refused_by_name(tmp_path, fields, said):
    save_picture(tmp_path / "a.jpg")
    save(tmp_path, [entry(1, "a.jpg")], [{"id": 1, "image_id": 1, **fields}])
    with pytest.raises(DataError) as caught:
        scan(COCO, tmp_path)
    assert caught.value.rule == said


def test_the_segments_of_a_panoptic_file_are_boxes(tmp_path):
    save_picture(tmp_path / "a.jpg")
    segments = [{"id": 9, "category_id": 7, "bbox": [1, 2, 30, 40], "area": 5, "iscrowd": 0}]
    save(tmp_path, [entry(1, "a.jpg")], [{"image_id": 1, "file_name": "a.png", "segments_info": segments}])
    found = scan(COCO, tmp_path)
    assert (found.names("a.jpg"), found.boxes("a.jpg")) == (["dog"], [(1, 2, 31, 42)])


def test_files_beside_instances_are_left_aside_by_name_only(tmp_path):
    for name in "ab":
        save_picture(tmp_path / f"images/{name}.jpg")
    save(tmp_path, [entry(1, "a.jpg")], [one(1)], name="instances_train.json")
    save(tmp_path, [entry(1, "b.jpg")], [one(1)], name="val.json")
    save(tmp_path, [entry(1, "b.jpg")], [{"image_id": 1, "caption": "x"}], name="captions_val.json")
    assert scan(COCO, tmp_path).splits() == {"images/a.jpg": "train", "images/b.jpg": "val"}


def test_what_is_lost_has_its_class_and_split(tmp_path):
    save_picture(tmp_path / "train/a.jpg")
    save(
        tmp_path / "train",
        [entry(1, "a.jpg"), entry(2, "gone.jpg")],
        [one(1, 3, [1, 1, 0, 5]), one(1, 7, [1, 2]), one(2, 3), one(2, 7), one(2, 7), one(2, 7, iscrowd=1), one(1, 3)],
    )
    found = scan(COCO, tmp_path)
    assert [(each.kind, each.class_name, each.objects, each.split) for each in found.problems] == [
        ("zero-size-box", "cat", 1, ""),
        ("bad-box", "dog", 1, ""),
        ("no-picture", "cat", 1, "train"),
        ("no-picture", "dog", 2, "train"),
    ]
    assert [each.left_out for each in found.problems] == [False, False, True, False]


ids = st.sampled_from([1, 1.0, "1", 2, "2.0", 3, "x", None, 9])
values = st.one_of(st.integers(-50, 200), st.sampled_from([0.5, "7", None, float("inf")]))
annotations = st.builds(
    one, ids, st.sampled_from([3, "3", 7.0, 8, None]), st.lists(values, min_size=3, max_size=5), iscrowd=st.just(0)
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(written=st.lists(annotations, min_size=1, max_size=8))
def test_objects_in_are_objects_out_and_objects_lost(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("coco")
    for name in "ab":
        save_picture(folder / f"{name}.jpg")
    save(folder, [entry(1, "a.jpg"), entry(2, "b.jpg"), entry(3, "gone.jpg")], written)
    found = scan(COCO, folder)
    assert found.count() + lost(found) == len(written)
