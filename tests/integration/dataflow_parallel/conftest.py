"""Fork server shared by all tests here: one for every flow would take most of the time."""

from collections.abc import Iterator

import pytest
from parallel_samples import double, numbers

from ziggurat.dataflow.parallel import MultiProcessMapData


@pytest.fixture(scope="session")
def fork_server() -> Iterator[None]:
    with MultiProcessMapData(numbers(1), 1, double) as flow:
        list(flow)
        yield
