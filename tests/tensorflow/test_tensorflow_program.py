"""The TensorFlow program holds the contract of backends; its towers and optimizers do what their formulas say."""

import numpy as np
import pytest
from tensorflow_networks import SMALL, batches, digit_images

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.graph import GraphOptions, build_graph
from ziggurat.backends.tensorflow.network_file import load_network
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import TowerInput
from ziggurat.engine.backend import ProgramRequest, class_arrays, single_arrays
from ziggurat.engine.feed import BatchCycle
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.testing import BackendConformance

REQUEST = ProgramRequest(**class_arrays((8, 8, 1), 10))


def program(network: str = SMALL, prefetch: int = 0, **options: object) -> TensorFlowProgram:
    chosen = GraphOptions(**{"batch_size": 32, "learning_rate": 0.05, **options})  # pyright: ignore[reportArgumentType]
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(7)
        shared = TowerInput(load_network(network, "network.py"), "network.py", *single_arrays(REQUEST))
        built = build_graph(shared, chosen)
    config = tf.ConfigProto(device_count={"CPU": 4}, intra_op_parallelism_threads=1)
    return TensorFlowProgram(built, batch_parts=chosen.gradient_accumulation_steps, config=config, prefetch=prefetch)


class TestTensorFlowProgram(BackendConformance):
    rows_name = "incorrect_vector"

    def program(self) -> TensorFlowProgram:
        return program()

    def batches(self) -> list[list[np.ndarray]]:
        return batches(4, 32)


class TestProgramWithQueue(TestTensorFlowProgram):
    """Batches that a thread makes ahead: the position of a checkpoint is what was consumed."""

    def program(self) -> TensorFlowProgram:
        return program(prefetch=3)


def test_the_number_of_batches_ahead_is_an_option():
    arrays = {"network": "n.py", "network_text": SMALL, **class_arrays((8, 8, 1), 10), "batch_size": 32}
    built = TensorFlowBackend().build(ProgramRequest(**arrays, options={"prefetch_batches": 2}))
    assert built.connect(BatchCycle(batches(4, 32))).stats().capacity == 2
    built.close()
    with pytest.raises(
        ConfigurationError, match=r"`prefetch_batches` must be a whole number, 0 or more \(received: -1"
    ):
        TensorFlowBackend().build(ProgramRequest(**arrays, options={"prefetch_batches": -1}))


WITHOUT_DROPOUT = SMALL.replace("is_training=self.is_training", "is_training=False")


def weights_after(steps: int, **options: object) -> dict[str, np.ndarray]:
    trained = program(WITHOUT_DROPOUT, **options)
    for batch in batches(steps, 32):
        trained.step(batch, ())
    state = {name: array for name, array in trained.state().items() if name.startswith("model/")}
    trained.close()
    return {name: array for name, array in state.items() if array.size and "Momentum" not in name}


@pytest.mark.parametrize("towers", [2, 4])
def test_several_towers_equal_one_on_the_same_batch(towers: int) -> None:
    """Behavior 73 of DIGITS."""
    one = weights_after(4)
    many = weights_after(4, devices=tuple(f"cpu:{number}" for number in range(towers)))
    assert list(one) == list(many)
    for name, weights in one.items():
        np.testing.assert_allclose(many[name], weights, atol=2e-6, err_msg=name)


def test_a_batch_in_parts_equals_the_whole() -> None:
    whole = weights_after(4)
    for name, weights in weights_after(4, gradient_accumulation_steps=4).items():
        np.testing.assert_allclose(weights, whole[name], atol=2e-6, err_msg=name)


def test_a_batch_that_the_towers_do_not_divide_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        program(batch_size=30, devices=("cpu:0", "cpu:1", "cpu:2", "cpu:3"))
    assert str(caught.value) == "`batch_size` must be divisible by the 4 towers (received: 30). Use 28 or 32."


def test_one_tower_where_the_network_asks_for_it() -> None:
    source = SMALL.replace("(Tower):", "(Tower):\n    disableAutoDataParallelism = True\n")
    assert len(program(source, batch_size=31, devices=("cpu:0", "cpu:1")).graph.training) == 1


