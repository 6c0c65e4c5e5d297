"""``dataset list``, ``show``, ``explore``, ``problems``, ``check``, ``export`` and ``versions``, as people call."""

import cv2
import pytest
from dataset_folders import fitted, pet_folders, pets

from tests.old_stores import store_as_0_1_did
from ziggurat.datasets.format_registry import EXPORT_FORMATS
from ziggurat.workspace.datasets import export_options


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return pets(tmp_path_factory.mktemp("sets") / "pets")


def test_list_has_finished_and_unfinished_ones(ziggurat, folder):
    rows = ziggurat("dataset", "list", folder.parent, "--json").content
    assert rows == [
        {
            "folder": str(folder),
            "id": rows[0]["id"],
            "name": "pets",
            "kind": "image-classification",
            "state": "done",
            "splits": {"train": 8, "val": 4},
            "classes": 3,
            "problems": 2,
            "parents": [],
        }
    ]
    assert len(rows[0]["id"]) == 64
    assert "train 8, val 4" in ziggurat("dataset", "list", folder.parent).out


def test_list_names_a_creation_that_is_not_done(ziggurat, folder, tmp_path):
    made = ziggurat("dataset", "create", folder.parent / "pets as files", "--out", tmp_path / "all/half")
    assert made.code != 0, "the tiny worker makes no datasets"
    rows = ziggurat("dataset", "list", tmp_path / "all", "--json").content
    assert [(row["name"], row["state"], row["id"]) for row in rows] == [("half", "unfinished", "")]


def test_list_of_nothing(ziggurat, tmp_path):
    assert ziggurat("dataset", "list").out == "(none)\n"
    assert ziggurat("dataset", "list", "--json").content == []
    wrong = ziggurat("dataset", "list", tmp_path / "nowhere")
    assert wrong.code == 4
    assert "does not exist." in wrong.err


def test_show_says_what_it_is(ziggurat, folder):
    text = ziggurat("dataset", "show", folder).out
    assert text.startswith("pets: image-classification, train 8, val 4\n")
    assert "pets as files (class_folders)" in text
    assert "of their own sizes, color, original" in text
    assert "unreadable  2" in text
    assert "0      cat      2      2\n" in text


def test_show_as_json_is_what_programs_read(ziggurat, folder):
    content = ziggurat("dataset", "show", folder, "--json").content
    assert set(content) == {
        *(
            "folder",
            "id",
            "name",
            "kind",
            "image",
            "source",
            "problems",
            "losses",
            "parents",
            "mean",
            "pixel_mean",
            "splits",
        ),
        *("classes", "columns", "target", "warnings", "test_openings", "stores"),
    }
    assert content["classes"][2] == {"number": 2, "name": "old owl", "train": 3, "val": 1}
    assert content["test_openings"] == 0


@pytest.mark.parametrize(("store", "encoding"), [("lmdb", "jpeg"), ("tfrecord", "png"), ("tfrecord", "raw")])
def test_44_store_and_encoding_are_what_was_asked_for(ziggurat, tmp_path, store, encoding):
    other = pets(tmp_path / "pets", store=store, image=fitted(encoding))
    content = ziggurat("dataset", "show", other, "--json").content
    assert (content["stores"], content["image"]["encoding"]) == ([store], encoding)
    text = ziggurat("dataset", "show", other).out
    assert f"stored in  {store}\n" in text
    assert f"10 x 12, color, {encoding}\n" in text


def test_44_gzip_is_for_hdf5_alone(ziggurat, folder, tmp_path):
    words = ("--out", tmp_path / "out", "--option", "compression=gzip")
    assert ziggurat("dataset", "export", folder, "--format", "digits_hdf5", *words).code == 0
    refused = ziggurat("dataset", "export", folder, "--format", "digits_lmdb", *words)
    assert refused.code == 3
    assert "`compression` is not a known option of an export as digits_lmdb" in refused.err


def test_show_with_statistics(ziggurat, folder):
    assert "width, px" in ziggurat("dataset", "show", folder, "--statistics").out
    content = ziggurat("dataset", "show", folder, "--statistics", "--json").content
    assert content["statistics"]["pictures"]["width_px"]["maximum"] == 32


