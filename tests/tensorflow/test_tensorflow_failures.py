"""What fails while a graph runs is said in the user's terms: the line, the shapes, the memory."""

import numpy as np
import pytest
from tensorflow_networks import SMALL, batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.calls import explained
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import ConfigurationError, NetworkCodeError, TrainingError, UnknownNameError


def built(text: str, **options: object) -> TensorFlowProgram:
    request = {"network": "mine.py", "network_text": text, **class_arrays((8, 8, 1), 10), "batch_size": 32}
    return TensorFlowBackend().build(ProgramRequest(**{**request, **options}))  # pyright: ignore


def test_a_shape_error_names_the_line_and_both_shapes() -> None:
    text = SMALL.replace("net = slim.flatten(net)", "net = tf.matmul(slim.flatten(net), tf.zeros([5, 6]))")
    with pytest.raises(NetworkCodeError) as caught:
        built(text)
    line = text[: text.index("tf.matmul")].count("\n") + 1
    assert caught.value.details["line"] == line
    assert "128" in str(caught.value)
    assert "5" in str(caught.value)
    assert f"mine.py, line {line}, `net = tf.matmul(" in str(caught.value)


def test_an_error_while_it_runs_names_the_line() -> None:
    text = SMALL.replace("x = self.x * 0.0125", "x = tf.reshape(self.x * 0.0125, [7, 8, 8, 1])")
    program = built(text)
    with pytest.raises(NetworkCodeError) as caught:
        program.step(batches(1, 32)[0], ())
    line = text[: text.index("tf.reshape")].count("\n") + 1
    assert str(caught.value).startswith(f"mine.py, line {line}, `x = tf.reshape")
    assert "`: The network failed while it ran: " in str(caught.value)


def test_too_little_memory_is_said_as_such() -> None:
    error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[64,512,512,64]")
    told = explained(error, "mine.py")
    assert isinstance(told, TrainingError)
    assert str(told) == (
        "The step must fit in the device's memory: it is out of memory (received: mine.py: "
        "OOM when allocating tensor with shape[64,512,512,64]). "
        "Make `batch_size` or the network smaller, or set `gradient_accumulation_steps` to train a batch in parts."
    )


@pytest.mark.parametrize(
    "message",
    [
        "Default MaxPoolingOp only supports NHWC on device type CPU",
        "Conv2DCustomBackpropInputOp only supports NHWC.",
    ],
)
def test_a_processor_that_takes_channels_last_only(message) -> None:
    error = tf.errors.InvalidArgumentError(None, None, message)
    assert str(explained(error, "mine.py")) == (
        f"mine.py: The network failed while it ran: {message.rstrip('.')}. On older processors these layers "
        "take channels last only: write data_format='NHWC', or set TF_ENABLE_ONEDNN_OPTS=1."
    )


def test_a_loss_that_is_no_scalar() -> None:
    text = SMALL.replace("return digits.classification_loss(self.inference, self.y)", "return self.inference")
    with pytest.raises(NetworkCodeError) as caught:
        built(text)
    assert str(caught.value).startswith("`loss` is a scalar tensor, or a list of {'loss': scalar tensor, 'vars'")
    assert "of shape (" in str(caught.value)


def test_a_loss_that_trains_nothing() -> None:
    text = SMALL.replace("return digits.classification_loss(self.inference, self.y)", "return tf.reduce_mean(self.x)")
    with pytest.raises(NetworkCodeError) as caught:
        built(text.replace("weights_regularizer=slim.l2_regularizer(0.001)", "trainable=True"))
    assert str(caught.value).startswith(
        "`loss` depends on at least one variable that is trained (received: loss 1 without a gradient)."
    )


def test_a_sample_of_another_shape() -> None:
    with pytest.raises(
        ConfigurationError, match=r"A sample of this network has shape \(8, 8, 1\) \(received: \(9, 9, 1\)"
    ):
        built(SMALL).step([np.zeros((32, 9, 9, 1)), np.zeros(32, int)], ())


def test_unknown_standard_networks_and_options_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean `lenet`"):
        TensorFlowBackend().build(ProgramRequest(network="lennet", **class_arrays((28, 28, 1), 10)))
    with pytest.raises(UnknownNameError, match="Did you mean `intra_threads`"):
        built(SMALL, options={"intra_thread": 1})


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"received: gone\.py \(No such file or directory\)"):
        TensorFlowBackend().build(ProgramRequest(network="gone.py", **class_arrays((28, 28, 1), 10)))
