"""Import of networks of Caffe and Torch from a program."""

from __future__ import annotations

import pytest

from tests.caffe_files import LENET
from tests.torch7_files import LENET as LUA
from ziggurat.errors import ZigguratError


def test_a_network_of_caffe_is_converted(client):
    found = client.models.import_caffe(LENET, input="1x28x28", compare=False)
    assert "self.conv1 = nn.Conv2d(1, 20, 5)" in found["network"]
    assert found["parity"] is None
    with pytest.raises(ZigguratError, match="Line 1") as caught:
        client.models.import_caffe("layer {")
    assert caught.value.details["line"] == 1


def test_a_network_of_torch_is_converted(client):
    pytest.importorskip("lupa")
    found = client.models.import_torch(LUA, input="1x28x28", compare=False)
    assert "self.conv1 = nn.Conv2d(1, 20, 5)" in found["network"]
    with pytest.raises(ZigguratError, match="Line 1") as caught:
        client.models.import_torch("return nn.Nope()")
    assert caught.value.details["line"] == 1
