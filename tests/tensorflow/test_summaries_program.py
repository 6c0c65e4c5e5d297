"""A program summarizes a batch by the user's own names, whatever its towers are, and shows its graph."""

from typing import Any

import numpy as np
import pytest
from tensorflow_networks import SMALL, batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.backend import ProgramRequest, class_arrays

NETWORK = SMALL.replace(
    "accuracy = digits",
    "assert int(tf.__version__.split('.')[0]) > 0\n"
    "        tf.image_summary('pictures', self.x, max_images=1)\n"
    "        self.summaries.append(tf.summary.histogram('conv', tf.get_variable('conv1/biases')))\n"
    "        accuracy = digits",
    1,
)


def built(text: str, **options: Any) -> TensorFlowProgram:
    request: dict[str, Any] = {"network": "mine.py", "network_text": text, **class_arrays((8, 8, 1), 10)}
    return TensorFlowBackend().build(ProgramRequest(**{**request, "batch_size": 32, **options}))


def tags(summary: bytes) -> list[str]:
    return [value.tag for value in tf.Summary.FromString(summary).value]


@pytest.mark.parametrize("devices", [(), ("cpu:0", "cpu:1")], ids=["one tower", "two towers"])
def test_tags_are_the_users_names(devices: tuple[str, ...]) -> None:
    program = built(NETWORK, devices=devices)
    assert sorted(tags(program.summarise(batches(1, 32)[0]))) == ["conv", "pictures/image"]
    program.close()


def test_a_batch_trained_in_parts_is_shown_by_its_first_part() -> None:
    text = NETWORK.replace("tf.get_variable('conv1/biases')", "self.x[:, 0, 0, 0]")
    program = built(text, gradient_accumulation_steps=4)
    summary = tf.Summary.FromString(program.summarise(batches(1, 32)[0]))
    assert [value.histo.num for value in summary.value if value.tag == "conv"] == [8]
    program.close()


def test_summarising_changes_no_state() -> None:
    program = built(NETWORK)
    batch = batches(1, 32)[0]
    program.step(batch, ())
    before = program.state()
    program.summarise(batch)
    after = program.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    program.close()


def test_a_network_without_pictures_has_nothing_to_summarise() -> None:
    program = built(SMALL)
    assert program.summarise(batches(1, 32)[0]) == b""
    program.close()


def test_two_scalars_with_the_same_last_word_are_two_curves() -> None:
    text = SMALL.replace(
        "accuracy = digits",
        "tf.summary.scalar('first/size', tf.reduce_max(self.x))\n"
        "        tf.summary.scalar('second/size', tf.reduce_min(self.x))\n"
        "        accuracy = digits",
        1,
    )
    program = built(text)
    assert set(program.summary_names()) == {"cost", "regularization", "error", "accuracy", "size", "second/size"}
    values = program.step(batches(1, 32)[0], ["size", "second/size"])
    assert (values["size"], values["second/size"]) == (240, 0)
    program.close()


def test_what_only_training_makes_is_fetched_from_steps_only() -> None:
    text = SMALL.replace(
        "accuracy = digits",
        "if self.is_training:\n"
        "            tf.summary.scalar('spread', tf.reduce_max(self.x))\n"
        "        accuracy = digits",
        1,
    )
    program = built(text)
    assert "spread" in program.summary_names()
    assert "spread" not in program.evaluation_names()
    program.close()


def test_the_graph_is_shown_without_large_constants() -> None:
    large = np.arange(1024, dtype=np.float32)
    text = SMALL.replace("(self.inference, self.y)\n", "(self.inference, self.y) + tf.reduce_mean(LARGE)\n")
    assert "LARGE" in text
    program = built(f"LARGE = np.arange(1024, dtype=np.float32)\n{text}")
    found = program.graph_bytes()
    assert {"x", "y", "model/conv1/weights"} <= {node.name for node in tf.GraphDef.FromString(found).node}
    assert large.tobytes() not in found
    program.close()
