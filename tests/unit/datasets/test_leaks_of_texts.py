"""A text or a row that is in training and in validation is warned of, with advice for texts and not for images."""

import pytest
from small_datasets_for_checks import jpeg, picture

from ziggurat.datasets.checks import check_dataset
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.workspace.dataset_versions import exclude

SHARE = SplitRule(method="share", val_share=0.5)


@pytest.fixture
def texts(tmp_path):
    lines = [f"{'ham' if number % 2 else 'spam'}\tcall me {number % 30 // 2}" for number in range(60)]
    (tmp_path / "texts.tsv").write_text("label\ttext\n" + "\n".join(lines) + "\n")
    request = CreationRequest(name="texts", source=str(tmp_path / "texts.tsv"), format="text", rule=SHARE, workers=0)
    create_dataset(request, tmp_path / "set")
    return tmp_path / "set"


def test_texts_in_two_splits_are_a_warning_of_the_dataset(texts):
    with Dataset(texts) as dataset:
        (warning,) = dataset.catalogue.note("warnings")
        report = check_dataset(dataset)
    assert "of the validation samples have the same text as a sample in training" in warning
    assert "`ziggurat dataset exclude DATASET --problem duplicate --out NEW`" in warning
    assert "cluster" not in warning
    assert report["duplicate-across-splits"].advice == (
        "Leave out those in training: results on known samples look better than they are."
    )


def test_the_advice_for_texts_ends_the_leak(texts, tmp_path):
    exclude(texts, [], tmp_path / "new", problem="duplicate")
    with Dataset(tmp_path / "new") as dataset:
        assert "duplicate-across-splits" not in check_dataset(dataset)


def test_rows_of_a_table_in_two_splits_are_named_rows(tmp_path):
    rows = [f"{number % 12},{number % 12 * 2}" for number in range(48)]
    (tmp_path / "rows.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    request = CreationRequest(name="rows", source=str(tmp_path / "rows.csv"), format="table", rule=SHARE, workers=0)
    create_dataset(request, tmp_path / "set")
    with Dataset(tmp_path / "set") as dataset:
        warnings = dataset.catalogue.note("warnings")
    assert sum("have the same row as a sample in training" in warning for warning in warnings) == 1


def test_pictures_in_two_splits_are_advised_to_be_clustered(tmp_path):
    for split, names in (("train", "abcdef"), ("val", "cgh")):
        for name in names:
            file = tmp_path / f"source/{split}/{'xy'[ord(name) % 2]}/{name}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(jpeg(picture(ord(name))))
    request = CreationRequest(name="p", source=str(tmp_path / "source"), format="class_folders", workers=0)
    create_dataset(request, tmp_path / "set")
    with Dataset(tmp_path / "set") as dataset:
        report = check_dataset(dataset)
    assert "split again by visual similarity (`cluster`)" in report["duplicate-across-splits"].advice
    assert report["leak"].text.endswith("split by visual similarity (`cluster`).")
