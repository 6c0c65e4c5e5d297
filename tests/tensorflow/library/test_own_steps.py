"""What runs beside a step, in steps of several parts and compiled ones; wrong use of trainers and sources."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_models import LinearModel, batches, own_graph

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import CallbackFactory, ScalarStats
from ziggurat.errors import CheckpointError, ConfigurationError, DataError, StateError, StorageError, UsageError
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.graph_callbacks import MovingAverageWeights, RunOp, RunUpdateOps
from ziggurat.tf.inference import InferenceRunner
from ziggurat.tf.inputs.base import FeedInput, remap_input_source
from ziggurat.tf.inputs.dataset import TFDatasetInput
from ziggurat.tf.inputs.queue import QueueInput, QueueSize
from ziggurat.tf.inputs.staging import StagingInput
from ziggurat.tf.models import BatchNorm
from ziggurat.tf.multi_tower import AsyncMultiGPUBuilder
from ziggurat.tf.sessions import ReuseSessionCreator
from ziggurat.tf.tower import TowerContext, TowerFunc
from ziggurat.tf.trainers import SimpleTrainer, TowerTrainer, Trainer

NUMBERS = [[np.full(2, number, np.float32)] for number in range(1, 9)]


class Sums(TowerTrainer):
    """Its step has a part that reads the batch and one that does not; an update operation adds the batch up."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self.tower_func = TowerFunc(self._tower, [tf.TensorSpec((None,), tf.float32, "x")])
        self.register_callback(source.setup(self.tower_func.input_signature))
        self.input = source
        self.steps = tf.get_variable("steps", initializer=0).assign_add(1)
        with TowerContext("", is_training=True):
            self.tower_func(*source.get_input_tensors())

    def _tower(self, x: Any) -> Any:
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer(), trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, total.assign_add(tf.reduce_mean(x)))
        return tf.random.uniform([]) * tf.reduce_sum(x, name="sum")

    def run_step(self) -> None:
        self.hooked_sess.run([])
        self.hooked_sess.run(self.steps)


def _dataset() -> Any:
    return TFDatasetInput(tf.data.Dataset.from_tensor_slices(np.stack([number[0] for number in NUMBERS])))


@pytest.mark.parametrize(
    "make",
    [lambda: FeedInput(NUMBERS), lambda: QueueInput(NUMBERS), lambda: StagingInput(QueueInput(NUMBERS)), _dataset],
    ids=["feed", "queue", "staging", "dataset"],
)
def test_updates_read_the_batch_of_a_step_of_parts(make: Any) -> None:
    with own_graph():
        trainer = Sums(make())
        found: list[float] = []
        total = CallbackFactory(trigger=lambda _: found.append(float(trainer.program.state()["total"])))
        trainer.train([RunUpdateOps(), total], [], steps_per_epoch=4, max_epoch=2)
    assert found == [1 + 2 + 3 + 4, sum(range(1, 9))]


def test_a_reused_session_keeps_what_has_a_value() -> None:
    with own_graph():
        trainer = Trainer()
        kept = tf.get_variable("kept", initializer=5.0)
        trainer.train_op = kept.assign_add(1.0)
        session = tf.Session()
        session.run(kept.initializer)
        session.run(kept.assign(40.0))
        trainer.train([], [], session_creator=ReuseSessionCreator(session), steps_per_epoch=2, max_epoch=1)
        assert trainer.global_step == 2
        assert session.run(kept) == 42.0


def test_an_epoch_without_a_length_is_refused() -> None:
    with own_graph():
        trainer = Trainer()
        trainer.train_op = tf.no_op()
        with pytest.raises(UsageError, match="steps_per_epoch"):
            trainer.train([], [], max_epoch=1)


def test_a_trainer_trains_once() -> None:
    with own_graph():
        trainer = Trainer()
        trainer.train_op = tf.no_op()
        trainer.train([], [], steps_per_epoch=1, max_epoch=1)
        with pytest.raises(StateError, match="trains once"):
            trainer.train([], [], steps_per_epoch=1, max_epoch=2)


def test_what_is_no_callback_is_refused_with_advice() -> None:
    with own_graph():
        with pytest.raises(UsageError, match="The class RunUpdateOps"):
            Trainer().register_callback(RunUpdateOps)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="CallbackFactory"):
            Trainer().register_callback(print)  # type: ignore[arg-type]


def test_callbacks_end_where_a_state_does_not_load() -> None:
    ended: list[str] = []
    with own_graph():
        other = Trainer()
        other.train_op = tf.get_variable("other", initializer=0).assign_add(1)
        other.train([], [], steps_per_epoch=1, max_epoch=1)
        state = other.state()
    with own_graph():
        trainer = Trainer()
        trainer.train_op = tf.get_variable("own", initializer=0).assign_add(1)
        trainer.resume_from(state)
        with pytest.raises(CheckpointError):
            trainer.train(
                [CallbackFactory(after_train=lambda _: ended.append("end"))], [], steps_per_epoch=1, max_epoch=2
            )
    assert ended == ["end"]


def test_a_file_in_the_place_of_the_logger_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageError, match="taken"):
        logger.set_logger_dir(tmp_path / "taken")
    assert logger.get_logger_dir() != str(tmp_path / "taken")


def test_callbacks_without_work_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="has inferencers"):
        InferenceRunner(batches(), [])
    assert InferenceRunner(batches(), ScalarStats("cost"))
    with own_graph():
        trainer = Trainer()
        trainer.train_op = tf.no_op()
        with pytest.raises(UsageError, match="Return the operation"):
            trainer.train([RunOp(lambda: None)], [], steps_per_epoch=1, max_epoch=1)


