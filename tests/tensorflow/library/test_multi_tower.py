"""Data parallel over towers of one process, on two devices of the processor."""

import numpy as np
import pytest
from input_trainings import regression, rows, shuffled_batches, signature, trained

from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.engine.callback import Callback
from ziggurat.errors import ConfigurationError
from ziggurat.tf.data_parallel import (
    AsyncMultiGPUTrainer,
    QueueInputTrainer,
    SyncMultiGPUTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)
from ziggurat.tf.distributed import DistributedTrainer, HorovodTrainer
from ziggurat.tf.inputs.dataset import TFDatasetInput
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.inputs.staging import StagingInput
from ziggurat.tf.loading import DictRestore
from ziggurat.tf.multi_tower import (
    DataParallelBuilder,
    LeastLoadedDeviceSetter,
    SyncMultiGPUParameterServerBuilder,
    SyncMultiGPUReplicatedBuilder,
    reduced_gradients,
)
from ziggurat.tf.summary import add_moving_summary
from ziggurat.tf.tower import MOVING_SUMMARIES, get_current_tower_context
from ziggurat.tf.trainers import SimpleTrainer

NAMES = ("v", "table", "w")
TRAINERS = {
    "replicated": lambda: SyncMultiGPUTrainerReplicated(2),
    "parameter server": lambda: SyncMultiGPUTrainerParameterServer(2),
    "parameter server, cpu": lambda: SyncMultiGPUTrainer(2),
}
OPTIMIZERS = {
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
}


def descent():
    """Return an optimizer for sparse and dense gradients: momentum leaves alone the rows that a sparse one lacks."""
    return tf.train.GradientDescentOptimizer(0.05)


def source(size=4):
    return lambda: QueueInput(shuffled_batches(size))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", TRAINERS)
