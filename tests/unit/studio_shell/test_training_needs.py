"""Shows what a training asks of the machine: what its spec names, or one accelerator where it may have one."""

import pytest

from ziggurat.entities import ResourceRequest
from ziggurat.specs import TrainSpec
from ziggurat.workspace.new_jobs import train_needs


def spec(**fields):
    return TrainSpec.model_validate({"kind": "train", "version": 1, "network": "lenet", "data": "digits", **fields})


@pytest.mark.parametrize(
    ("fields", "accelerators", "expected"),
    [
        ({"backend": "tensorflow"}, 2, ResourceRequest(devices=1, slot="device")),
        ({"backend": "tensorflow"}, 0, ResourceRequest(slot="cpu")),
        ({"backend": "tensorflow", "devices": ["cpu:0"]}, 2, ResourceRequest(slot="cpu")),
        ({"backend": "null"}, 2, ResourceRequest(slot="cpu")),
        (
            {"backend": "tensorflow", "devices": ["gpu:3", "gpu:1"]},
            4,
            ResourceRequest(devices=2, device_indices=(1, 3), slot="device"),
        ),
    ],
)
def test_needs(fields, accelerators, expected):
    assert train_needs(spec(**fields), accelerators=accelerators) == expected