@pytest.mark.parametrize("verb", ["show", "explore", "problems", "check", "versions"])
def test_a_folder_without_a_data_set_is_said(ziggurat, tmp_path, verb):
    answer = ziggurat("dataset", verb, tmp_path / "nowhere")
    assert answer.code == 4
    assert "Make one with: ziggurat dataset create." in answer.err


def keys(answer):
    return [sample["key"] for sample in answer.content["samples"]]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], 12),
        (["--split", "val"], 4),
        (["--class", "old owl"], 4),
        (["--class", "2", "--split", "train"], 3),
        (["--text", "ä0"], 10),
        (["--text", "100%_"], 0),
        (["--min-width", "25"], 1),
        (["--max-width", "24", "--min-height", "20", "--max-height", "20"], 11),
        (["--problem", "any"], 0),
        (["--group", "none"], 0),
    ],
)
def test_46_samples_are_found_by_what_is_known_of_them(ziggurat, folder, words, found):
    answer = ziggurat("dataset", "explore", folder, *words, "--json")
    assert answer.code == 0
    assert answer.content["total"] == len(answer.content["samples"]) == found


def test_46_pages_follow_each_other(ziggurat, folder):
    whole = keys(ziggurat("dataset", "explore", folder, "--json"))
    pages = [keys(ziggurat("dataset", "explore", folder, "--json", "--limit", 5, "--offset", at)) for at in (0, 5, 10)]
    assert [len(page) for page in pages] == [5, 5, 2]
    assert [key for page in pages for key in page] == whole
    assert ziggurat("dataset", "explore", folder, "--limit", 5, "--offset", 5).out.endswith("\n6 to 10 of 12\n")
    assert ziggurat("dataset", "explore", folder, "--offset", 50).out == "(none)\nnone of 12\n"


def test_46_a_page_says_all_that_is_known(ziggurat, folder):
    sample = ziggurat("dataset", "explore", folder, "--limit", 1, "--json").content["samples"][0]
    assert (sample["split"], sample["row"], sample["class_name"], sample["label"]) == ("train", 0, "cat", 0)
    assert (sample["width_px"], sample["height_px"]) == (24, 20)
    assert sample["source_bytes"] == (folder.parent / "pets as files" / sample["key"]).stat().st_size


def test_46_pictures_of_a_page_are_written(ziggurat, folder, tmp_path):
    answer = ziggurat("dataset", "explore", folder, "--text", "ä11", "--save", tmp_path / "seen")
    (file,) = (tmp_path / "seen").iterdir()
    assert answer.out.endswith(f"1 image written to {tmp_path / 'seen'}\n")
    original = cv2.imread(str(folder.parent / "pets as files/old owl/ä11.png"))
    assert (cv2.imread(str(file)) == original).all()


@pytest.mark.parametrize("store", ["hdf5", "tfrecord"])
def test_46_samples_of_other_stores_are_explored_too(ziggurat, tmp_path, store):
    other = pets(tmp_path / "pets", store="lmdb" if store == "hdf5" else store)
    if store == "hdf5":
        store_as_0_1_did(other, store)
    assert ziggurat("dataset", "explore", other, "--split", "val", "--json").content["total"] == 4
    assert ziggurat("dataset", "explore", other, "--save", tmp_path / "seen").code == 0
    assert len(list((tmp_path / "seen").iterdir())) == 12


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--class", "old ow"], 3, "Did you mean `old owl`?"),
        (["--split", "vla"], 3, "Did you mean `val`?"),
        (["--limit", "0"], 2, "0 is not in the range 1<=x<=10000"),
        (["--offset", "-1"], 2, "-1 is not in the range x>=0"),
        (["--min-width", "wide"], 2, "'wide' is not a valid integer"),
    ],
)
def test_wrong_filters_are_refused(ziggurat, folder, words, code, said):
    answer = ziggurat("dataset", "explore", folder, *words)
    assert answer.code == code
    assert said in answer.err


def test_problems_are_listed_with_their_reason(ziggurat, folder):
    text = ziggurat("dataset", "problems", folder).out
    assert "unreadable  dog/empty.png    left out  It is empty (0 bytes).\n" in text
    assert text.endswith("\n1 to 2 of 2\n")
    assert ziggurat("dataset", "problems", folder, "--limit", 1, "--offset", 1).out.endswith("\n2 to 2 of 2\n")
    listed = ziggurat("dataset", "problems", folder, "--kind", "unreadable", "--json").content
    assert sorted(each["key"] for each in listed) == ["cat/cut off.png", "dog/empty.png"]
    assert set(listed[0]) == {
        *("key", "kind", "reason", "left_out"),
        *("objects", "names", "why", "class_name", "split"),
    }


