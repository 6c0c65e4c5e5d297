"""Every verb that changes a dataset makes a new one, says what it did, and leaves the old one as it was."""

import hashlib

import pytest
from dataset_folders import pets

CHANGED = {"folder", "id", "name", "splits", "changes"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return pets(tmp_path_factory.mktemp("sets") / "pets")


@pytest.fixture(autouse=True)
def the_old_one_stays(folder):
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    yield
    assert before == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture
def change(ziggurat, folder, tmp_path):
    """Call a verb with a dataset, and give the answer as JSON and what is in the new one."""

    def call(verb, *words):
        out = tmp_path / f"after {verb}"
        answer = ziggurat("dataset", verb, folder, *words, "--out", out, "--json")
        assert (answer.code, answer.err.count("Error")) == (0, 0)
        assert set(answer.content) == CHANGED
        samples = ziggurat("dataset", "explore", out, "--limit", 100, "--json").content["samples"]
        return answer.content, {sample["key"]: sample for sample in samples}

    return call


def test_relabel_by_row_and_by_key(change):
    said, samples = change("relabel", "train/0", "dog/ä01.png", "--label", "old owl", "--name", "pets, mended")
    assert (said["name"], said["splits"]) == ("pets, mended", {"train": 8, "val": 4})
    assert samples["dog/ä01.png"]["class_name"] == "old owl"
    assert sum(sample["class_name"] == "old owl" for sample in samples.values()) == 6
    assert "old owl" in said["changes"][0]


def test_relabel_by_number(change):
    assert change("relabel", "cat/ä00.png", "--label", "1")[1]["cat/ä00.png"]["class_name"] == "dog"


def test_a_name_that_is_a_number_is_taken_for_the_name(ziggurat, folder, tmp_path):
    ziggurat("dataset", "classes", folder, "--rename", "dog=2", "--out", tmp_path / "named")
    ziggurat("dataset", "relabel", tmp_path / "named", "cat/ä00.png", "--label", "2", "--out", tmp_path / "new")
    (sample,) = ziggurat("dataset", "explore", tmp_path / "new", "--text", "cat/ä00", "--json").content["samples"]
    assert (sample["class_name"], sample["label"]) == ("2", 1)


def test_exclude_with_a_reason(change):
    said, samples = change("exclude", "val/0", "old owl/ä11.png", "--reason", "They are blurred.")
    assert sum(said["splits"].values()) == len(samples) == 10
    assert "old owl/ä11.png" not in samples


def test_move_to_the_test_split(change):
    said, samples = change("move", "val/0", "val/1", "--to", "test")
    assert said["splits"] == {"train": 8, "val": 2, "test": 2}
    assert sum(sample["split"] == "test" for sample in samples.values()) == 2


def test_classes_are_renamed_merged_dropped_and_kept(change):
    said, samples = change("classes", "--rename", "old owl=owl", "--merge", "cat,dog=mammal")
    assert {sample["class_name"] for sample in samples.values()} == {"owl", "mammal"}
    assert said["changes"] == ["Renamed class old owl to owl.", "Made one class mammal of cat, dog."]


@pytest.mark.parametrize(("words", "left"), [(["--keep", "cat", "--keep", "dog"], 8), (["--drop", "cat"], 8)])
def test_classes_that_go_take_their_samples_along(change, words, left):
    assert len(change("classes", *words)[1]) == left


def test_split_anew_by_shares(change):
    said, _ = change("split", "--val-share", "0.25", "--test-share", "0.25", "--seed", "3")
    assert said["splits"] == {"train": 6, "val": 3, "test": 3}


def test_split_anew_by_lists(change, tmp_path):
    (tmp_path / "train.txt").write_text("cat/ä00.png\nä01\n")
    (tmp_path / "test.txt").write_text("old owl/ä02.png\n")
    lists = ("--list", f"train={tmp_path / 'train.txt'}", "--list", f"test={tmp_path / 'test.txt'}")
    said, samples = change("split", "--method", "list", *lists)
    assert said["splits"] == {"train": 2, "test": 1}
    assert samples["dog/ä01.png"]["split"] == "train"


def test_append_and_merge_join(ziggurat, folder, change, tmp_path):
    said, samples = change("append", folder)
    assert said["splits"] == {"train": 16, "val": 8}
    assert len(samples) == 24
    answer = ziggurat(
        "dataset", "merge", folder, folder, "--leave-out-duplicates", "--out", tmp_path / "merged", "--json"
    )
    assert answer.content["splits"] == {"train": 8, "val": 4}
    assert "came twice" in " ".join(answer.content["changes"])


def test_versions_lead_back_to_the_first(ziggurat, folder, tmp_path):
    ziggurat("dataset", "relabel", folder, "train/0", "--label", "dog", "--out", tmp_path / "second")
    ziggurat("dataset", "move", tmp_path / "second", "val/0", "--to", "test", "--out", tmp_path / "third")
    notes = ziggurat("dataset", "versions", tmp_path / "third", "--json").content
    assert [len(note["changes"]) for note in notes] == [1, 1, 0]
    assert notes[0]["parents"] == [notes[1]["id"]]
    differences = ziggurat("dataset", "versions", folder, "--differences", tmp_path / "third", "--json").content
    assert {name: count for name, count in differences["counts"].items() if count} == {"moved": 1, "relabelled": 1}
    text = ziggurat("dataset", "show", tmp_path / "third").out
    assert "made of    pets: Moved 1 sample from val to test." in text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["relabel", "train/0", "--label", "old ow"], 3, "Did you mean `old owl`?"),
        (["relabel", "train/0", "--label", "7"], 4, "from 0 to 2 (received: 7)."),
        (["relabel", "train/8", "--label", "0"], 2, "received: `train/8`; train has the rows 0 to 7)."),
        (["relabel", "cat/none.png", "--label", "0"], 2, "received: `cat/none.png`; the splits are train, val)."),
        (["relabel", "--label", "0"], 2, "Missing argument 'SAMPLE...'"),
        (["move", "--to", "test"], 2, "Missing argument 'SAMPLE...'"),
        (["move", "train/0", "--to", "tset"], 3, "Did you mean `test`?"),
        (["exclude"], 2, "An exclusion names samples"),
        (["exclude", "--problem", "blurred"], 2, "problem blurred, which no sample has"),
        (["classes"], 2, "A change of classes renames, names, merges, drops or keeps some (received: none of these)."),
        (["classes", "--rename", "cat"], 2, "`cat` is not two names with = between them. As in: --rename OLD=NEW."),
        (["classes", "--drop", "caat"], 3, "Did you mean `cat`?"),
        (["split", "--method", "shares"], 3, "Did you mean `share`?"),
        (["split", "--val-share", "25"], 3, "It is a part of 1, not per cent"),
        (["split", "--val-share", "0.6", "--test-share", "0.6"], 3, "are 1 together at most"),
        (["merge"], 2, "There is nothing to merge: a merge takes two datasets or more (received: 1)."),
    ],
)
def test_wrong_changes_are_refused_and_leave_no_folder(ziggurat, folder, tmp_path, words, code, said):
    answer = ziggurat("dataset", words[0], folder, *words[1:], "--out", tmp_path / "new")
    assert answer.code == code
    assert said in answer.err
    assert not (tmp_path / "new").exists()


def test_a_version_is_never_made_over_something(ziggurat, folder, tmp_path):
    answer = ziggurat("dataset", "move", folder, "val/0", "--to", "test", "--out", tmp_path)
    assert answer.code == 11
    assert "nothing is ever overwritten" in answer.err
