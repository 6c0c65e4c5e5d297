"""Images with a metadata file beside them become the kind of dataset that its columns say."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_coordinate_frames import encoded as turned

from tests.unit.datasets.folder_sets import Scanned, put
from tests.unit.datasets.small_sources import request
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.format_registry import guess_format
from ziggurat.datasets.formats.huggingface.importer import HuggingFaceFolder
from ziggurat.errors import DataError


def jsonl(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_csv_with_names_of_classes(tmp_path):
    put(tmp_path, "a.png", "b c.png", "d.png")
    tmp_path.joinpath("metadata.csv").write_text('file_name,label\na.png,dog\n"b c.png","big, red cat"\nd.png,\n')
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.schema.kind == "image-classification"
    assert found.classes == {"a.png": "dog", "b c.png": "big, red cat"}
    assert found.listed == {"d.png": "no-label"}
    guess = HuggingFaceFolder().guess(tmp_path)
    assert guess is not None
    assert (guess.kind, guess.confidence) == ("image-classification", 0.96)
    assert guess.reason == "`metadata.csv` with the column file_name beside images"


def test_json_lines_in_folders_of_splits(tmp_path):
    put(tmp_path, "train/x/a.png", "train/b.png", "validation/a.png", "test/a.png")
    jsonl(tmp_path / "train/metadata.jsonl", {"file_name": "x/a.png", "label": 1}, {"file_name": "b.png", "label": 0})
    jsonl(tmp_path / "validation/metadata.jsonl", {"file_name": "a.png", "label": 1})
    jsonl(tmp_path / "test/metadata.jsonl", {"file_name": "a.png", "label": 7})
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.splits == {"train/x/a.png": "train", "train/b.png": "train", "validation/a.png": "val"}
    assert found.labels == {"train/x/a.png": 1, "train/b.png": 0, "validation/a.png": 1}
    assert found.schema.class_names == ("0", "1")
    assert found.problems[0].reason == "Its label '7' is none of the first split's."


def test_one_file_for_all_splits(tmp_path):
    put(tmp_path, "train/a.png", "test/b.png", "c.png")
    rows = [{"file_name": "train/a.png", "label": "x"}, {"file_name": "test/b.png", "label": "y"}]
    jsonl(tmp_path / "metadata.jsonl", *rows, {"file_name": "c.png", "label": "y", "split": "validation"})
    assert Scanned(HuggingFaceFolder(), tmp_path).splits == {
        "train/a.png": "train",
        "test/b.png": "test",
        "c.png": "val",
    }


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    put(tmp_path, "a.png", "b.png")
    table = pyarrow.table({"file_name": ["a.png", "b.png"], "age": [30.5, 41.0]})
    parquet.write_table(table, tmp_path / "metadata.parquet")
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.schema.kind == "image-regression"
    assert found.labels == {"a.png": [30.5], "b.png": [41.0]}
    tmp_path.joinpath("metadata.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="A metadata file is whole"):
        Scanned(HuggingFaceFolder(), tmp_path)


def test_several_values(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("metadata.csv").write_text('file_name,label\na.png,"[1, 0.5]"\nb.png,"[0, 1]"\n')
    assert Scanned(HuggingFaceFolder(), tmp_path).labels == {"a.png": [1.0, 0.5], "b.png": [0.0, 1.0]}


def test_objects_become_detection(tmp_path):
    put(tmp_path, "a.png", "b.png", "c.png")
    jsonl(
        tmp_path / "metadata.jsonl",
        {"file_name": "a.png", "objects": {"bbox": [[1, 2, 3, 4], [0, 0, 0, 5]], "categories": [1, 0]}},
        {"file_name": "b.png", "objects": {"bbox": [], "categories": []}},
        {"file_name": "c.png", "objects": {"bbox": [[1, 2, 3, 4]], "categories": [1, 0]}},
    )
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.schema.kind == "detection"
    assert found.labels == {"a.png": [{"class": 1, "box": [1, 2, 4, 6]}], "b.png": []}
    assert found.listed == {"a.png": "zero-size-box", "c.png": "no-label"}
    found = Scanned(HuggingFaceFolder(), tmp_path, box_format="xyxy")
    assert found.labels["a.png"] == [{"class": 1, "box": [1, 2, 3, 4]}]


def test_boxes_in_a_table(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("metadata.csv").write_text(
        'file_name,bbox,label\na.png,"[1, 2, 3, 4]",cat\nb.png,"[[1, 2, 3, 4], [NaN, 1, 1, 1]]","[""dog"", ""cat""]"\n'
    )
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.labels == {"a.png": [{"class": 0, "box": [1, 2, 4, 6]}], "b.png": [{"class": 1, "box": [1, 2, 4, 6]}]}
    assert found.schema.class_names == ("cat", "dog")


def test_texts_targets_and_masks(tmp_path):
    put(tmp_path, "a.png", "b.png")
    jsonl(tmp_path / "metadata.jsonl", {"file_name": "a.png", "text": "Grüße"}, {"file_name": "b.png", "text": "two"})
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert (found.schema.kind, found.schema.parts) == ("generic", ("image", "text"))
    assert found.samples[0].parts == ("a.png", "Grüße".encode())
    for column, kind in (("target_file_name", "image-to-image"), ("mask_file_name", "segmentation")):
        jsonl(tmp_path / "metadata.jsonl", {"file_name": "a.png", column: "b.png"})
        found = Scanned(HuggingFaceFolder(), tmp_path)
        assert found.schema.kind == kind
        assert found.samples[0].parts == ("a.png", "b.png")
        assert found.problems == []


def test_rows_that_cannot_be_used_are_listed(tmp_path):
    put(tmp_path, "train/a.png", "train/b.png", "train/unlisted.png", "outside.png")
    jsonl(
        tmp_path / "train/metadata.jsonl",
        {"file_name": "a.png", "label": 0},
        {"file_name": "../outside.png", "label": 0},
    )
    with tmp_path.joinpath("train/metadata.jsonl").open("ab") as file:
        file.write(b'{"file_name": "b.png"\n\xff\xfe\n{"file_name": 3}\n[1]\n{"file_name": "gone.png", "label": 0}\n')
        file.write(b'{"file_name": "a.png", "label": 0}\n{"file_name": "b.png", "label": 1}\n')
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert list(found.labels) == ["train/a.png", "train/b.png"]
    place = "train/metadata.jsonl"
    assert found.listed == {
        "metadata.jsonl": "encoding",
        **{f"{place}:{number}": "bad-line" for number in (2, 3, 4, 5, 6)},
        "train/gone.png": "no-picture",
        f"{place}:8": "duplicate-key",
        ".": "not-listed",
    }
    assert found.problems[-1].reason == "1 image has no row in the metadata."


def test_csv_rows_with_too_many_cells_or_bytes_that_are_no_text(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("metadata.csv").write_bytes(
        b"\xef\xbb\xbffile_name,label\r\na.png,x\r\nb.png,y,z\r\nb.png,\xe9\r\nb.png,y\r\n"
    )
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.classes == {"a.png": "x", "b.png": "é"}
    lost = {"metadata.csv:2": "bad-line", "metadata.csv:4": "other-label"}
    assert found.listed == {"metadata.csv": "encoding", **lost}


def test_metadata_without_what_is_needed(tmp_path):
    put(tmp_path, "a.png")
    with pytest.raises(DataError, match=r"Beside the images is a metadata.csv"):
        Scanned(HuggingFaceFolder(), tmp_path)
    tmp_path.joinpath("metadata.csv").write_text("file,label\na.png,x\n")
    assert HuggingFaceFolder().guess(tmp_path) is None
    with pytest.raises(DataError, match=r"has no column `file_name`; it has file, label"):
        Scanned(HuggingFaceFolder(), tmp_path)
    tmp_path.joinpath("metadata.csv").write_text("file_name,label\na.png,x\n")
    with pytest.raises(DataError, match="has no column `colour`"):
        Scanned(HuggingFaceFolder(), tmp_path, label="colour")


# ---- CSV files of Kaggle


def table(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("heading", "cell", "place"),
    [
        ("id,label", "{}", "train/{}.jpg"),
        ("filename,label", "{}.jpg", "train/{}.jpg"),
        ("image_id,breed", "{}", "images/{}.jpg"),
        ("Id,Class Name", "{}.png", "train_images/{}.png"),
        ("ClassId,Path", "train/{}.png", "train/{}.png"),
        ("key,what", "{}.jpeg", "{}.jpeg"),
    ],
)
def test_a_csv_beside_pictures_says_their_classes(tmp_path, heading, cell, place):
    names = ("000a", "001b", "002c", "003d")
    put(tmp_path, *(place.format(name) for name in names))
    turned = heading.endswith("Path")
    rows = [(("dog", "cat")[at % 2], cell.format(name)) for at, name in enumerate(names)]
    table(tmp_path / "train.csv", heading, *(",".join(row if turned else row[::-1]) for row in rows))
    guess = guess_format(tmp_path)
    assert (guess.format, guess.kind, guess.confidence) == ("huggingface_folder", "image-classification", 0.9)
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.schema.class_names == ("cat", "dog")
    assert list(found.classes.items()) == [
        (place.format(name), ("dog", "cat")[at % 2]) for at, name in enumerate(names)
    ]
    assert set(found.splits.values()) == {"train"}
    assert found.problems == []


def test_submissions_and_tables_without_labels_say_nothing(tmp_path):
    put(tmp_path, *(f"train/{number}.jpg" for number in range(4)), *(f"test/{number}.jpg" for number in range(3)))
    table(tmp_path / "sample_submission.csv", "id,label", *(f"{number},cat" for number in range(3)))
    table(tmp_path / "test.csv", "id,width,height", *(f"{number},6,4" for number in range(3)))
    table(tmp_path / "train.csv", "id,label", "0,cat", "1,dog", "2,cat", "3,dog", "4,dog")
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert list(found.classes.values()) == ["cat", "dog", "cat", "dog"]
    assert found.listed == {"train/4.jpg": "no-picture"}


def test_the_csv_itself_may_be_the_source(tmp_path):
    put(tmp_path, *(f"photos/{number}.jpg" for number in range(4)))
    source = table(tmp_path / "labels.csv", "photo,quality", *(f"{number},{number / 2 + 0.25}" for number in range(4)))
    assert guess_format(source).format == "huggingface_folder"
    made = create_dataset(request(source), tmp_path / "set")
    assert made.schema.kind == "image-regression"
    assert sum(split.count for split in made.splits.values()) == 4


def test_columns_of_0_and_1_are_classes(tmp_path):
    put(tmp_path, *(f"images/Train_{number}.jpg" for number in range(3)))
    rows = ("Train_0,1,0,0", "Train_1,0,0,1", "Train_2,0,1,0")
    table(tmp_path / "train.csv", "image_id,healthy,rust,scab", *rows)
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert list(found.classes.values()) == ["healthy", "scab", "rust"]


def test_of_several_columns_a_person_names_the_label(tmp_path):
    put(tmp_path, *(f"images/{number}.jpg" for number in range(3)))
    table(tmp_path / "styles.csv", "id,gender,season", "0,Men,Fall", "1,Women,Summer", "2,Men,Summer")
    with pytest.raises(DataError, match=r"option `label` must name the column with the label: gender, season"):
        guess_format(tmp_path)
    with pytest.raises(DataError, match="The option `label` names the column"):
        Scanned(HuggingFaceFolder(), tmp_path)
    found = Scanned(HuggingFaceFolder(), tmp_path, label="season")
    assert list(found.classes.values()) == ["Fall", "Summer", "Summer"]


def test_tables_of_boxes_and_of_other_things_are_left_alone(tmp_path):
    put(tmp_path, *(f"images/{number}.jpg" for number in range(3)))
    table(tmp_path / "boxes.csv", "filename,class,xmin,ymin,xmax,ymax", "0.jpg,cat,1,1,2,2", "0.jpg,dog,1,1,3,3")
    table(tmp_path / "prices.csv", "id,price", "100,3", "200,4", "300,5")
    assert HuggingFaceFolder().guess(tmp_path) is None


def test_a_cell_that_leads_out_of_the_folder_is_no_picture(tmp_path):
    put(tmp_path, "outside.jpg", *(f"set/images/{number}.jpg" for number in range(9)))
    rows = (*(f"{number},cat" for number in range(9)), "../../outside,dog")
    table(tmp_path / "set/train.csv", "id,label", *rows)
    assert Scanned(HuggingFaceFolder(), tmp_path / "set").listed == {"train.csv:10": "bad-line"}


# ---- several labels, encodings, losses


MARKS = ("1,1,0", "0,1,1", "0,0,0", "1,0,0")


def labels_of(found):
    return [found.schema.chosen_names(sample.label) for sample in found.samples]


@pytest.mark.parametrize("name", ["train.csv", "metadata.csv"])
@pytest.mark.parametrize("mark", ["{}", "{}.0"])
def test_several_ones_in_a_row_are_labels(tmp_path, name, mark):
    put(tmp_path, *(f"{number}.png" for number in range(4)))
    rows = [
        f"{number}.png," + ",".join(mark.format(each) for each in row.split(",")) for number, row in enumerate(MARKS)
    ]
    table(tmp_path / name, f"{'file_name' if name == 'metadata.csv' else 'image'},dog,cat,person", *rows)
    guess = guess_format(tmp_path)
    assert (guess.format, guess.kind) == ("huggingface_folder", "image-regression")
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.schema.class_names == ("dog", "cat", "person")
    assert labels_of(found) == [["dog", "cat"], ["cat", "person"], [], ["dog"]]
    assert found.problems == []
    made = create_dataset(request(tmp_path), tmp_path / "set")
    assert sum(split.count for split in made.splits.values()) == 4


def test_metadata_whose_label_is_not_clear_is_asked_for(tmp_path):
    put(tmp_path, "a.png", "b.png")
    table(tmp_path / "metadata.csv", "file_name,owner,age", "a.png,Ann,3", "b.png,Bob,4")
    with pytest.raises(DataError, match="with owner, age") as caught:
        Scanned(HuggingFaceFolder(), tmp_path)
    assert caught.value.details["field"] == "options.label"
    assert Scanned(HuggingFaceFolder(), tmp_path, label="owner").schema.class_names == ("Ann", "Bob")
    found = Scanned(HuggingFaceFolder(), tmp_path, label="none")
    assert (found.schema.kind, len(found.samples)) == ("image-to-image", 2)
    table(tmp_path / "metadata.csv", "file_name,owner,species", "a.png,Ann,cat", "b.png,Bob,dog")
    assert Scanned(HuggingFaceFolder(), tmp_path).schema.class_names == ("cat", "dog")


def test_one_row_of_several_ones_at_the_end_decides(tmp_path):
    put(tmp_path, *(f"{number}.png" for number in range(80)))
    rows = [f"{number}.png,{number % 2},{1 - number % 2}" for number in range(79)]
    table(tmp_path / "train.csv", "image,wet,warm", *rows, "79.png,1,1")
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert (len(found.samples), labels_of(found)[-1]) == (80, ["wet", "warm"])


def test_tables_in_the_folders_of_splits(tmp_path):
    for split in ("train", "valid"):
        put(tmp_path / split, *(f"{number}.png" for number in range(4)))
        rows = [f"{number}.png, {row.replace(',', ', ')}" for number, row in enumerate(MARKS)]
        table(tmp_path / split / "_classes.csv", "filename, dog, cat, person", *rows)
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert sorted(found.splits.values()) == ["train"] * 4 + ["val"] * 4
    assert found.schema.class_names == ("dog", "cat", "person")


def test_a_row_with_another_label_is_a_loss(tmp_path):
    put(tmp_path, "a.png", "b.png")
    rows = ("a.png,cat", "a.png,cat", "a.png,dog", "file_name,label", "b.png,dog")
    table(tmp_path / "metadata.csv", "file_name,label", *rows)
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert [problem.kind for problem in found.problems] == ["duplicate-key", "other-label", "repeated-header"]
    assert found.classes == {"a.png": "cat", "b.png": "dog"}


def test_boxes_that_are_left_out_are_counted(tmp_path):
    put(tmp_path, "a.png")
    boxes = {"bbox": [[1, 1, 2, 2], [1, 1, 0, 2]], "category": [0, 0]}
    jsonl(tmp_path / "metadata.jsonl", {"file_name": "a.png", "objects": boxes})
    assert sum(problem.objects for problem in Scanned(HuggingFaceFolder(), tmp_path).problems) == 1


def test_semicolons_and_an_encoding_of_japan(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("metadata.csv").write_bytes("file_name;label\na.png;子犬\nb.png;子猫\n".encode("cp932"))
    assert guess_format(tmp_path).format == "huggingface_folder"
    with pytest.raises(DataError, match="As shift_jis it reads “子犬”, “子猫”") as caught:
        Scanned(HuggingFaceFolder(), tmp_path)
    assert caught.value.details["field"] == "options.encoding"
    assert Scanned(HuggingFaceFolder(), tmp_path, encoding="shift_jis").classes == {"a.png": "子犬", "b.png": "子猫"}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a.png", "b.png", "gone.png", "", "../x.png", "file_name"]),
            st.sampled_from(["cat", "dog", "", "cat,more"]),
        ),
        max_size=15,
    )
)
def test_rows_in_are_images_out_and_rows_reported(tmp_path, rows):
    put(tmp_path, "a.png", "b.png")
    lines = [f"{name},{label}" for name, label in [*rows, ("b.png", "dog")]]
    table(tmp_path / "metadata.csv", "file_name,label", *lines)
    found = Scanned(HuggingFaceFolder(), tmp_path)
    lost = sum(problem.left_out for problem in found.problems if problem.kind != "not-listed")
    assert len(found.samples) + lost == len(lines)


def objects_in(found):
    return {key: [(each["class"], each["box"]) for each in label] for key, label in found.labels.items()}


def test_corners_are_put_in_order_and_numbers_read(tmp_path):
    put(tmp_path, "a.png")
    boxes = {"bbox": [[5, 4, 2, 1], ["1", "1", "2", "3"], [1, 1, 2]], "categories": [0, 0, 0]}
    jsonl(tmp_path / "metadata.jsonl", {"file_name": "a.png", "objects": boxes})
    found = Scanned(HuggingFaceFolder(), tmp_path, box_format="xyxy")
    assert objects_in(found) == {"a.png": [(0, [2, 1, 5, 4]), (0, [1, 1, 2, 3])]}
    assert [(each.kind, each.objects) for each in found.problems] == [("swapped-corners", 0), ("bad-box", 1)]


def test_objects_of_lost_rows_are_counted(tmp_path):
    put(tmp_path, "a.png")
    box = [1, 1, 2, 2]
    jsonl(
        tmp_path / "metadata.jsonl",
        {"file_name": "a.png", "objects": {"bbox": [box], "categories": [0]}},
        {"file_name": "gone.png", "objects": {"bbox": [box] * 3, "categories": [0] * 3}},
        {"file_name": "a.png", "objects": {"bbox": [box] * 2, "categories": [0]}},
    )
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert [(each.kind, each.objects) for each in found.problems] == [("no-picture", 3), ("no-label", 2)]


def test_an_image_of_several_rows_has_the_boxes_of_all(tmp_path):
    put(tmp_path, "a.png", "b.png")
    rows = ['a.png,"[1, 1, 2, 2]",cat', 'b.png,"[0, 0, 1, 1]",cat', 'a.png,"[0, 0, 3, 3]",dog']
    table(tmp_path / "metadata.csv", "file_name,bbox,label", *rows, rows[0])
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert objects_in(found) == {"b.png": [(0, [0, 0, 1, 1])], "a.png": [(0, [1, 1, 3, 3]), (1, [0, 0, 3, 3])]}
    assert [(each.kind, each.objects) for each in found.problems] == [("duplicate-key", 0)]


@pytest.mark.parametrize(
    ("size", "options", "box", "kinds"),
    [
        ((60, 44), {}, (34, 10, 40, 30), []),
        ((44, 60), {}, (10, 4, 30, 10), []),
        ((), {}, (10, 4, 30, 10), ["exif-turned"]),
        ((), {"frame": "stored"}, (34, 10, 40, 30), ["exif-turned"]),
    ],
)
def test_boxes_follow_an_image_that_exif_turns(tmp_path, size, options, box, kinds):
    (tmp_path / "a.png").write_bytes(turned(6))
    about = dict(zip(("width", "height"), size))
    row = {"file_name": "a.png", "objects": {"bbox": [[10, 4, 20, 6]], "categories": [0]}, **about}
    jsonl(tmp_path / "metadata.jsonl", row)
    found = Scanned(HuggingFaceFolder(), tmp_path, **options)
    assert objects_in(found) == {"a.png": [(0, list(box))]}
    assert [each.kind for each in found.problems] == kinds


SIDES = st.sampled_from([0, 1, 2.5, -1, "3", "x", None])


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a.png", "b.png", "gone.png"]),
            st.lists(st.tuples(SIDES, SIDES, SIDES, SIDES), max_size=3),
            st.sampled_from([0, "", "more"]),
        ),
        max_size=6,
    )
)
def test_objects_in_are_objects_out_and_objects_lost(tmp_path_factory, rows):
    root = tmp_path_factory.mktemp("set")
    put(root, "a.png", "b.png", "c.png")
    lines = [{"file_name": "c.png", "objects": {"bbox": [[1, 1, 2, 2]], "categories": [0]}}]
    for number, (name, boxes, category) in enumerate(rows):
        categories = [0] * (len(boxes) + 1) if category == "more" else [category] * len(boxes)
        objects = {"bbox": [list(box) for box in boxes], "categories": categories, "row": number}
        lines.append({"file_name": name, "objects": objects})
    jsonl(root / "metadata.jsonl", *lines)
    found = Scanned(HuggingFaceFolder(), root)
    out = sum(len(label) for label in found.labels.values())
    assert out + sum(each.objects for each in found.problems) == 1 + sum(len(boxes) for _, boxes, _ in rows)


def test_a_table_of_kaggle_with_a_box_in_each_row_is_detection(tmp_path):
    put(tmp_path, "train/a.png", "train/b.png")
    rows = ['a,6,4,"[0, 1, 2, 2]",x', 'a,6,4,"[1.0, 0.0, 3.0, 2.0]",x', 'b,6,4,"[2, 1, 2, 2]",y']
    table(tmp_path / "train.csv", "image_id,width,height,bbox,source", *rows)
    assert (guess_format(tmp_path).format, guess_format(tmp_path).kind) == ("huggingface_folder", "detection")
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert objects_in(found) == {
        "train/b.png": [(0, [2, 1, 4, 3])], "train/a.png": [(0, [0, 1, 2, 3]), (0, [1, 0, 4, 2])],
    }  # fmt: skip
    assert found.problems == []
