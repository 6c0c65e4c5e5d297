"""Pictures with a metadata file beside them become the kind of data set that its columns say."""

import json

import pytest

from tests.unit.datasets.folder_sets import Scanned, put
from ziggurat.datasets.importers.huggingface_folder import HuggingFaceFolder
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
    assert guess.reason == "`metadata.csv` with the column file_name beside pictures"


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
        **{f"{place}:{number}": "bad-line" for number in (2, 3, 4, 5, 6)},
        "train/gone.png": "no-picture",
        f"{place}:8": "duplicate-key",
        ".": "not-listed",
    }
    assert found.problems[-1].reason == "1 pictures have no row in the metadata."


def test_csv_rows_with_too_many_cells_or_bytes_that_are_no_text(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("metadata.csv").write_bytes(
        b"\xef\xbb\xbffile_name,label\r\na.png,x\r\nb.png,y,z\r\nb.png,\xe9\r\nb.png,y\r\n"
    )
    found = Scanned(HuggingFaceFolder(), tmp_path)
    assert found.classes == {"a.png": "x", "b.png": "y"}
    assert found.listed == {"metadata.csv:2": "bad-line", "metadata.csv:3": "bad-line"}


def test_metadata_without_what_is_needed(tmp_path):
    put(tmp_path, "a.png")
    with pytest.raises(DataError, match=r"Beside the pictures is a metadata.csv"):
        Scanned(HuggingFaceFolder(), tmp_path)
    tmp_path.joinpath("metadata.csv").write_text("file,label\na.png,x\n")
    assert HuggingFaceFolder().guess(tmp_path) is None
    with pytest.raises(DataError, match=r"Metadata has the column `file_name`. Received: `.*` with file, label"):
        Scanned(HuggingFaceFolder(), tmp_path)
    tmp_path.joinpath("metadata.csv").write_text("file_name,label\na.png,x\n")
    with pytest.raises(DataError, match="Metadata has the column `colour`"):
        Scanned(HuggingFaceFolder(), tmp_path, label="colour")
