"""What the tests of jobs share."""

import pytest
from supervised_studio import Studio


@pytest.fixture
def studio(tmp_path):
    made = Studio(tmp_path)
    yield made
    made.supervisor.close()
