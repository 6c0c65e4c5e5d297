"""Lists of images become samples; lines that say nothing are listed with their number."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.datasets.folder_sets import MemoryDataset, Scanned, picture, put
from ziggurat.datasets.formats.shared.text_files import ListLine, parse_line
from ziggurat.datasets.formats.text_list.exporter import export_text_list
from ziggurat.datasets.formats.text_list.importer import TextList
from ziggurat.errors import DataError
from ziggurat.records.schema import Schema


@pytest.mark.parametrize(
    ("line", "path", "values"),
    [
        ("a.jpg 4", "a.jpg", ("4",)),
        ("a b.jpg 4", "a b.jpg", ("4",)),
        ("a  b.jpg    4\n", "a  b.jpg", ("4",)),
        ("  a.jpg\t\t 4 \r\n", "a.jpg", ("4",)),
        ("img 2.jpg 4", "img 2.jpg", ("4",)),
        ("without suffix 7 4", "without suffix 7", ("4",)),
        ("a.jpg\tred fox", "a.jpg", ("red fox",)),
        ("a.jpg\t0.5\t-1e-3", "a.jpg", ("0.5", "-1e-3")),
        ("a.jpg 0.5 2 .25", "a.jpg", ("0.5", "2", ".25")),
        ("a.jpg\t1 0 1", "a.jpg", ("1", "0", "1")),
        ("http://host/a.jpg 4", "http://host/a.jpg", ("4",)),
    ],
)
def test_35_parse_line(line, path, values):
    assert parse_line(line) == ListLine(path, values)


@pytest.mark.parametrize(
    "line", ["", "  ", "a.jpg", "a b.jpg", "4", "a.jpg cat", "a.jpg 4x", "a.jpg\t", "a\0.jpg 4", "a.jpg nan"]
)
def test_35_a_line_without_a_label_says_nothing(line):
    assert parse_line(line) is None


@given(st.text(), st.integers(0, 999_999_999))
def test_35_any_path_with_a_number_behind_is_read(path, number):
    plain = " ".join(path.replace("\0", "").split())
    if plain:
        found = parse_line(f"{plain}.jpg {number}\n")
        assert found == ListLine(f"{plain}.jpg", (str(number),))


def test_35_lines_that_are_no_class_are_listed(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("list.txt").write_text("a.png 0\n\nno label\nb.png -1\na.png word\n" + "a.png 0.5\nb.png 1")
    found = Scanned(TextList(), tmp_path / "list.txt", kind="image-classification")
    assert found.labels == {"a.png": 0, "b.png": 1}
    assert found.listed == {f"list.txt:{number}": "bad-line" for number in (3, 4, 5, 6)}
    assert found.problems[1].reason == "It must be a path and a whole number from 0."
    assert all(problem.left_out for problem in found.problems)


def test_34_a_folder_with_lists_of_splits(tmp_path):
    put(tmp_path, "x/a.png", "x/b c.png", "y/d.png", "y/e.png")
    tmp_path.joinpath("train.txt").write_text("x/a.png 0\nx/b c.png   1\n")
    tmp_path.joinpath("val.txt").write_text("y/d.png 1\n")
    tmp_path.joinpath("test.txt").write_text("y/e.png 0\n")
    tmp_path.joinpath("labels.txt").write_text("red fox\ngray cat\n\n")
    found = Scanned(TextList(), tmp_path)
    assert found.splits == {"x/a.png": "train", "x/b c.png": "train", "y/d.png": "val", "y/e.png": "test"}
    assert found.classes["x/b c.png"] == "gray cat"
    assert found.schema.class_names == ("red fox", "gray cat")
    guess = TextList().guess(tmp_path)
    assert guess is not None
    assert (guess.kind, guess.reason) == ("image-classification", "`train.txt` has paths of images and classes")
    assert guess.confidence > 0.8


def test_34_one_list_has_no_splits_and_options_name_the_others(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("all.lst").write_text("a.png 0\n")
    tmp_path.joinpath("more.lst").write_text("b.png 1\n")
    tmp_path.joinpath("names").write_text("no\nyes\n")
    assert Scanned(TextList(), tmp_path / "all.lst").splits == {"a.png": ""}
    found = Scanned(TextList(), tmp_path / "all.lst", val="more.lst", labels="names")
    assert found.splits == {"a.png": "train", "b.png": "val"}


@pytest.mark.parametrize("is_absolute", [False, True])
def test_34_relative_paths_below_a_folder(tmp_path, is_absolute):
    pictures = put(tmp_path / "pictures", "a.png")
    lists = tmp_path / "lists"
    lists.mkdir()
    lists.joinpath("train.txt").write_text("a.png 0\n")
    folder = str(pictures) if is_absolute else "../pictures"
    found = Scanned(TextList(), lists, folder=folder)
    assert found.labels == {"a.png": 0}
    reader = TextList().reader(lists, {})
    assert reader.read(str(found.samples[0].parts[0])) == picture(0)


def test_34_everything_may_be_relative_to_where_one_works(tmp_path, monkeypatch):
    put(tmp_path, "pictures/a.png", "lists/b.png")
    tmp_path.joinpath("lists/train.txt").write_text("a.png 0\n")
    tmp_path.joinpath("lists/near.txt").write_text("b.png 0\n")
    monkeypatch.chdir(tmp_path)
    for source, folder, expected in ((Path("lists"), "../pictures", 0), (Path("lists/near.txt"), "", 1)):
        found = Scanned(TextList(), source, folder=folder)
        assert TextList().reader(source, {}).read(str(found.samples[0].parts[0])) == picture(expected)


def test_34_absolute_paths(tmp_path):
    path = put(tmp_path, "elsewhere/a b.png") / "elsewhere/a b.png"
    tmp_path.joinpath("list.txt").write_text(f"{path} 3\n")
    found = Scanned(TextList(), tmp_path / "list.txt")
    assert found.labels == {str(path): 3}
    assert TextList().reader(tmp_path / "list.txt", {}).read(str(found.samples[0].parts[0])) == picture(0)


def test_34_exact_counts_in_the_order_of_the_list(tmp_path):
    names = [f"{number}.png" for number in range(30)][::-1]
    put(tmp_path, *names)
    tmp_path.joinpath("list.txt").write_text("".join(f"{name} {number % 3}\n" for number, name in enumerate(names)))
    found = Scanned(TextList(), tmp_path / "list.txt")
    assert list(found.labels.items()) == [(name, number % 3) for number, name in enumerate(names)]


@pytest.mark.parametrize("text", ["", "\n \n", "a.png\nb.png\n", "a.png cat\n"])
def test_36_a_list_without_valid_lines(tmp_path, text):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("list.txt").write_text(text)
    with pytest.raises(DataError, match=r"`list.txt` has no valid lines"):
        Scanned(TextList(), tmp_path / "list.txt")


def test_36_the_second_list_too(tmp_path):
    put(tmp_path, "a.png")
    tmp_path.joinpath("train.txt").write_text("a.png 0\n")
    tmp_path.joinpath("val.txt").write_text("nothing\n")
    with pytest.raises(DataError, match=r"`val.txt` has no valid lines"):
        Scanned(TextList(), tmp_path)


# ---- labels


def test_names_of_classes_behind_a_tab(tmp_path):
    put(tmp_path, "a.png", "b.png", "c.png", "d.png")
    tmp_path.joinpath("train.txt").write_text("a.png\tred fox\nb.png\tcat\n")
    tmp_path.joinpath("val.txt").write_text("c.png\tcat\nd.png\tdog\n")
    found = Scanned(TextList(), tmp_path)
    assert found.schema.class_names == ("cat", "red fox")
    assert found.classes == {"a.png": "red fox", "b.png": "cat", "c.png": "cat"}
    assert found.listed == {"val.txt:2": "unknown-class"}
    tmp_path.joinpath("labels.txt").write_text("red fox\ndog\ncat\n")
    assert Scanned(TextList(), tmp_path).labels == {"a.png": 0, "b.png": 2, "c.png": 2, "d.png": 1}


def test_81_a_number_beyond_the_names_is_listed(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("train.txt").write_text("a.png 0\nb.png 2\n")
    tmp_path.joinpath("labels.txt").write_text("one\ntwo\n")
    found = Scanned(TextList(), tmp_path)
    assert found.labels == {"a.png": 0}
    assert found.problems[0].reason == "There is no class '2'; there are 2 classes."


def test_a_number_too_large_to_count_to(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("list.txt").write_text(f"a.png 1\nb.png 999999999\na.png {'9' * 5000}\n")
    found = Scanned(TextList(), tmp_path / "list.txt", kind="image-classification")
    assert found.schema.class_names == ("0", "1")
    assert found.listed == {"list.txt:2": "unknown-class", "list.txt:3": "bad-line"}


def test_97_values_to_be_predicted(tmp_path):
    put(tmp_path, "a b.png", "c.png", "d.png")
    tmp_path.joinpath("list.txt").write_text("a b.png 0.5 -2\nc.png\t1\t3e2\nd.png 7\n")
    found = Scanned(TextList(), tmp_path / "list.txt")
    assert found.schema.kind == "image-regression"
    assert found.labels == {"a b.png": [0.5, -2.0], "c.png": [1.0, 300.0]}
    assert found.problems[0].reason == "It must be a path and 2 numbers."


def test_97_whole_numbers_may_be_values(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("list.txt").write_text("a.png 30\nb.png 41\n")
    assert Scanned(TextList(), tmp_path / "list.txt").labels == {"a.png": 30, "b.png": 41}
    found = Scanned(TextList(), tmp_path / "list.txt", kind="image-regression")
    assert found.labels == {"a.png": [30.0], "b.png": [41.0]}


# ---- files as they come


@pytest.mark.parametrize(
    "content",
    [
        "ä.png 0\r\nb.png 1\r\n".encode(),
        b"\xef\xbb\xbf" + "ä.png 0\nb.png 1".encode(),
        "ä.png 0\r\nb.png 1\r\n".encode("utf-16"),
    ],
    ids=["Windows line ends", "UTF-8 with a mark", "UTF-16"],
)
def test_lists_of_other_systems(tmp_path, content):
    put(tmp_path, "ä.png", "b.png")
    tmp_path.joinpath("list.txt").write_bytes(content)
    assert Scanned(TextList(), tmp_path / "list.txt").labels == {"ä.png": 0, "b.png": 1}


def test_lines_that_are_no_text_are_listed(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("list.txt").write_bytes(b"a.png 0\ncaf\xe9.png 1\n" + b"x" * 200_000 + b" 1\nb.png 1\n")
    found = Scanned(TextList(), tmp_path / "list.txt")
    assert found.labels == {"a.png": 0, "café.png": 1, "b.png": 1}
    assert found.listed == {"list.txt": "encoding", "list.txt:3": "bad-line"}


def test_a_picture_that_is_listed_twice(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("train.txt").write_text("a.png 0\nb.png 1\na.png 1\n")
    tmp_path.joinpath("val.txt").write_text("b.png 1\n")
    found = Scanned(TextList(), tmp_path)
    assert found.splits == {"a.png": "train", "b.png": "train"}
    assert found.listed == {"train.txt:3": "other-label", "val.txt:1": "duplicate-key"}


def test_a_wrong_folder_is_found_before_its_pictures_miss(tmp_path):
    put(tmp_path, "a.png")
    tmp_path.joinpath("list.txt").write_text("".join(f"gone/{number}.png 0\n" for number in range(200)))
    with pytest.raises(DataError, match=r"the first 100, such as `gone/0.png`, are not below `.*/pictures`"):
        Scanned(TextList(), tmp_path / "list.txt", folder="pictures")
    tmp_path.joinpath("list.txt").write_text("gone/0.png 0\na.png 0\n")
    assert list(Scanned(TextList(), tmp_path / "list.txt").labels) == ["gone/0.png", "a.png"]


def test_no_list_at_all(tmp_path):
    with pytest.raises(DataError, match="is no list, and has no train"):
        Scanned(TextList(), tmp_path)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        Scanned(TextList(), tmp_path, train="gone.txt")


@pytest.mark.parametrize(
    "text",
    ["000001\n000002\n", "a.png b.png 1\n", "ham\tGo until jurong point\n", "a.png b.png\n", "7\t1\n", "one, two, 3\n"],
    ids=["names of VOC", "pairs", "messages", "masks", "a table", "CSV"],
)
def test_guess_takes_no_lists_of_other_formats(tmp_path, text):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("train.txt").write_text(text)
    assert TextList().guess(tmp_path) is None
    assert TextList().guess(tmp_path / "train.txt") is None


def test_guess_is_unsure_where_no_picture_is_there(tmp_path):
    tmp_path.joinpath("train.txt").write_text("x/a.png 0\nx/b.png 1\n")
    guess = TextList().guess(tmp_path)
    assert guess is not None
    assert guess.confidence < 0.5


def test_lists_without_a_suffix_are_read(tmp_path):
    put(tmp_path, "p/0.png", "p/1.png", "p/2.png")
    (tmp_path / "train").write_text("p/0.png 0\np/1.png 1\n")
    (tmp_path / "val").write_text("p/2.png 1\n")
    assert TextList().guess(tmp_path).confidence == 0.88
    assert Scanned(TextList(), tmp_path).splits == {"p/0.png": "train", "p/1.png": "train", "p/2.png": "val"}


def test_the_only_list_of_a_folder_needs_no_suffix(tmp_path):
    put(tmp_path, "p/0.png", "p/1.png")
    (tmp_path / "labelled").write_text("p/0.png 0\np/1.png 1\n")
    (tmp_path / "LICENSE").write_text("Free to use.\n")
    assert Scanned(TextList(), tmp_path).labels == {"p/0.png": 0, "p/1.png": 1}


# ---- classes counted from 1, several labels, encodings


def listed(root, numbers, names, *more):
    put(root, *(f"{at}.png" for at in range(len(numbers))))
    root.joinpath("train.txt").write_text("".join(f"{at}.png {number}\n" for at, number in enumerate(numbers)))
    root.joinpath("labels.txt").write_text("".join(f"{name}\n" for name in names))
    return root


def test_classes_counted_from_one_get_their_names_and_are_told(tmp_path):
    found = Scanned(TextList(), listed(tmp_path, [1, 3, 2, 1], ["no", "mild", "severe"]))
    assert list(found.classes.values()) == ["no", "severe", "mild", "no"]
    (problem,) = found.problems
    assert (problem.key, problem.kind, problem.left_out) == ("labels.txt", "counted-from-one", False)
    assert "they are taken as counted from 1" in problem.reason
    said = Scanned(TextList(), tmp_path, first_number="0")
    assert [each.kind for each in said.problems] == ["unknown-class"]


def test_a_zero_in_any_list_counts_from_zero(tmp_path):
    listed(tmp_path, [1, 2, 3], ["a", "b", "c"])
    tmp_path.joinpath("val.txt").write_text("2.png 0\n")
    found = Scanned(TextList(), tmp_path)
    assert found.classes == {"0.png": "b", "1.png": "c", "2.png": "a"}
    assert [problem.class_name for problem in found.problems] == ["3"]


@pytest.mark.parametrize("numbers", [[1, 2, 1], [1, 2, 4]])
def test_numbers_that_may_count_from_both_are_asked_for(tmp_path, numbers):
    listed(tmp_path, numbers, ["cat", "dog", "owl"])
    with pytest.raises(DataError, match="from 0 or from 1") as caught:
        Scanned(TextList(), tmp_path)
    assert caught.value.details["field"] == "options.first_number"
    assert "to 0, where 0 stands for `cat`" in caught.value.advice
    assert Scanned(TextList(), tmp_path, first_number="1").classes["0.png"] == "cat"
    assert Scanned(TextList(), tmp_path, first_number="0").classes["0.png"] == "dog"


def test_a_background_is_class_zero(tmp_path):
    found = Scanned(TextList(), listed(tmp_path, [1, 2], ["__background__", "cat", "dog"]))
    assert list(found.classes.values()) == ["cat", "dog"]


def test_an_export_without_its_first_class_comes_back(tmp_path):
    schema = Schema(kind="image-classification", class_names=("a", "b", "c"))
    dataset = MemoryDataset(schema, {"train": [("x.png", picture(), 1), ("y.png", picture(1), 2)]})
    export_text_list(dataset, tmp_path / "out")
    assert Scanned(TextList(), tmp_path / "out").classes == {"x.png": "b", "y.png": "c"}


@pytest.mark.parametrize("names", [["cat", "dog", "owl"], None])
def test_several_ones_in_a_line_are_labels(tmp_path, names):
    put(tmp_path, "a.png", "b.png", "c.png")
    tmp_path.joinpath("train.txt").write_text("a.png 1 0 1\nb.png 0 0 0\nc.png 0 1 0\n")
    if names:
        tmp_path.joinpath("labels.txt").write_text("".join(f"{name}\n" for name in names))
    found = Scanned(TextList(), tmp_path)
    assert (found.schema.kind, found.schema.class_names) == ("image-regression", tuple(names or "012"))
    assert found.labels == {"a.png": [1, 0, 1], "b.png": [0, 0, 0], "c.png": [0, 1, 0]}


def test_several_labels_come_back_from_an_export(tmp_path):
    schema = Schema(kind="image-regression", class_names=("cat", "dog"))
    rows = [("x.png", picture(), [1.0, 1.0]), ("y.png", picture(1), [0.0, 1.0])]
    export_text_list(MemoryDataset(schema, {"train": rows}), tmp_path / "out")
    found = Scanned(TextList(), tmp_path / "out")
    assert (found.schema.class_names, found.labels) == (("cat", "dog"), {"x.png": [1, 1], "y.png": [0, 1]})


def test_two_lists_of_a_split_are_both_read(tmp_path):
    put(tmp_path, "a.png", "b.png")
    for name, line in (("val", "a.png 0"), ("validation", "b.png 0"), ("train", "")):
        tmp_path.joinpath(f"{name}.txt").write_text(f"{line}\n")
    tmp_path.joinpath("train.txt").unlink()
    assert Scanned(TextList(), tmp_path).splits == {"a.png": "val", "b.png": "val"}


def test_names_in_an_encoding_of_china_are_asked_for(tmp_path):
    put(tmp_path, "a.png", "b.png")
    tmp_path.joinpath("train.txt").write_bytes("a.png\t猫\nb.png\t狗\n".encode("gbk"))
    with pytest.raises(DataError, match="As gb18030 it reads") as caught:
        Scanned(TextList(), tmp_path)
    assert caught.value.details["field"] == "options.encoding"
    assert Scanned(TextList(), tmp_path, encoding="gbk").classes == {"a.png": "猫", "b.png": "狗"}


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True, deadline=None)
@given(
    lines=st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["0", "1", "2", "7", "x", "0.5", ""])),
        min_size=1,
        max_size=20,
    )
)
def test_lines_in_are_images_out_and_lines_reported(tmp_path, lines):
    put(tmp_path, "a.png", "b.png", "c.png", "d.png")
    tmp_path.joinpath("list.txt").write_text("".join(f"{name}.png {label}\n" for name, label in [*lines, ("a", "0")]))
    found = Scanned(TextList(), tmp_path / "list.txt", kind="image-classification")
    lost = sum(problem.left_out for problem in found.problems)
    assert len(found.samples) + lost == len(lines) + 1