def test_values_of_training_and_evaluation() -> None:
    trained = program()
    batch = batches(1, 32)[0]
    values = trained.step(batch, ("cost", "accuracy", "error", "regularization", "gradient_norm", "learning_rate"))
    assert values["accuracy"] == pytest.approx(1 - values["error"])
    assert values["learning_rate"] == pytest.approx(0.05)
    assert 0 < values["regularization"] < values["cost"]
    assert values["gradient_norm"] > 0
    evaluated = trained.evaluate(batch, ("output", "probabilities", "labels", "incorrect_vector"))
    assert evaluated["output"].shape == (32, 10)
    np.testing.assert_allclose(evaluated["probabilities"].sum(1), 1, rtol=1e-5)
    wrong = evaluated["output"].argmax(1) != batch[1]
    np.testing.assert_array_equal(evaluated["incorrect_vector"], wrong)
    np.testing.assert_array_equal(evaluated["labels"], batch[1])
    np.testing.assert_allclose(trained.predict(batch[0])[0], evaluated["output"], atol=1e-6)


def test_regularisation_is_trained() -> None:
    """Behavior 71 of DIGITS, mended: the terms have gradients."""
    without = WITHOUT_DROPOUT.replace("l2_regularizer(0.001)", "l2_regularizer(0.0)")
    strong = WITHOUT_DROPOUT.replace("l2_regularizer(0.001)", "l2_regularizer(0.5)")
    norms = []
    for source in (without, strong):
        trained = program(source)
        for batch in batches(10, 32):
            trained.step(batch, ())
        norms.append(np.linalg.norm(trained.state()["model/fc1/weights"]))
    assert norms[1] < 0.8 * norms[0]


def test_a_clipped_step_is_no_longer_than_the_limit() -> None:
    trained = program(optimizer="sgd", learning_rate=1.0, gradient_clip=0.01)
    before = trained.state()
    trained.step(batches(1, 32)[0], ())
    after = trained.state()
    length = np.sqrt(sum(np.sum((after[name] - before[name]) ** 2) for name in after if name.startswith("model/")))
    assert length == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(
    "name", ["sgd", "momentum", "nesterov", "adadelta", "adagrad", "adagrad_da", "adam", "adamw", "ftrl", "rmsprop"]
)
def test_every_optimizer_learns(name: str) -> None:
    rate = {"adadelta": 20.0, "ftrl": 0.2, "adagrad_da": 0.2, "adagrad": 0.05}.get(name, 0.003)
    trained = program(optimizer=name, learning_rate=rate, weight_decay=1e-4)
    x, y = digit_images()
    held_out = [x[1600:1728], y[1600:1728]]
    before = trained.evaluate(held_out, ("cost",))["cost"]
    for _ in range(2):
        for batch in batches(20, 32):
            trained.step(batch, ())
    assert trained.evaluate(held_out, ("cost",))["cost"] < 0.9 * before


def test_unknown_optimizers_and_parameters_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean `adam`"):
        program(optimizer="adamm")
    with pytest.raises(UnknownNameError, match="Did you mean `beta_1`"):
        program(optimizer="adam", optimizer_options={"beta1": 0.5})


def test_each_loss_of_a_list_trains_its_own_variables() -> None:
    """Behavior 69 of DIGITS."""
    source = """
class UserModel(Tower):
    @model_property
    def inference(self):
        self.a = tf.get_variable('a', [], initializer=tf.constant_initializer(1.0))
        self.b = tf.get_variable('b', [], initializer=tf.constant_initializer(1.0))
        self.c = tf.get_variable('c', [], initializer=tf.constant_initializer(1.0))
        return tf.reduce_mean(self.x, axis=[1, 2]) * self.a * self.b * self.c

    @model_property
    def loss(self):
        self.inference
        both = tf.square(self.a) + tf.square(self.b) + tf.square(self.c)
        return [{'loss': both, 'vars': [self.a]}, {'loss': 3 * both, 'vars': [self.b]}]
"""
    trained = program(source, optimizer="sgd", learning_rate=0.1)
    trained.step(batches(1, 32)[0], ())
    state = trained.state()
    assert state["model/a"] == pytest.approx(1 - 0.1 * 2)
    assert state["model/b"] == pytest.approx(1 - 0.1 * 6)
    assert state["model/c"] == 1
    assert state["global_step"] == 1


def test_gradient_update_may_leave_variables_out() -> None:
    """Behavior 74 of DIGITS."""
    source = SMALL + (
        "\n    def gradientUpdate(self, grads):\n        return [(g, v) for g, v in grads if 'conv1' not in v.name]\n"
    )
    trained = program(source)
    before = trained.state()
    trained.step(batches(1, 32)[0], ())
    after = trained.state()
    np.testing.assert_array_equal(before["model/conv1/weights"], after["model/conv1/weights"])
    assert not np.array_equal(before["model/fc1/weights"], after["model/fc1/weights"])
