"""Photographs, and the engines that are there."""

import pytest
from fast_photographs import encoded, smooth_image

from ziggurat.dataflow.fast.engines import open_engine
from ziggurat.errors import DataError

ENGINES = ["native", "opencv"]


@pytest.fixture
def photographs():
    """Twenty JPEG files of various sizes."""
    return [encoded(smooth_image(60 + 7 * i, 90 + 5 * i, seed=i)) for i in range(20)]


@pytest.fixture(params=ENGINES)
def engine(request):
    """Each engine; one that is not there is skipped with its reason."""
    try:
        return open_engine(request.param)
    except DataError as error:
        pytest.skip(str(error))
