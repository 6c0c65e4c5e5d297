"""The check before a training with a real network: its parameters, what it needs, and code that cannot be built."""

from __future__ import annotations

import pytest

from ziggurat.settings import Settings
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.bootstrap import open_studio

pytestmark = pytest.mark.tensorflow

_SPEC = {"kind": "train", "version": 1, "network": "lenet", "data": "digits", "backend": "tensorflow"}
_BROKEN = {"source": "file", "path": "mine.py", "text": "class UserModel(Tower):\n    nonsense\n"}


@pytest.fixture
def studio(tmp_path):
    with open_studio(Settings(workspace=tmp_path / "workspace"), start=False) as opened:
        yield opened


@pytest.mark.timeout(600)
def test_parameters_memory_and_disk_of_lenet(studio):
    found = studio.training.preflight(JobRequest(spec={**_SPEC, "batch_size": 10, "epochs": 4}))

    by_name = {each["name"]: each for each in found["findings"]}
    described = studio.networks.describe("lenet", input_shape=[28, 28, 1], classes=10)
    assert found["parameters"] == described["parameters"] > 400_000
    assert by_name["memory"]["level"] == "ok"
    assert by_name["memory"]["weights_bytes"] == 4 * sum(each["count"] for each in described["variables"])
    assert by_name["memory"]["layers_bytes"] > 10 * 4 * (24 * 24 * 20)  # the first layer alone
    assert by_name["disk"]["checkpoint_bytes"] == by_name["memory"]["weights_bytes"] + 4 * found["parameters"]
    assert by_name["disk"]["checkpoints"] == 4


@pytest.mark.nightly
def test_code_that_cannot_be_built_is_a_finding(studio):
    found = studio.training.preflight(JobRequest(spec={**_SPEC, "network": _BROKEN}))

    (broken,) = [each for each in found["findings"] if each["name"] == "network"]
    assert (broken["level"], broken["field"]) == ("error", "network")
    assert "nonsense" in broken["sentence"]
    assert found["parameters"] is None