def test_two_towers_equal_one_on_the_same_total_batch(name, optimizer):
    chosen = OPTIMIZERS[optimizer]
    one = trained(source(8), optimizer=chosen)
    two = trained(source(4), TRAINERS[name], optimizer=chosen, processors=2)
    for variable in NAMES:
        assert np.allclose(two.arrays[variable], one.arrays[variable], rtol=0, atol=1e-5)
    assert not np.allclose(one.arrays["w"], trained(source(4), optimizer=chosen).arrays["w"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("processors", [1, 2])
def test_replicated_towers_stay_equal(processors):
    differences = []

    class Look(Callback):
        def before_train(self):
            self.trigger_step()

        def trigger_step(self):
            found = self.trainer.program.state()
            differences.append(max(np.abs(found[f"tower1/{name}"] - found[name]).max() for name in NAMES))

    trained(source(), TRAINERS["replicated"], callbacks=[Look()], epochs=1, processors=processors)
    assert differences == [0.0] * 6


@pytest.mark.parametrize("name", TRAINERS)
def test_interrupted_towers_equal_whole_ones(name):
    whole = trained(source(), TRAINERS[name], epochs=2, processors=2)
    first = trained(source(), TRAINERS[name], epochs=2, stop_after=6, processors=2)
    second = trained(source(), TRAINERS[name], epochs=2, state=first.state, processors=2)
    assert first.costs + second.costs == whole.costs
    assert all(np.array_equal(second.arrays[key], value) for key, value in whole.arrays.items())


def test_towers_take_the_elements_of_a_dataset_in_order():
    class Look(Callback):
        def declares(self):
            return ["tower0/mean", "tower1/mean"]

        def before_run(self):
            return self.declares()

        def after_run(self, values):
            seen.append([round(float(values[name])) for name in self.declares()])

    def cost(x, y):
        tf.reduce_mean(x, name="mean")
        return regression(x, y)

    def numbered():
        numbers = tf2.data.Dataset.range(100)
        return numbers.map(lambda number: (tf.fill([2, 4], tf.cast(number, tf.float32)), tf.zeros([2])))

    seen = []
    trained(lambda: TFDatasetInput(numbered()), TRAINERS["replicated"], cost=cost, callbacks=[Look()], processors=2)
    assert seen == [[2 * step, 2 * step + 1] for step in range(15)]


def test_staged_towers_equal_fed_ones():
    staged = trained(lambda: StagingInput(source()()), TRAINERS["replicated"], processors=2)
    assert staged.costs == trained(source(), TRAINERS["replicated"], processors=2).costs


def test_tutorial_39_one_line_changes_the_trainer():
    # Without a GPU, and without arguments: one tower, equal to a `SimpleTrainer`.
    one = trained(source())
    for trainer in (SyncMultiGPUTrainerReplicated, SyncMultiGPUTrainerParameterServer, SyncMultiGPUTrainer):
        assert np.allclose(trained(source(), trainer).costs, one.costs, rtol=0, atol=1e-6)
    assert QueueInputTrainer is SimpleTrainer
    assert SyncMultiGPUTrainerReplicated([0, 2]).devices == ["/cpu:0", "/cpu:2"]
    for gpus in (0, [], [1, 1]):
        with pytest.raises(ConfigurationError, match=r"at least one"):
            SyncMultiGPUTrainerReplicated(gpus)
    with pytest.raises(ConfigurationError, match="where gradients are added up"):
        SyncMultiGPUTrainerReplicated(2, mode="fast")


def test_tutorial_40_every_tower_takes_its_own_batch():
    shapes = []

    class Look(Callback):
        def trigger_step(self):
            shapes.append([part.shape[0] for part in self.trainer.batch])

    sizes = (3, 5, 4, 2)
    batches = [[np.ones((size, 4), "f4"), np.ones(size, "f4")] for size in sizes]
    towers = trained(lambda: QueueInput(batches), TRAINERS["replicated"], callbacks=[Look()], steps=2, epochs=1)
    assert shapes == [[3, 3, 5, 5], [4, 4, 2, 2]]  # towers may have batches of different shapes
    assert towers.trainer.steps_per_epoch == 2
    with tf.Graph().as_default():
        trainer = SyncMultiGPUTrainerReplicated(2)
        trainer.setup_graph(signature(), QueueInput(shuffled_batches()), regression, OPTIMIZERS["momentum"])
        trainer.train(max_epoch=1)
        assert trainer.global_step == 10 // 2  # a pass of ten batches


def test_tutorial_42_horovods_name_trains_over_processes():
    # What several processes do is shown in `test_distributed.py`; the line that changes the trainer is the same.
    assert issubclass(HorovodTrainer, DistributedTrainer)
    alone = trained(source(), HorovodTrainer, optimizer=descent)
    assert np.allclose(alone.costs, trained(source(), optimizer=descent).costs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", TRAINERS)
def test_tutorial_41_only_the_first_tower_makes_summaries(name):
    def cost(x, y):
        found = regression(x, y)
        tf.summary.scalar("cost", found)
        add_moving_summary(found)
        calls.append(get_current_tower_context().name)
        return found

    calls = []
    graph = trained(source(), TRAINERS[name], cost=cost, epochs=1).trainer.graph
    assert calls == ["tower0", "tower1"]
    assert [each.op.name for each in graph.get_collection("summaries")] == ["tower0/cost_1"]
    assert [each.tag for each in graph.get_collection(MOVING_SUMMARIES)] == ["cost"]


def test_replicas_are_local_variables_and_no_model():
    graph = trained(source(), TRAINERS["replicated"], epochs=1).trainer.graph
    whole = {each.op.name for each in graph.get_collection("variables")}
    local = {each.op.name for each in graph.get_collection("local_variables")}
    assert {"v", "w", "table", "v/Momentum"} <= whole
    assert local == {"tower1/v", "tower1/w", "tower1/table"}


def test_loaded_weights_reach_all_towers():
    class Look(Callback):
        def before_train(self):
            state.update(self.trainer.program.state())

    state = {}
    weights = {"w": np.full((5, 1), 0.25, "f4")}
    trained(source(), TRAINERS["replicated"], callbacks=[Look()], session_init=DictRestore(weights))
    assert np.array_equal(state["tower1/w"], weights["w"])
    assert all(np.array_equal(state[f"tower1/{name}"], state[name]) for name in NAMES)


def test_untrained_variables_follow_the_first_tower():
    def cost(x, y):
        seen = tf.get_variable("seen", [], initializer=tf.zeros_initializer(), trainable=False)
        with tf.control_dependencies([seen.assign_add(tf.reduce_sum(x))]):
            return regression(x, y)

    class Look(Callback):
        def trigger_step(self):
            self._note()

        def trigger_epoch(self):
            self._note()

        def _note(self):
            state = self.trainer.program.state()
            equal.append(bool(state["seen"] == state["tower1/seen"]))

    equal = []
    trained(source(), TRAINERS["replicated"], cost=cost, callbacks=[Look()], steps=2, epochs=2)
    assert equal == [False, False, True, False, False, True]


def test_towers_that_make_new_trainable_variables_are_refused():
    def cost(x, y):
        return regression(x, y) + tf.Variable(1.0, use_resource=True)

    with pytest.raises(ConfigurationError, match=r"shares its variables makes no trainable ones.*tower1"):
        trained(source(), TRAINERS["parameter server"], cost=cost)


def test_towers_that_differ_are_refused():
    def cost(x, y):
        is_first = get_current_tower_context().index == 0
        return regression(x, y) if is_first else tf.reduce_sum(tf.get_variable("w", [5, 1]))

    for name in ("parameter server", "replicated"):
        with pytest.raises(ConfigurationError, match=r"gradients of the same variables.*tower 1 differs in table, v"):
            trained(source(), TRAINERS[name], cost=cost)


def test_predictors_use_the_first_towers_variables():
    class Predict(Callback):
        def setup_graph(self):
            self.predictor = self.trainer.get_predictor(["x", "y"], ["cost"])

        def after_train(self):
            x, y = (np.stack(column) for column in zip(*rows(), strict=True))
            costs.append(self.predictor(x, y)[0])
            names.extend(each.ns_name for each in self.trainer.towers)

    costs, names = [], []
    for name in ("replicated", "parameter server"):
        trained(source(), TRAINERS[name], callbacks=[Predict()])
    assert names == ["tower0", "tower1", "tower-pred-0"] * 2
    assert np.allclose(costs[0], costs[1], rtol=0, atol=1e-6)


def test_asynchronous_towers_learn():
    losses = trained(source(), lambda: AsyncMultiGPUTrainer(2), epochs=20, processors=2).costs
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:5])
    # With one tower there is nobody to be asynchronous to.
    assert trained(source(), lambda: AsyncMultiGPUTrainer(1)).costs == trained(source()).costs


def test_sums_of_gradients_in_place_of_means():
    def one_step(trainer, rate):
        return trained(source(), trainer, steps=1, epochs=1, optimizer=lambda: tf.train.GradientDescentOptimizer(rate))

    total = one_step(lambda: SyncMultiGPUTrainerReplicated(2, average=False, mode="cpu"), 0.05)
    mean = one_step(lambda: SyncMultiGPUTrainerReplicated(2), 0.1)
    assert all(np.allclose(total.arrays[name], mean.arrays[name], rtol=0, atol=1e-6) for name in NAMES)


def test_compiled_towers_equal_others():
    class Compiled(SyncMultiGPUTrainerReplicated):
        XLA_COMPILE = True

    def cost(x, y):
        found = regression(x, y)
        seen = tf.get_variable("seen", [], initializer=tf.zeros_initializer(), trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, seen.assign_add(tf.reduce_sum(x)))
        tf.summary.scalar("left_out", found)
        add_moving_summary(tf.identity(2 * found, name="twice"))
        return found

    values = []

    class Twice(Callback):
        def before_run(self):
            return ["twice"]

        def after_run(self, found):
            values.append((found["twice"], found["cost"]))

    plain = trained(source(), TRAINERS["replicated"], cost=cost, epochs=1, optimizer=descent)
    compiled = trained(
        source(), lambda: Compiled(2), cost=cost, epochs=1, callbacks=[Twice()], processors=2, optimizer=descent
    )
    assert np.allclose(compiled.costs, plain.costs, rtol=1e-5)
    assert all(np.allclose(compiled.arrays[name], plain.arrays[name], rtol=0, atol=1e-5) for name in NAMES)
    assert all(np.isclose(twice, 2 * one) for twice, one in values)
    assert compiled.arrays["seen"] > 0
    assert compiled.trainer.graph.get_collection("summaries") == []


# ---- without a trainer


def test_tutorial_05b_our_towers_in_a_loop_of_ones_own():
    x, y = (np.stack(column) for column in zip(*rows(), strict=True))

    def tower():
        index = get_current_tower_context().index
        half = slice(20 * index, 20 * (index + 1))
        pairs = tf.train.AdamOptimizer(0.01).compute_gradients(
            regression(tf.constant(x[half]), tf.constant(y[half])),
            get_current_tower_context().get_collection_in_tower("trainable_variables"),
        )
        return [(gradient, variable) for gradient, variable in pairs if gradient is not None]

    with tf.Graph().as_default():
        builder = SyncMultiGPUReplicatedBuilder([0, 1])
        pairs = builder.call_for_each_tower(tower)
        train_op, sync_op = builder.build(pairs, lambda: tf.train.AdamOptimizer(0.01))
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            session.run(sync_op)
            for _ in range(10):
                session.run(train_op)
            replicas = session.run({each.op.name: each for each in tf.trainable_variables()})
    whole = BatchData(DataFromList(rows(), shuffle=False), 40)
    one = trained(lambda: QueueInput(whole), optimizer=OPTIMIZERS["adam"], epochs=2)
    for name in NAMES:
        assert np.array_equal(replicas[f"tower1/{name}"], replicas[name])
        assert np.allclose(replicas[name], one.arrays[name], rtol=0, atol=1e-5)


def test_functions_are_called_under_the_context_of_each_tower():
    def look():
        context = get_current_tower_context()
        return context.name, context.vs_name, context.index, context.total, tf.no_op().device

    with tf.Graph().as_default():
        shared = DataParallelBuilder.call_for_each_tower([0, 3], look)
        own = DataParallelBuilder.call_for_each_tower([0, 1], look, ["/cpu:0", "/cpu:0"], [False, True])
    assert shared == [("tower0", "", 0, 2, "/device:CPU:0"), ("tower1", "", 1, 2, "/device:CPU:3")]
    assert own == [("tower0", "", 0, 2, "/device:CPU:0"), ("tower1", "tower1", 1, 2, "/device:CPU:0")]


def test_variables_of_a_parameter_server_are_spread():
    with tf.Graph().as_default():
        load = {"/cpu:0": 0, "/cpu:1": 0}
        with tf.device(LeastLoadedDeviceSetter("/cpu:2", list(load), load)):
            sizes = {"a": 10, "b": 4, "c": 4, "d": 1}
            places = {name: tf.get_variable(name, [size]).device for name, size in sizes.items()}
            assert tf.no_op().device == "/cpu:2"
    assert places == {"a": "/cpu:0", "b": "/cpu:1", "c": "/cpu:1", "d": "/cpu:1"}
    assert load == {"/cpu:0": 40, "/cpu:1": 36}
    assert SyncMultiGPUParameterServerBuilder([0, 1]).ps_device == "gpu"
    assert SyncMultiGPUParameterServerBuilder([0, 1, 2]).ps_device == "cpu"


def test_sparse_gradients_stay_sparse():
    with tf.Graph().as_default():
        variable = tf.get_variable("table", [4, 2])
        slices = [tf.IndexedSlices(tf.fill([1, 2], value), [row], [4, 2]) for value, row in ((2.0, 1), (4.0, 3))]
        [(total, _)] = reduced_gradients([[(each, variable)] for each in slices], average=True)
        assert isinstance(total, tf.IndexedSlices)
        with tf.Session() as session:
            assert session.run(tf.convert_to_tensor(total)).tolist() == [[0, 0], [1, 1], [0, 0], [2, 2]]
