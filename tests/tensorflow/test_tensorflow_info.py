"""What the description of the TensorFlow backend says is so."""

from ziggurat.testing import BackendInfoConformance


class TestTensorFlowInfo(BackendInfoConformance):
    def name(self) -> str:
        return "tensorflow"
