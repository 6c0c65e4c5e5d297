"""``dataset create``, ``guess`` and ``formats``: what cannot be is said before anything is written."""

import json

import pytest
from PIL import Image

from ziggurat.cli.dataset_sources import create
from ziggurat.cli.spec import flag_of
from ziggurat.specs import DatasetSpec, describe_fields
from ziggurat.workspace.datasets import export_options


@pytest.fixture
def flowers(tmp_path):
    """Class folders with eight images, in a path with a blank and an umlaut."""
    root = tmp_path / "meine blüten"
    for number in range(8):
        folder = root / ("rose", "sun_flower")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), (number * 30, 10, 20)).save(folder / f"{number}.png")
    return root


def test_every_field_of_the_spec_is_a_flag_or_an_argument():
    names = {parameter.name for parameter in create.params}
    fields = {field.path for field in describe_fields(DatasetSpec) if field.is_top}
    assert fields <= names
    own = {"out", "val_share", "test_share", "assignments", "strict", "dry_run", "detach", "json", "debug"}
    assert names - fields == own, "a flag that is no field"
    flags = {option for parameter in create.params for option in parameter.opts}
    assert {flag_of(field) for field in describe_fields(DatasetSpec) if field.is_top} - flags == {
        "--source",
        "--options",
    }


def test_a_dry_run_prints_the_spec_and_makes_nothing(ziggurat, flowers, tmp_path):
    answer = ziggurat(
        *("dataset", "create", flowers, "--out", tmp_path / "set", "--dry-run", "--name", "blooms", "--size", "4x6"),
        *("--encoding", "jpeg", "--val-share", "0.1", "--test-share", "0.2", "--set", "splits.method=stem"),
        *("--option", "seed=3", "--option", "splits=auto", "--seed", "5", "--store", "tfrecord", "--channels", "1"),
    )
    assert answer.code == 0
    spec = answer.content
    assert spec["source"] == str(flowers), "absolute, as it is on disk"
    assert (spec["name"], spec["size"], spec["channels"], spec["store"]) == ("blooms", [4, 6], 1, "tfrecord")
    assert spec["options"] == {"seed": 3, "splits": "auto"}
    assert {name: spec["splits"][name] for name in ("method", "val_share", "test_share")} == {
        "method": "stem",
        "val_share": 0.1,
        "test_share": 0.2,
    }
    assert not (tmp_path / "set").exists()


def test_a_relative_source_is_kept_as_an_absolute_path(ziggurat, flowers, monkeypatch):
    monkeypatch.chdir(flowers.parent)
    for said in (flowers.name, f"./{flowers.name}/", f"file://{flowers}"):
        spec = ziggurat("dataset", "create", said, "--dry-run").content
        assert (spec["source"], spec["name"]) == (str(flowers), flowers.name)
    monkeypatch.chdir(flowers)
    assert ziggurat("dataset", "create", ".", "--dry-run").content["name"] == flowers.name


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://example.org/data/my%20flowers/", "my flowers"),
        ("https://example.org/flowers.zip?part=2", "flowers.zip"),
        ("s3://bucket", "bucket"),
    ],
)
def test_an_address_is_kept_as_it_is_and_gives_a_name(ziggurat, address, name):
    spec = ziggurat("dataset", "create", address, "--dry-run").content
    assert (spec["source"], spec["name"]) == (address, name)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--format", "clas_folders"], 3, "Did you mean `class_folders`?"),
        (["--option", "min_per_clas=2"], 3, "Did you mean `min_per_class`"),
        (["--format", "idx", "--option", "sead=2"], 3, "is not a known option of the format idx"),
        (["--option", "min_per_class=many"], 3, "`min_per_class` must be a whole number"),
        (["--option", "seed"], 2, "`seed` is not NAME=VALUE, which `--option` takes. As in: --option seed=3."),
        (["--optoin", "seed=3"], 2, "Did you mean `--option`"),
        (["--encoding", "jpg"], 3, "Did you mean `jpeg`"),
        (
            ["--encoding", "reference", "--size", "8"],
            3,
            "`encoding` is reference, with which images stay as they are, and `size` is set.",
        ),
        (["--set", "splits.metod=stem"], 3, "`splits.metod` is not a field"),
        (["--val-share", "0.6", "--test-share", "0.4"], 3, "must leave something for training"),
    ],
)
def test_mistyped_words_are_refused_and_leave_no_folder(ziggurat, flowers, tmp_path, words, code, said):
    answer = ziggurat("dataset", "create", flowers, "--out", tmp_path / "set", *words)
    assert answer.code == code
    assert said in answer.err
    assert not (tmp_path / "set").exists()


