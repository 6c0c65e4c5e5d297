"""What the tests of notifications share."""

import pytest
from receiving import web_receiver


@pytest.fixture
def receiver():
    with web_receiver() as running:
        yield running