def test_a_kind_that_nothing_has_names_those_that_there_are(ziggurat, folder):
    text = ziggurat("dataset", "problems", folder, "--kind", "unredable").out
    assert text == "(none)\nnone of 0\nKinds of problems here: unreadable.\n"
    left_out = ziggurat("dataset", "explore", folder, "--problem", "unreadable").out
    assert left_out.endswith("Samples that were left out are listed by: ziggurat dataset problems DATASET\n")


def test_check_says_what_may_spoil_a_training(ziggurat, folder):
    text = ziggurat("dataset", "check", folder, "--verify").out
    assert "every record was read" in text
    assert "small-class" in text
    report = ziggurat("dataset", "check", folder, "--json").content
    assert {"at-creation-unreadable", "small-class"} <= {finding["kind"] for finding in report["findings"]}


def test_check_with_a_file_of_predictions_that_is_not_there(ziggurat, folder, tmp_path):
    answer = ziggurat("dataset", "check", folder, "--predictions", tmp_path / "none.csv")
    assert answer.code == 4
    assert "none.csv" in answer.err


FITTING = [name for name, kinds in EXPORT_FORMATS.items() if "image-classification" in kinds]


@pytest.mark.parametrize("name", EXPORT_FORMATS)
def test_every_format_is_written_or_refuses_the_kind(ziggurat, tmp_path, folder, name):
    export_options(name)
    answer = ziggurat("dataset", "export", folder, "--format", name, "--out", tmp_path / "out", "--json")
    if name in FITTING:
        assert answer.code == 0
        assert answer.content["format"]
        assert 6 <= answer.content["counts"]["train"] <= 8, "all, or those of the one size that the format can hold"
        assert any((tmp_path / "out").iterdir())
    else:
        assert answer.code == 3
        assert answer.content["message"].startswith(f"The format {name} holds datasets of kind")
        assert answer.content["advice"] == f"Choose one of: {', '.join(FITTING)}."
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--format", "class_folder"], 3, "Did you mean `class_folders`?"),
        (["--format", "idx", "--option", "compres=true"], 3, "Did you mean `compress`?"),
        (["--format", "class_folders", "--option", "a=1"], 3, "`a` is not a known option of an export as class_folder"),
        (
            ["--format", "tfrecord", "--option", "records_per_shard"],
            2,
            "`records_per_shard` is not NAME=VALUE, which `--option` takes.",
        ),
        ([], 2, "Missing option '--format'"),
    ],
)
def test_wrong_exports_are_refused(ziggurat, folder, tmp_path, words, code, said):
    answer = ziggurat("dataset", "export", folder, "--out", tmp_path / "out", *words)
    assert answer.code == code
    assert said in answer.err
    assert not (tmp_path / "out").exists()


def test_an_export_takes_options_and_leaves_files_alone(ziggurat, folder, tmp_path):
    words = ("dataset", "export", folder, "--format", "tfrecord", "--out", tmp_path / "out")
    answer = ziggurat(*words, "--option", "records_per_shard=4")
    assert answer.code == 0
    assert "train 8, val 4 samples as tfrecord" in answer.out
    assert len(list((tmp_path / "out").glob("train-*"))) == 2
    again = ziggurat(*words)
    assert again.code == 11
    assert "is not empty: it holds" in again.err


def test_versions_of_a_data_set_from_a_source(ziggurat, folder):
    (only,) = ziggurat("dataset", "versions", folder, "--json").content
    assert (only["name"], only["folder"], only["changes"], only["parents"]) == ("pets", str(folder), [], [])


def test_differences_of_two(ziggurat, folder, tmp_path):
    source = pet_folders(tmp_path / "source")
    (source / "cat/ä00.png").unlink()
    other = pets(tmp_path / "other")
    found = ziggurat("dataset", "versions", folder, "--differences", other, "--json").content
    assert found["counts"]["added"] == found["counts"]["removed"] == 0
    assert "relabelled" in ziggurat("dataset", "versions", folder, "--differences", other).out
