"""Five lines of Python for each kind of data, on PyTorch."""

import pytest

from tests.five_lines import KINDS, check_five_lines
from tests.nightly import some_nightly


@pytest.mark.parametrize("kind", some_nightly(KINDS, but=["photos"]))
def test_five_lines_train_and_predict(kind, tmp_path):
    check_five_lines(kind, "torch", tmp_path)