def test_28_a_missing_source_is_said_and_leaves_no_folder(ziggurat, tmp_path):
    answer = ziggurat("dataset", "create", tmp_path / "nowhere", "--out", tmp_path / "set")
    assert answer.code == 4
    assert answer.err == (f"Error: `{tmp_path / 'nowhere'}` does not exist. Check the path.\n")
    assert not (tmp_path / "set").exists()


def test_28_a_source_of_no_known_format_leaves_no_folder(ziggurat, tmp_path):
    (tmp_path / "empty").mkdir()
    answer = ziggurat("dataset", "create", tmp_path / "empty", "--out", tmp_path / "set")
    assert answer.code == 4
    assert "No importer recognizes" in answer.err
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("flag", "value", "rule"),
    [
        ("--val-share", "1.5", "`splits.val_share` must be less than 1 (received: 1.5)."),
        ("--val-share", "-0.1", "`splits.val_share` must be at least 0 (received: -0.1)."),
        ("--val-share", "abc", '`splits.val_share` must be a number (received: "abc").'),
        ("--test-share", "none", '`splits.test_share` must be a number (received: "none").'),
        ("--quality", "0", "`quality` must be at least 1 (received: 0)."),
        ("--quality", "101", "`quality` must be at most 100 (received: 101)."),
        ("--size", "0", ", not a number of pixels, or height and width, at least 1"),
        ("--channels", "2", "`channels` must be 1 or 3 (received: 2)"),
        ("--seed", "-1", "`seed` must be at least 0 (received: -1)."),
        ("--workers", "2.5", "`workers` must be a whole number (received: 2.5)."),
        ("--set", "splits.max_per_class=0", "`splits.max_per_class` must be at least 1 (received: 0)."),
    ],
)
def test_37_numbers_have_a_range_and_say_it(ziggurat, flowers, tmp_path, flag, value, rule):
    answer = ziggurat("dataset", "create", flowers, "--out", tmp_path / "set", flag, value)
    assert answer.code == 3
    assert rule in answer.err
    assert not (tmp_path / "set").exists()


def test_51_unwritable_or_unreadable_is_said_before_resizing(ziggurat, flowers, tmp_path):
    (tmp_path / "file").write_text("no folder")
    for out, code, said in (
        ("file", 10, "the folder holds `file`"),
        ("file/set", 11, "cannot be made: Not a directory"),
        (".", 10, "holds"),
    ):
        answer = ziggurat("dataset", "create", flowers, "--size", "8", "--out", tmp_path / out)
        assert answer.code == code
        assert said in answer.err
    (tmp_path / "picture.png").write_bytes(b"no image")
    unreadable = ziggurat("dataset", "create", tmp_path / "picture.png", "--size", "8", "--out", tmp_path / "set")
    assert unreadable.code == 4
    assert "No importer recognizes" in unreadable.err
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("size", ["0", "8x0", "-8", "8.5", "8x8x3", "big", "8x"])
def test_51_a_size_is_one_or_two_numbers_of_pixels(ziggurat, flowers, tmp_path, size):
    answer = ziggurat("dataset", "create", flowers, "--size", size, "--out", tmp_path / "set")
    assert answer.code == 3
    assert "size" in answer.err
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("address", ["s3://AKIA123:very/secret@flowers/train", "https://me:very-secret@example.org/x"])
def test_a_password_in_an_address_is_refused_and_not_repeated(ziggurat, tmp_path, address):
    for words in (["--dry-run"], []):
        answer = ziggurat("dataset", "create", address, "--out", tmp_path / "set", *words)
        assert answer.code == 3
        assert "An address holds no user and no password" in answer.err
        assert "secret" not in answer.err
    assert not (tmp_path / "set").exists()


