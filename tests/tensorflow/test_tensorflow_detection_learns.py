"""The small detector finds shapes after a short training on TensorFlow."""

from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tests.detection_learns import check_that_it_finds_shapes


@pytest.mark.nightly  # the build has it on PyTorch
def test_the_small_detector_finds_shapes(tmp_path: Path) -> None:
    check_that_it_finds_shapes("tensorflow", tmp_path)
