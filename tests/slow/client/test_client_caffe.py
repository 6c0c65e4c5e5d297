"""Import of a network of Caffe from a program."""

from __future__ import annotations

import pytest

from tests.caffe_files import LENET
from ziggurat.errors import ZigguratError


def test_a_network_of_caffe_is_converted(client):
    found = client.models.import_caffe(LENET, input="1x28x28", compare=False)
    assert "self.conv1 = nn.Conv2d(1, 20, 5)" in found["network"]
    assert found["parity"] is None
    with pytest.raises(ZigguratError, match="Line 1") as caught:
        client.models.import_caffe("layer {")
    assert caught.value.details["line"] == 1
