"""Shows how the numbers of accelerators become those that a framework uses in a process."""

import pytest

from ziggurat.worker.build import visible_devices


@pytest.mark.parametrize(
    ("devices", "visible", "expected"),
    [
        (["gpu:3"], "3", ("gpu:0",)),
        (["gpu:1", "gpu:3"], "1,3", ("gpu:0", "gpu:1")),
        (["/gpu:3", "cpu:0"], "1, 3", ("/gpu:1", "cpu:0")),
        (["gpu:0"], "2,3", ("gpu:0",)),
        (["gpu:0"], "", ("gpu:0",)),
        (["cpu:0"], "0", ("cpu:0",)),
        ([], "0", ()),
    ],
)
def test_numbers_are_those_of_what_is_visible(devices, visible, expected):
    assert visible_devices(devices, {"CUDA_VISIBLE_DEVICES": visible}) == expected


def test_without_the_variable_they_stay():
    assert visible_devices(["gpu:2"], {}) == ("gpu:2",)