def test_a_flow_in_the_place_of_a_source_is_refused() -> None:
    model = LinearModel()
    with own_graph(), pytest.raises(ConfigurationError, match="QueueInput"):
        SimpleTrainer().setup_graph(model.inputs(), batches(), model.build_graph, model.get_optimizer)


def test_numbers_out_of_the_range_of_an_input_are_refused() -> None:
    with own_graph():
        source = FeedInput([[[300]]])
        source.setup([tf.TensorSpec((None,), tf.uint8, "x")])
        source.get_input_tensors()
        with pytest.raises(DataError, match="the input `x` of type uint8"):
            next(iter(source.batches()))


def test_a_flow_in_place_of_a_dataset_may_be_remapped() -> None:
    model = LinearModel()
    with own_graph():
        trainer = SimpleTrainer()
        source = remap_input_source(TFDatasetInput(batches()), ["x", "y"])
        trainer.setup_graph(model.inputs(), source, model.build_graph, model.get_optimizer)
        trainer.train([], [], max_epoch=1)
        assert trainer.global_step == 8


def test_the_size_of_a_queue_is_averaged_with_the_older_half() -> None:
    class Source:
        sizes = iter([4, 0, 8])

        def queue_size(self) -> int:
            return next(self.sizes)

    put: dict[str, float] = {}
    callback = QueueSize(Source())  # type: ignore[arg-type]
    callback.trainer = SimpleNamespace(put=put.__setitem__)  # type: ignore[assignment]
    callback.trigger()
    assert put == {}  # nothing was seen yet
    for _ in range(3):
        callback.trigger_step()
    callback.trigger()
    assert put == {"Source/queue_size": 5.0}  # 4, then 2, then 5


def test_asynchronous_towers_divide_their_gradients() -> None:
    def stepped(is_scaled: bool) -> float:
        with own_graph(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            builder = AsyncMultiGPUBuilder([0, 1], scale_gradient=is_scaled)

            def tower() -> Any:
                w = tf.get_variable("w", initializer=0.0)
                return [(tf.constant(3.0), w)]

            step = builder.build(builder.call_for_each_tower(tower), lambda: tf.train.GradientDescentOptimizer(1.0))
            session.run(tf.global_variables_initializer())
            session.run(step)
            return float(session.run(tf.trainable_variables()[0]))

    assert stepped(True) == -3.0
    assert stepped(False) == -6.0


def test_a_compiled_tower_moves_its_running_averages() -> None:
    class Compiled(SimpleTrainer):
        XLA_COMPILE = True

    def averages(trainer: Any) -> np.ndarray:
        signature = [tf.TensorSpec((4, 2), tf.float32, "x")]
        source = FeedInput([[np.arange(8, dtype=np.float32).reshape(4, 2) * factor] for factor in (1, 3)])

        def cost(x: Any) -> Any:
            scale = tf.get_variable("scale", initializer=1.0)
            return tf.reduce_mean(tf.square(BatchNorm("bn", x) * scale - 0.5))

        trainer.setup_graph(signature, source, cost, lambda: tf.train.GradientDescentOptimizer(0.1))
        trainer.train([RunUpdateOps()], [], max_epoch=1)
        return trainer.program.state()["bn/mean/EMA"]

    with own_graph():
        expected = averages(SimpleTrainer())
    with own_graph():
        found = averages(Compiled())
    # a ← 0.9 a + 0.1 m, with the means (3, 4) and (9, 12) of the two batches
    np.testing.assert_allclose(expected, [0.9 * 0.3 + 0.9, 0.9 * 0.4 + 1.2], rtol=1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_averages_of_weights_go_on_where_they_were() -> None:
    def run(state: Any, epochs: int) -> Any:
        with own_graph():
            trainer = Trainer()
            trainer.train_op = tf.get_variable("w", initializer=0.0).assign_add(1.0)
            trainer.resume_from(state)
            trainer.train([MovingAverageWeights(0.5)], [], steps_per_epoch=3, max_epoch=epochs)
            return trainer.state()

    whole = run(None, 4)
    resumed = run(run(None, 2), 4)
    name = "ziggurat/averages/w"
    assert resumed.arrays[name] == whole.arrays[name]
    assert 10 < whole.arrays[name] < 12  # near the twelve steps, and behind them


def test_random_operations_without_seeds_differ() -> None:
    drawn: list[Any] = []

    class Look(Callback):
        def _before_run(self, _: Any) -> Any:
            return ["one:0", "two:0"]

        def _after_run(self, _: Any, values: Any) -> None:
            drawn.append(tuple(map(float, values.results)))

    with tf.Graph().as_default():
        trainer = Trainer()
        one, two = tf.random.uniform([], name="one_op"), tf.random.uniform([], name="two_op")
        trainer.train_op = tf.group(tf.identity(one, name="one"), tf.identity(two, name="two"))
        trainer.train([Look()], [], steps_per_epoch=3, max_epoch=1)
    assert len({number for pair in drawn for number in pair}) == 6


def test_hooks_are_called_in_the_order_of_the_list() -> None:
    called: list[str] = []

    def named(name: str) -> Any:
        return CallbackFactory(trigger=lambda _: called.append(name))

    with own_graph():
        trainer = Trainer()
        trainer.train_op = tf.no_op()
        trainer.register_callback(named("registered"))
        trainer.train([named("first"), named("second")], [], steps_per_epoch=1, max_epoch=1)
    assert called == ["registered", "first", "second"]
