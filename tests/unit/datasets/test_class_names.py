"""Names and colors of all classes at once: masks may have had none, numbers and records stay."""

from __future__ import annotations

import pytest

from ziggurat.datasets.versions.classes import name_classes
from ziggurat.errors import DataError, UsageError
from ziggurat.records.schema import Schema

MASKS = Schema(kind="segmentation", class_names=("0", "50"), details={"mask_values": [0, 50], "mask_ignored": 255})


def test_names_and_colors_are_taken_and_details_stay():
    edit = name_classes(MASKS, ["sky", "road"], [(0, 0, 0), (255, 0, 0)])
    assert edit.schema.class_names == ("sky", "road")
    assert edit.schema.colours == ((0, 0, 0), (255, 0, 0))
    assert edit.schema.details == MASKS.details
    assert edit.numbers.tolist() == [0, 1]


def test_names_may_be_exchanged():
    schema = Schema(
        kind="image-classification",
        class_names=("cat", "dog"),
        details={"categories": [{"name": "cat"}, {"name": "dog"}]},
    )
    edit = name_classes(schema, ["dog", "cat"])
    assert edit.schema.class_names == ("dog", "cat")
    assert edit.schema.details == {"categories": [{"name": "dog"}, {"name": "cat"}]}


def test_masks_without_names_get_some():
    assert name_classes(Schema(kind="segmentation"), ["sky", "road"]).schema.class_names == ("sky", "road")


@pytest.mark.parametrize(
    ("names", "colors"),
    [
        (["sky"], []),
        (["sky", "sky"], []),
        (["sky", ""], []),
        (["sky", "road"], [(0, 0, 0)]),
        (["sky", "road"], [(0, 0, 0), (0, 0, 256)]),
    ],
)
def test_wrong_names_and_colors_are_refused(names, colors):
    with pytest.raises(UsageError):
        name_classes(MASKS, names, colors)


def test_a_set_without_classes_gets_no_names():
    with pytest.raises(DataError, match="Classes are named in a dataset that has some"):
        name_classes(Schema(kind="image-to-image"), ["a"])
