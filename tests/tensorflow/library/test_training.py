"""Trainers of the library: the loop, tower functions, both forms of models, and exact resume."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_models import BATCH, ROWS, LinearModel, OldLinearModel, batches, own_graph, rows

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import DataFromGenerator
from ziggurat.engine.trainer import Trainer as EngineTrainer
from ziggurat.errors import ConfigurationError, StateError, UnknownNameError
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import TrainConfig, launch_train_with_config
from ziggurat.tf.inputs.base import FeedInput
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.model import ModelDesc
from ziggurat.tf.tower import TowerContext, TowerFunc, get_current_tower_context
from ziggurat.tf.trainers import NoOpTrainer, SimpleTrainer, TowerTrainer, Trainer


class Costs(Callback):
    """Keeps the cost of every step."""

    def __init__(self, name: str = "cost") -> None:
        self.name_of_cost = name
        self.costs: list[float] = []

    def _before_run(self, ctx: Any) -> Any:
        return [self.name_of_cost]

    def _after_run(self, ctx: Any, values: Any) -> None:
        self.costs.append(float(values.results[0]))


class Weights(Callback):
    """Keeps all variables as they are at the end."""

    def _after_train(self) -> None:
        if self.trainer.program.session is not None:
            self.last = self.trainer.program.state()


class StopAt(Callback):
    """Asks for a stop after a step, and keeps the run state."""

    def __init__(self, step: int) -> None:
        self.step = step

    def _trigger_step(self) -> None:
        if self.global_step == self.step:
            self.trainer.request_stop()

    def _before_stop(self) -> None:
        self.saved = self.trainer.state()


def trained(
    trainer: Any, model: Any, data: Any, *, callbacks: Any = (), epochs: int = 2, state: Any = None, steps: Any = None
) -> tuple[list[float], dict[str, np.ndarray]]:
    costs, weights = Costs(), Weights()
    trainer.setup_graph(model.get_input_signature(), data, model.build_graph_get_cost, model.get_optimizer)
    trainer.resume_from(state)
    trainer.train([costs, weights, *callbacks], [], max_epoch=epochs, steps_per_epoch=steps)
    return costs.costs, weights.last


def test_tutorial_02_any_symbolic_library_builds_the_tower() -> None:
    class Plain(LinearModel):
        def build_graph(self, x: Any, y: Any) -> Any:
            def dense(tensor: Any, units: int, name: str) -> Any:
                with tf.variable_scope(name):
                    return tf.matmul(tensor, tf.get_variable("kernel", [8, units]))

            return tf.reduce_mean(tf.square(tf.squeeze(dense(x, 1, "own"), 1) - y), name="cost")

    with own_graph():
        costs, state = trained(SimpleTrainer(), Plain(), FeedInput(batches()))
    assert costs[-1] < costs[0] / 2
    assert "own/kernel" in state


def test_tutorial_03_run_step_is_what_a_trainer_may_change() -> None:
    class TwoParts(TowerTrainer):
        def __init__(self, source: Any, model: Any) -> None:
            super().__init__()
            self.tower_func = TowerFunc(model.build_graph, model.inputs())
            source.setup(model.inputs())
            self.input = source
            with TowerContext("", is_training=True):
                self.tower_func(*source.get_input_tensors())
            self.first = tf.get_variable("a", initializer=0).assign_add(1)
            self.second = tf.get_variable("b", initializer=0).assign_add(10)

        def run_step(self) -> None:
            self.hooked_sess.run(self.first)
            if self.global_step % 2 == 0:
                self.hooked_sess.run([self.second])

    costs, weights = Costs(), Weights()
    with own_graph():
        trainer = TwoParts(FeedInput(batches()), LinearModel())
        trainer.train([costs, weights], [], steps_per_epoch=6, max_epoch=1)
    assert (weights.last["a"], weights.last["b"], weights.last["global_step"]) == (6, 30, 6)
    assert len(costs.costs) == 6


def test_tutorial_05c_an_own_graph_trains_with_callbacks() -> None:
    seen: list[float] = []

    class Look(Callback):
        def _before_run(self, ctx: Any) -> Any:
            return self.graph.get_tensor_by_name("loss:0")

        def _after_run(self, ctx: Any, values: Any) -> None:
            seen.append(float(values.results))

    with own_graph():
        w = tf.get_variable("w", initializer=5.0)
        loss = tf.square(w, name="loss")
        trainer = Trainer()
        trainer.train_op = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
        trainer.train_with_defaults(callbacks=[Look()], monitors=[], steps_per_epoch=3, max_epoch=2)
    assert seen == pytest.approx([25 / 4**k for k in range(6)])


def test_tutorial_35_a_trainer_builds_the_graph_and_iterates() -> None:
    with own_graph():
        trainer = SimpleTrainer()
        costs, state = trained(trainer, LinearModel(), FeedInput(batches()), epochs=3)
    assert isinstance(trainer, EngineTrainer)
    assert len(costs) == 3 * ROWS // BATCH == state["global_step"]
    assert costs[-1] < costs[0] / 4


def test_a_step_is_that_of_plain_tensorflow() -> None:
    with own_graph():
        ours = trained(SimpleTrainer(), LinearModel(), FeedInput(batches(shuffle=False)))[1]["w"]
    with own_graph():
        model = LinearModel()
        x, y = (tf.placeholder(spec.dtype, spec.shape) for spec in model.inputs())
        with TowerContext("", is_training=True):
            cost = model.build_graph(x, y)
        train_op = model.optimizer().minimize(cost)
        data = rows()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for step in range(2 * ROWS // BATCH):
                part = data[(step * BATCH) % ROWS :][:BATCH]
                session.run(train_op, {x: [each[0] for each in part], y: [each[1] for each in part]})
            theirs = session.run(tf.trainable_variables()[0])
    np.testing.assert_array_equal(ours, theirs)


def test_tutorial_36_a_tower_function_builds_replicas() -> None:
    with own_graph():
        function = TowerFunc(LinearModel().build_graph, LinearModel().inputs())
        x, y = tf.zeros([2, 8]), tf.zeros([2])
        with TowerContext("", is_training=True):
            function(x, y)
        with tf.variable_scope("", reuse=True), TowerContext("again", is_training=False):
            function(x, y)
        assert [tower.is_training for tower in function.towers] == [True, False]
        assert function.towers["again"].get_tensor("predicted").name == "again/predicted:0"
        assert function.towers.inference()[0]["x"] is x
        assert len(tf.trainable_variables()) == 1


def test_tutorial_37a_a_tower_function_is_called_several_times() -> None:
    calls = []

    class Counted(LinearModel):
        def build_graph(self, x: Any, y: Any) -> Any:
            calls.append(self.training)
            return super().build_graph(x, y)

    class Ask(Callback):
        def _setup_graph(self) -> None:
            self.trainer.get_predictor(["x"], ["predicted"])
            self.trainer.get_predictor(["x"], ["cost"])

    with own_graph():
        trained(SimpleTrainer(), Counted(), FeedInput(batches()), callbacks=[Ask()], epochs=1)
    assert calls == [True, False]


def test_tutorial_37b_only_trained_variables_are_trainable() -> None:
    with own_graph():
        _, state = trained(SimpleTrainer(), LinearModel(), FeedInput(batches()), epochs=1)
        assert [variable.op.name for variable in tf.trainable_variables()] == ["w"]
        assert set(state) == {"w", "w/Momentum", "learning_rate", "global_step"}


def test_tutorial_37c_names_of_variables_ignore_name_scopes() -> None:
    with own_graph():
        function = TowerFunc(LinearModel().build_graph, LinearModel().inputs())
        with TowerContext("tower0", is_training=True):
            function(tf.zeros([2, 8]), tf.zeros([2]))
        assert tf.trainable_variables()[0].op.name == "w"
        assert function.towers[0].get_tensor("cost").name == "tower0/cost:0"


def test_tutorial_37d_variables_of_a_second_tower_are_refused() -> None:
    def tower(x: Any) -> Any:
        return tf.reduce_sum(x * tf.Variable(1.0))

    with own_graph():
        function = TowerFunc(tower, [tf.TensorSpec((None,), tf.float32, "x")])
        with TowerContext("", is_training=True):
            function(tf.zeros([2]))
        with (
            pytest.raises(ConfigurationError, match=r"tf\.get_variable"),
            tf.variable_scope("", reuse=True),
            TowerContext("p", is_training=False),
        ):
            function(tf.zeros([2]))


def test_tutorial_37e_the_context_tells_what_is_built() -> None:
    with own_graph():
        assert get_current_tower_context() is None
        with TowerContext("", is_training=True) as training:
            assert get_current_tower_context() is training
            assert (training.is_training, training.is_main_training_tower) == (True, True)
            with pytest.raises(StateError, match="do not nest"), TowerContext("inner", is_training=False):
                pass
        assert get_current_tower_context() is None


def test_tutorial_38_an_own_trainer_builds_towers() -> None:
    class Alternating(TowerTrainer):
        """Two costs over variables of their own, one after the other."""

        def __init__(self, source: FeedInput, signature: list[Any]) -> None:
            super().__init__()
            self.tower_func = TowerFunc(self.tower, signature)
            source.setup(signature)
            self.input = source
            with TowerContext("", is_training=True):
                one, two = self.tower_func(*source.get_input_tensors())
            by = {variable.op.name: variable for variable in tf.trainable_variables()}
            optimizer = tf.train.GradientDescentOptimizer(0.1)
            self.one = optimizer.minimize(one, var_list=[by["one"]])
            with tf.control_dependencies([self.one]):
                self.train_op = optimizer.minimize(two, var_list=[by["two"]])

        @staticmethod
        def tower(x: Any, y: Any) -> Any:
            del y
            one = tf.get_variable("one", initializer=1.0)
            two = tf.get_variable("two", initializer=2.0)
            return tf.reduce_mean(tf.square(one), name="a") + 0 * tf.reduce_sum(x), tf.square(two - one, name="b")

    weights = Weights()
    with own_graph():
        trainer = Alternating(FeedInput(batches()), LinearModel().inputs())
        trainer.train([weights], [], steps_per_epoch=5, max_epoch=1)
    one, two = 1.0, 2.0
    for _ in range(5):
        before = one
        one -= 0.2 * one
        two -= 0.2 * (two - before)
    assert weights.last["one"] == pytest.approx(one, rel=1e-6)
    assert weights.last["two"] == pytest.approx(two, rel=0.2)


def test_tutorial_43_setup_graph_takes_four_things() -> None:
    signature = [tf.TensorSpec((None, 8), tf.float32, "x"), tf.TensorSpec((None,), tf.float32, "y")]

    def cost(x: Any, y: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.reduce_sum(x * tf.get_variable("w", [8]), 1) - y))

    weights = Weights()
    with own_graph():
        trainer = SimpleTrainer()
        trainer.setup_graph(signature, QueueInput(batches()), cost, lambda: tf.train.AdamOptimizer(0.01))
        trainer.train([weights], [], steps_per_epoch=4, max_epoch=1)
    assert weights.last["w"].shape == (8,)


def test_tutorial_44_the_older_form_trains_with_a_warning() -> None:
    weights = Weights()
    with own_graph():
        config = TrainConfig(model=OldLinearModel(), dataflow=batches(), callbacks=[weights], monitors=[], max_epoch=2)
        with pytest.warns(DeprecationWarning, match="build_graph"):
            launch_train_with_config(config, SimpleTrainer())
    with own_graph():
        new = trained(SimpleTrainer(), OldLinearModel(), FeedInput(batches()))[1]
    np.testing.assert_array_equal(weights.last["w"], new["w"])


def test_tutorial_45_an_epoch_is_as_long_as_the_input() -> None:
    costs = Costs()
    with own_graph():
        config = TrainConfig(
            model=LinearModel(), data=QueueInput(batches()), callbacks=[costs], monitors=[], max_epoch=2
        )
        launch_train_with_config(config, SimpleTrainer())
    assert len(costs.costs) == 2 * ROWS // BATCH


def test_tutorial_46_launch_adds_what_the_defaults_add() -> None:
    seen: dict[str, float] = {}

    class Last(Callback):
        def _after_train(self) -> None:
            seen.update(self.trainer.monitors.latest())

    with own_graph():
        config = TrainConfig(model=LinearModel(), dataflow=batches(), callbacks=[Last()], monitors=[], max_epoch=1)
        launch_train_with_config(config, SimpleTrainer())
    assert seen["cost"] > 0


def test_tutorial_47_train_and_train_with_defaults() -> None:
    def built() -> SimpleTrainer:
        model, trainer = LinearModel(), SimpleTrainer()
        source = FeedInput(batches())
        trainer.setup_graph(model.inputs(), source, model.build_graph, model.get_optimizer)
        return trainer

    first, second = Weights(), Weights()
    with own_graph():
        built().train([first], [], None, None, 4, 1, 2)
    with own_graph():
        built().train_with_defaults(callbacks=[second], monitors=[], steps_per_epoch=4, max_epoch=2)
    np.testing.assert_array_equal(first.last["w"], second.last["w"])


def test_no_op_trainer_takes_no_steps() -> None:
    epochs: list[int] = []

    class Epochs(Callback):
        def _trigger_epoch(self) -> None:
            epochs.append(self.epoch_num)

    with own_graph():
        _, state = trained(NoOpTrainer(), LinearModel(), FeedInput(batches()), callbacks=[Epochs()], epochs=3)
    with own_graph():
        tf.set_random_seed(1)
        first = trained(SimpleTrainer(), LinearModel(rate=0.0), FeedInput(batches()), epochs=1)[1]
    np.testing.assert_array_equal(state["w"], first["w"])
    assert epochs == [1, 2, 3]


@pytest.mark.parametrize("source", [FeedInput, QueueInput])
@pytest.mark.parametrize("stop", [3, 8, 11])
def test_a_resumed_training_equals_an_uninterrupted_one(source: Any, stop: int) -> None:
    with own_graph():
        whole = trained(SimpleTrainer(), LinearModel(dropout=0.5), source(batches()), epochs=3)
    with own_graph():
        at = StopAt(stop)
        first = trained(SimpleTrainer(), LinearModel(dropout=0.5), source(batches()), callbacks=[at], epochs=3)
    with own_graph():
        rest = trained(SimpleTrainer(), LinearModel(dropout=0.5), source(batches()), epochs=3, state=at.saved)
    assert first[0] + rest[0] == whole[0]
    for name, value in whole[1].items():
        np.testing.assert_array_equal(rest[1][name], value)


class Noise(TowerTrainer):
    """Steps of two parts, each with random numbers of its own."""

    def __init__(self) -> None:
        super().__init__()
        drawn = tf.random_normal([3])
        total = tf.get_variable("total", [3], initializer=tf.zeros_initializer())
        self.add = total.assign_add(drawn)

    def run_step(self) -> None:
        self.hooked_sess.run(self.add)
        self.hooked_sess.run(self.add)


def test_random_numbers_of_own_steps_are_resumed() -> None:
    def run(state: Any = None, *callbacks: Any) -> np.ndarray:
        weights = Weights()
        with own_graph():
            trainer = Noise()
            trainer.resume_from(state)
            trainer.train([weights, *callbacks], [], steps_per_epoch=5, max_epoch=2)
        return weights.last["total"]

    at = StopAt(4)
    whole, _, rest = run(), run(None, at), run(at.saved)
    np.testing.assert_array_equal(whole, rest)
    assert len(set(whole.tolist())) == 3


def test_parts_of_a_step_draw_other_numbers() -> None:
    seen: list[np.ndarray] = []

    class Twice(Noise):
        def run_step(self) -> None:
            seen.append(self.hooked_sess.run(self.add))
            seen.append(self.hooked_sess.run(self.add) - seen[-1])

    with own_graph():
        Twice().train([], [], steps_per_epoch=1, max_epoch=1)
    assert not np.allclose(seen[0], seen[1])


@pytest.mark.parametrize("source", [FeedInput, QueueInput])
def test_an_error_of_the_data_ends_the_training(source: Any) -> None:
    def data() -> Any:
        for number, row in enumerate(rows()):
            if number == 5:
                raise OSError("file 5 is damaged")
            yield [row[0][None], row[1][None]]

    with own_graph(), pytest.raises(OSError, match="file 5"):
        trained(SimpleTrainer(), LinearModel(), source(DataFromGenerator(data)), steps=20)


def test_a_batch_of_another_shape_is_refused() -> None:
    data = [[np.zeros((4, 7), np.float32), np.zeros(4, np.float32)]]
    with own_graph(), pytest.raises(Exception, match="does not fit the input `x` of shape") as error:
        trained(SimpleTrainer(), LinearModel(), FeedInput(data), steps=2)
    assert "(4, 7)" in str(error.value)


def test_a_name_that_the_graph_lacks_is_an_error_before_training() -> None:
    with own_graph(), pytest.raises(UnknownNameError, match="cots"):
        costs = Costs("cots")
        model = LinearModel()
        trainer = SimpleTrainer()
        trainer.setup_graph(model.inputs(), FeedInput(batches()), model.build_graph, model.get_optimizer)
        trainer.train([costs], [], max_epoch=1)


def test_a_model_without_a_cost_is_refused() -> None:
    class Empty(LinearModel):
        def build_graph(self, x: Any, y: Any) -> Any:
            return None

    with own_graph(), pytest.raises(ConfigurationError, match="returns the cost"):
        trained(SimpleTrainer(), Empty(), FeedInput(batches()))


def test_a_keras_optimizer_is_refused() -> None:
    class Wrong(LinearModel):
        def optimizer(self) -> Any:
            return object()

    with own_graph(), pytest.raises(ConfigurationError, match=r"tf\.train\.Optimizer"):
        trained(SimpleTrainer(), Wrong(), FeedInput(batches()))


def test_model_names_what_it_lacks() -> None:
    class Nothing(ModelDesc):
        pass

    with pytest.raises(ConfigurationError, match="has no `inputs`"):
        Nothing().get_input_signature()


def test_an_input_source_serves_one_training() -> None:
    source = FeedInput(batches())
    with own_graph():
        source.setup(LinearModel().inputs())
        with pytest.raises(StateError, match="one training"):
            source.setup(LinearModel().inputs())


def test_tutorial_04_callbacks_are_everything_but_the_step() -> None:
    calls: list[str] = []

    class Recorder(Callback):
        def _setup_graph(self) -> None:
            calls.append("setup_graph")
            self.last = tf.identity(self.graph.get_tensor_by_name("cost:0"), name="again")

        def _before_train(self) -> None:
            calls.append("before_train")

        def _before_epoch(self) -> None:
            calls.append("before_epoch")

        def _before_run(self, ctx: Any) -> Any:
            calls.append("before_run")
            return {"again": self.last}

        def _after_run(self, ctx: Any, values: Any) -> None:
            assert values.results["again"] >= 0
            calls.append("after_run")

        def _trigger_step(self) -> None:
            calls.append("trigger_step")

        def _after_epoch(self) -> None:
            calls.append("after_epoch")

        def _trigger_epoch(self) -> None:
            calls.append("trigger_epoch")

        def _after_train(self) -> None:
            calls.append("after_train")

    with own_graph():
        trained(SimpleTrainer(), LinearModel(), FeedInput(batches()), callbacks=[Recorder()], steps=2)
    step = ["before_run", "after_run", "trigger_step"]
    epoch = ["before_epoch", *step, *step, "after_epoch", "trigger_epoch"]
    assert calls == ["setup_graph", "before_train", *epoch, *epoch, "after_train"]


def test_callbacks_end_where_the_set_up_fails() -> None:
    ended: list[str] = []

    class Ends(Callback):
        def _after_train(self) -> None:
            ended.append("after_train")

    class Fails(Callback):
        def _setup_graph(self) -> None:
            raise ValueError("no such operation")

    with own_graph(), pytest.raises(ValueError, match="no such operation"):
        model, trainer = LinearModel(), SimpleTrainer()
        trainer.setup_graph(model.inputs(), FeedInput(batches()), model.build_graph, model.get_optimizer)
        trainer.train([Ends(), Fails()], [], max_epoch=1)
    assert ended == ["after_train"]
