"""Starting from a pretrained model: by name, with renaming that freezes, as the guides promise (behaviors 60, 75)."""

import numpy as np
import pytest
from tensorflow_networks import SMALL, batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.restore_plan import plan_restore
from ziggurat.errors import CheckpointError

GUIDE = """
class UserModel(Tower):
    @model_property
    def inference(self):
        x = slim.flatten(self.x / 255.0)
        start = tf.truncated_normal_initializer(stddev=0.1)
        weight1 = tf.get_variable('weight1', [64, 16], initializer=start)
        weight2 = tf.get_variable('WEIGHT2', [16, self.nclasses], initializer=start)
        return tf.matmul(tf.nn.relu(tf.matmul(x, weight1)), weight2)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


def built(text: str, **options: object) -> TensorFlowProgram:
    request = {"network": "network.py", "network_text": text, **class_arrays((8, 8, 1), 10), "batch_size": 32}
    return TensorFlowBackend().build(ProgramRequest(**{**request, "seed": 5, **options}))  # pyright: ignore


def trained(program: TensorFlowProgram, steps: int = 3) -> dict[str, np.ndarray]:
    for batch in batches(steps, 32):
        program.step(batch, ())
    return program.state()


def test_a_renamed_variable_keeps_its_pretrained_bits() -> None:
    first = GUIDE.replace("WEIGHT2", "weight2")
    pretrained = trained(built(first, learning_rate=0.1))
    second = built(GUIDE.replace("WEIGHT2", "weight2_not_in_use"), learning_rate=0.1, pretrained=pretrained, seed=9)
    after = trained(second)
    np.testing.assert_array_equal(after["model/weight2_not_in_use"], pretrained["model/weight2"])
    assert not np.array_equal(after["model/weight1"], pretrained["model/weight1"])


def test_a_renamed_scope_freezes_what_is_in_it() -> None:
    pretrained = trained(built(SMALL))
    after = trained(built(SMALL.replace("scope='conv1'", "scope='conv1_not_in_use'"), pretrained=pretrained))
    for name in ("weights", "biases"):
        np.testing.assert_array_equal(after[f"model/conv1_not_in_use/{name}"], pretrained[f"model/conv1/{name}"])
    assert not np.array_equal(after["model/fc1/weights"], pretrained["model/fc1/weights"])


def test_patterns_freeze() -> None:
    program = built(SMALL, freeze=("conv*",))
    before = program.state()
    after = trained(program)
    np.testing.assert_array_equal(after["model/conv1/weights"], before["model/conv1/weights"])
    assert not np.array_equal(after["model/fc1/weights"], before["model/fc1/weights"])


def test_the_fine_tune_hook_makes_the_output() -> None:
    hooked = SMALL + "\n    def fineTuneHook(self, net):\n        return slim.fully_connected(net, 3, scope='new')\n"
    pretrained = built(SMALL).state()
    plain = built(hooked)
    assert plain.predict(batches(1, 32)[0][0])[0].shape == (32, 10)
    tuned = built(hooked, pretrained=pretrained)
    assert tuned.predict(batches(1, 32)[0][0])[0].shape == (32, 3)
    np.testing.assert_array_equal(tuned.state()["model/fc1/weights"], pretrained["model/fc1/weights"])


def test_the_plan_says_what_happens_to_each_variable() -> None:
    checkpoint = {name: np.zeros((2, 2)) for name in ("model/a", "model/b", "model/gone", "model/a/Momentum")}
    checkpoint |= {"global_step": np.zeros(()), "ziggurat/learning_rate": np.zeros(())}
    plan = plan_restore({"model/a": (2, 2), "model/b_not_in_use": (2, 2), "model/new": (3,)}, checkpoint)
    assert plan.restored == {"model/a": "model/a"}
    assert plan.frozen == {"model/b_not_in_use": "model/b"}
    assert plan.fresh == ["model/new"]
    assert plan.unexpected == ["model/gone"]
    assert plan.sentences() == [
        "Not in the pretrained model, so started fresh: model/new.",
        "Only in the pretrained model, so left out: model/gone.",
        "Restored and frozen: model/b_not_in_use.",
        "Restored and trained on: model/a.",
    ]


def test_other_shapes_are_refused_with_both() -> None:
    with pytest.raises(CheckpointError, match=r"model/a has shape \(3,\), in the checkpoint \(2, 2\)"):
        plan_restore({"model/a": (3,)}, {"model/a": np.zeros((2, 2))})


def test_a_retrained_model_can_be_trained_from_again() -> None:
    """Behavior 60 of DIGITS."""
    state = trained(built(SMALL))
    for _ in range(2):
        program = built(SMALL, pretrained=state)
        np.testing.assert_array_equal(program.state()["model/conv1/weights"], state["model/conv1/weights"])
        state = trained(program)
