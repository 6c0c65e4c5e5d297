"""Real datasets, from their source to the check: what is known to be wrong with them is found."""

import pytest
from small_datasets_for_checks import SHARED, shared_files

from ziggurat.datasets.checks import check_dataset
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.datasets.splitting import SplitRule


@pytest.fixture
def checked(tmp_path):
    """Make a dataset of a source and check it."""

    def check(name, **asked):
        shared_files(f"{name}/*")
        request = CreationRequest(name=name, source=str(SHARED / name), workers=0, **asked)
        create_dataset(request, tmp_path / "set")
        with Dataset(tmp_path / "set") as dataset:
            return check_dataset(dataset, verify=True)

    return check


def test_a_random_split_of_raccoon_leaks_and_by_clusters_not(checked, tmp_path):
    report = checked("raccoon-voc", format=VocImporter.name, rule=SplitRule(method="share"))
    assert report["leak"].text.startswith("This split leaks: 4.0% of the validation samples have a near duplicate")
    assert report["duplicate-across-splits"].count == 4


def test_raccoon_by_clusters_has_no_leak(checked):
    report = checked("raccoon-voc", format=VocImporter.name, rule=SplitRule(method="cluster"))
    assert "leak" not in report
    assert "duplicate-across-splits" not in report
    assert report["duplicate"].count == 4


def test_the_boxes_without_size_of_bccd_are_found(checked):
    report = checked("bccd-voc", format=VocImporter.name, options={"zero_size_boxes": "keep"})
    finding = report["zero-size-box"]
    assert finding.count == 2
    assert {case.key for case in finding.cases} == {
        "JPEGImages/BloodImage_00338.jpg",
        "JPEGImages/BloodImage_00343.jpg",
    }
