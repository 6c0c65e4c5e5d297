"""Shows which values of a curve count as good by default."""

import pytest

from ziggurat.specs.parts import BestRule, EarlyStopping


@pytest.mark.parametrize(
    ("tag", "direction"),
    [
        ("validation_accuracy", "max"),
        ("val/top5", "max"),
        ("validation_mean-iou", "max"),
        ("validation_error", "min"),
        ("cost", "min"),
        ("mapping_loss", "min"),
    ],
)
def test_the_name_decides(tag, direction):
    assert BestRule(tag=tag).direction == EarlyStopping(tag=tag).direction == direction


def test_what_is_said_counts():
    assert BestRule(tag="validation_accuracy", mode="min").direction == "min"
    assert EarlyStopping(tag="cost", mode="max").direction == "max"
