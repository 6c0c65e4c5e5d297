"""With few samples, a network that starts from the weights that come with Ziggurat beats one from scratch."""

from __future__ import annotations

import statistics

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from tools.compare_fine_tuning import SIDES, Comparison, compare, digits

pytestmark = pytest.mark.torch

LEAST_MARGIN = 0.1
"""The results of the docs have a larger one; other processors round differently."""


@pytest.mark.nightly
def test_fine_tuning_beats_scratch_on_few_digits(tmp_path):
    wanted = Comparison(per_class=5, epochs=10, rates=(0.02,), seeds=3)
    found = compare(digits(), wanted, tmp_path)
    scratch, tuned = (found[side][0.02] for side in SIDES)
    assert all(ours > theirs for ours, theirs in zip(tuned, scratch, strict=True))
    assert statistics.mean(tuned) - statistics.mean(scratch) >= LEAST_MARGIN