def test_a_folder_that_holds_something_is_left_alone(ziggurat, flowers, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    answer = ziggurat("dataset", "create", flowers, "--out", tmp_path / "mine")
    assert answer.code == 10
    assert "the folder holds `letter.txt`" in answer.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("place", [".", "new/set"])
def test_a_data_set_is_not_made_in_its_source(ziggurat, flowers, place):
    answer = ziggurat("dataset", "create", flowers, "--out", flowers / place)
    assert answer.code == 10
    assert "it lies in the source" in answer.err
    assert sorted(path.name for path in flowers.iterdir()) == ["rose", "sun_flower"]


def test_a_folder_of_another_job_is_refused_with_how_to_go_on(ziggurat, flowers, job):
    answer = ziggurat("dataset", "create", flowers, "--out", job)
    assert answer.code == 10
    assert f"ziggurat resume {job}" in answer.err


def test_guess_says_the_format_and_why(ziggurat, flowers):
    answer = ziggurat("dataset", "guess", flowers)
    assert answer.out.splitlines()[0].split() == ["format", "kind", "sure", "why"]
    assert answer.out.splitlines()[1].startswith("class_folders  image-classification")
    assert answer.out.splitlines()[1].endswith("2 folders with images")
    first = ziggurat("dataset", "guess", flowers, "--json").content[0]
    assert set(first) == {"format", "kind", "confidence", "reason", "options", "loses", "folder"}
    assert first["format"] == "class_folders"


def test_guess_of_nothing(ziggurat, tmp_path):
    (tmp_path / "empty").mkdir()
    assert ziggurat("dataset", "guess", tmp_path / "empty").out.startswith("No format is recognized")
    assert ziggurat("dataset", "guess", tmp_path / "empty", "--json").content == []
    assert ziggurat("dataset", "guess", tmp_path / "nowhere").code == 4
    away = ziggurat("dataset", "guess", "https://me:very-secret@example.org/x")
    assert away.code == 4
    assert "secret" not in away.err


def test_formats_say_what_is_read_and_what_is_written(ziggurat):
    rows = {row["name"]: row for row in ziggurat("dataset", "formats", "--json").content}
    assert len(rows) >= 18
    assert rows["voc"]["kinds"] == rows["voc"]["exports"] == ["detection", "segmentation"]
    assert rows["siamese_pairs"]["exports"] == []
    assert "Pascal VOC (XML)" in ziggurat("dataset", "formats").out


def test_formats_of_one_name_list_its_options(ziggurat):
    text = ziggurat("dataset", "formats", "idx").out
    assert text.startswith("idx (MNIST)\n\noption")
    assert "`ziggurat dataset export --format idx`: compress." in text
    one = ziggurat("dataset", "formats", "class_folders", "--json").content
    assert {option["name"] for option in one["options"]} >= {"min_per_class", "max_per_class", "seed"}
    mistyped = ziggurat("dataset", "formats", "idxx")
    assert mistyped.code == 3
    assert "Did you mean `idx`?" in mistyped.err


def test_options_of_exports_are_their_keywords():
    assert export_options("digits_hdf5") == ("compression", "elements_per_file")
    assert export_options("class_folders") == ()


def test_a_mistyped_verb_names_the_nearest(ziggurat):
    answer = ziggurat("dataset", "creat")
    assert (answer.code, answer.out) == (2, "")
    assert "Did you mean `ziggurat dataset create`?" in answer.err
    as_json = ziggurat("dataset", "creat", "--json")
    assert json.loads(as_json.err or as_json.out)


def test_an_unclear_format_is_asked_for_and_then_obeyed(ziggurat, flowers, tmp_path):
    loose = flowers / "rose"
    answer = ziggurat("dataset", "create", loose, "--out", tmp_path / "set")
    assert answer.code == 4
    assert "it may be: class_folders (30% sure: images without classes" in answer.err
    assert "Choose one with --format NAME" in answer.err
    assert not (tmp_path / "set").exists()
    said = ziggurat("dataset", "guess", loose).out
    assert "None is taken by itself: choose one with `dataset create --format NAME`." in said
    named = ("--format", "class_folders", "--option", "classes=none")
    assert ziggurat("dataset", "create", loose, *named, "--dry-run").code == 0


def test_guess_names_the_folder_that_alone_fits(ziggurat, flowers):
    (flowers.parent / "README.md").write_text("# Flowers")
    answer = ziggurat("dataset", "guess", flowers.parent)
    assert f"`dataset create` takes class_folders, for the folder {flowers.name}, which alone holds data." in answer.out
