"""The small detector finds shapes after a short training on PyTorch."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from tests.detection_learns import check_that_it_finds_shapes


def test_the_small_detector_finds_shapes(tmp_path: Path) -> None:
    check_that_it_finds_shapes("torch", tmp_path)
