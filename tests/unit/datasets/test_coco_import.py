"""COCO's JSON files become samples with objects, whatever tool wrote them; what is wrong in them is listed."""

import json

import pytest
from detection_sources import confidence, save_picture, save_text, scan, shared

from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.errors import DataError, StateError

COCO = CocoImporter()


def annotation(number, picture, category, bbox, **fields):
    return {"id": number, "image_id": picture, "category_id": category, "bbox": bbox, **fields}


def save_json(path, images, annotations, categories=((3, "cat"), (7, "dog"))):
    content = {
        "images": [{"id": number, "file_name": name, "width": 100, "height": 80} for number, name in images],
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for number, name in categories],
    }
    save_text(path, json.dumps(content))


@pytest.fixture
def pets(tmp_path):
    for name in ("train/a.jpg", "train/b c.jpg", "val/a.jpg"):
        save_picture(tmp_path / name)
    save_json(
        tmp_path / "annotations/instances_train.json",
        [(1, "a.jpg"), (2, "b c.jpg")],
        [
            annotation(11, 1, 7, [10, 20, 30.5, 40], area=900, iscrowd=False, note="x"),
            annotation(12, 1, 3, [0, 0, 50, 60], segmentation=[[0, 0, 50, 0, 50, 60]], iscrowd=1),
        ],
    )
    save_json(tmp_path / "annotations/instances_val.json", [(1, "a.jpg")], [annotation(1, 1, 3, [1, 2, 3, 4])])
    return tmp_path


def test_category_ids_with_gaps_become_numbers_and_rest_stays(pets):
    found = scan(COCO, pets)
    assert found.schema.class_names == ("cat", "dog")
    assert [entry["id"] for entry in found.schema.details["coco"]["categories"]] == [3, 7]
    assert found.splits() == {"train/a.jpg": "train", "train/b c.jpg": "train", "val/a.jpg": "val"}
    dog, cats = found.objects("train/a.jpg")
    assert (dog.class_number, dog.box) == (1, (10, 20, 40.5, 60))
    assert dog.details == {"id": 11, "area": 900, "note": "x"}
    assert not dog.crowd
    assert cats.crowd
    assert cats.polygons == ((0, 0, 50, 0, 50, 60),)


def test_a_picture_without_annotation_is_a_sample_and_is_counted(pets):
    found = scan(COCO, pets)
    assert found.samples["train/b c.jpg"].label == []
    assert found.samples["train/b c.jpg"].size_bytes == (pets / "train/b c.jpg").stat().st_size
    assert [(problem.key, problem.kind, problem.left_out) for problem in found.problems] == [
        ("train/b c.jpg", "no-label", False)
    ]


def test_one_json_file_is_a_source_too(pets):
    file = pets / "annotations/instances_val.json"
    assert confidence(COCO, file) > 0.9
    found = scan(COCO, file)
    assert found.splits() == {"val/a.jpg": "val"}
    reader = COCO.reader(file, COCO.checked_options({}))
    assert reader.read("val/a.jpg") == (pets / "val/a.jpg").read_bytes()


def test_the_schema_is_there_when_the_scan_has_ended(pets):
    with pytest.raises(StateError, match="Iterate it to its end"):
        _ = COCO.scan(pets, COCO.checked_options({})).schema


def test_other_tools_put_a_json_file_beside_the_pictures(tmp_path):
    for split, name in (("train", "1.jpg"), ("valid", "1.jpg"), ("test", "2.png")):
        save_picture(tmp_path / split / name)
        save_json(tmp_path / split / "_annotations.coco.json", [(0, name)], [annotation(0, 0, 3, [1, 1, 5, 5])])
    assert scan(COCO, tmp_path).splits() == {"test/2.png": "test", "train/1.jpg": "train", "valid/1.jpg": "val"}


def test_key_points_and_captions_are_left_aside(pets):
    save_json(pets / "annotations/person_keypoints_val.json", [(1, "a.jpg")], [])
    assert len(scan(COCO, pets).samples) == 3


def test_files_that_disagree_on_ids_are_joined_by_names(tmp_path):
    for split, categories in (("train", ((1, "cat"), (2, "dog"))), ("val", ((1, "dog"), (2, "owl")))):
        save_picture(tmp_path / split / "a.jpg")
        save_json(tmp_path / f"{split}.json", [(1, "a.jpg")], [annotation(1, 1, 2, [1, 1, 5, 5])], categories)
    found = scan(COCO, tmp_path)
    assert found.schema.class_names == ("cat", "dog", "owl")
    assert found.names("train/a.jpg") == ["dog"]
    assert found.names("val/a.jpg") == ["owl"]


def test_what_cannot_be_right_is_listed_with_its_annotation(tmp_path):
    save_picture(tmp_path / "a.jpg")
    save_json(
        tmp_path / "train.json",
        [(1, "a.jpg"), (2, "gone.jpg"), (3, "../../secret.jpg"), (4, "a.jpg")],
        [
            annotation(1, 1, 3, [10, 10, 0, 5]),
            annotation(2, 1, 3, [10, 10, -4, 5]),
            annotation(3, 1, 3, [90, 70, 20, 5]),
            annotation(4, 1, 5, [1, 1, 5, 5]),
            annotation(5, 1, 3, [1, 1, 5]),
            annotation(6, 1, 3, [1, float("nan"), 5, 5]),
            annotation(7, 1, 3, [1, 1, 10**400, 5]),
            annotation(8, 1, 3, [1, 1, 5, 5], segmentation=[[1, 1, 2]], huge=10**30, bad=float("inf")),
            annotation(9, 99, 3, [1, 1, 5, 5]),
        ],
    )
    found = scan(COCO, tmp_path)
    listed = [(problem.key, problem.kind, problem.left_out) for problem in found.problems]
    assert listed == [
        ("a.jpg", "zero-size-box", False),
        ("a.jpg", "swapped-corners", False),
        ("a.jpg", "box-outside", False),
        ("a.jpg", "unknown-class", False),
        ("a.jpg", "bad-box", False),
        ("a.jpg", "bad-box", False),
        ("a.jpg", "bad-box", False),
        ("a.jpg", "bad-polygon", False),
        ("a.jpg", "duplicate-key", False),
        ("gone.jpg", "no-picture", True),
        ("../../secret.jpg", "no-picture", True),
        ("train.json", "no-picture", False),
    ]
    assert found.problems[0].reason == "annotation 1: box 10, 10 to 10, 15 has no area."
    assert "annotation 4: there is no category of id 5" in found.problems[3].reason
    assert found.boxes("a.jpg") == [(6, 10, 10, 15), (90, 70, 110, 75), (1, 1, 6, 6)]
    assert found.objects("a.jpg")[2].details == {
        "id": 8, "huge": "a whole number of more than 64 bits", "bad": None,
    }  # fmt: skip


def test_boxes_without_area_may_be_kept(tmp_path):
    save_picture(tmp_path / "a.jpg")
    save_json(tmp_path / "train.json", [(1, "a.jpg")], [annotation(1, 1, 3, [10, 10, 0, 5])])
    found = scan(COCO, tmp_path, zero_size_boxes="keep")
    assert found.boxes("a.jpg") == [(10, 10, 10, 15)]
    assert found.kinds() == ["zero-size-box"]


def test_run_lengths_are_compressed_and_checked(tmp_path):
    save_picture(tmp_path / "a.jpg")
    masks = [
        {"size": [80, 100], "counts": [3000, 2, 4998]},
        {"size": [80, 100], "counts": "hm22Vl4"},
        {"size": [80, 100], "counts": [5, 2]},
        {"size": [80, 100], "counts": [-1, 8001]},
        {"size": [80, 100], "counts": "hm22Vl5"},
        {"size": [80, 100], "counts": "hm2 2Vl4"},
        {"size": [80, 100], "counts": "hm22Vl4\u20ac"},
        {"size": [80, -100], "counts": "hm22Vl4"},
        {"size": [4, 3], "counts": "525"},
    ]
    save_json(
        tmp_path / "train.json",
        [(1, "a.jpg")],
        [annotation(number, 1, 3, [1, 1, 5, 5], segmentation=mask) for number, mask in enumerate(masks)],
    )
    found = scan(COCO, tmp_path)
    good = {"size": [80, 100], "counts": "hm22Vl4"}
    assert [each.mask for each in found.objects("a.jpg")] == [good, good, *[None] * 7]
    reason = "its run lengths do not fit their size."
    assert [(each.kind, each.reason) for each in found.problems] == [
        *(("bad-mask", f"annotation {number}: {reason}") for number in range(2, 8)),
        ("bad-mask", "annotation 8: its mask is 3 x 4 pixels, not as large as its image."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"id": 1',
        '{"images": [{"id": 1, "file_name": "a.jpg"},], "annotations": []}',
        '{"images" "file_name" "annotations"}',
        '{"file_name": 1, "images": [], "annotations": [' + "[" * 100_000,
        '{"images": ["file_name"], "annotations": [], "n": ' + "9" * 5000 + "}",
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, text):
    save_text(tmp_path / "train.json", text)
    with pytest.raises(DataError, match="one JSON object with lists") as caught:
        list(COCO.scan(tmp_path, COCO.checked_options({})))
    assert "train.json" in str(caught.value)


def test_a_file_is_read_whatever_its_order_and_encoding(tmp_path):
    save_picture(tmp_path / "ä.jpg")
    text = """{"categories": [{"id": 1, "name": "Füße"}], "info": {"x": [1, {"y": null}]}, "n": 12345,
    "annotations": [{"image_id": "p", "category_id": 1, "bbox": [1, 2, 3, 4]}],
    "images": [{"file_name": "ä.jpg", "id": "p"}]}"""
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        save_text(tmp_path / "train.json", text, encoding)
        found = scan(COCO, tmp_path)
        assert found.schema.class_names == ("Füße",)
        assert found.boxes("ä.jpg") == [(1, 2, 4, 6)]


def test_large_files_are_read_piece_by_piece(tmp_path):
    save_picture(tmp_path / "a.jpg")
    boxes = [annotation(number, 1, 3, [1, 1, 5, 5], note="x" * 200) for number in range(12_000)]
    save_json(tmp_path / "train.json", [(1, "a.jpg")], boxes)
    assert (tmp_path / "train.json").stat().st_size > 2 << 20
    found = scan(COCO, tmp_path)
    assert [each.details["id"] for each in found.objects("a.jpg")] == list(range(12_000))


def test_other_sources_are_not_taken_for_coco(tmp_path):
    save_text(tmp_path / "package.json", '{"name": "x", "images": []}')
    save_text(tmp_path / "list.json", "[1, 2]")
    assert COCO.guess(tmp_path) is None
    with pytest.raises(DataError, match="`images` and `annotations`"):
        COCO.scan(tmp_path, COCO.checked_options({}))


def test_car_parts_are_what_their_readme_says():
    source = shared("carparts-coco")
    assert confidence(COCO, source) >= 0.9
    found = scan(COCO, source)
    assert list(found.splits().values()).count("train") == 100
    assert len(found.samples) == 200
    assert found.count() == 767 + 811
    assert len(found.schema.class_names) == 19
    assert found.schema.class_names[0] == "_background_"
    assert found.problems == []
