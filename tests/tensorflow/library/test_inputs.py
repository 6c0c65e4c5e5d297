"""Input sources: what they feed, exact resume, errors of the data, and bounds."""

import os
import signal
import threading

import numpy as np
import pytest
from input_trainings import ROWS, FailingFlow, regression, rows, shuffled_batches, signature, trained

from tests.waiting import wait_until
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.dataflow import BatchData, DataFlow, DataFromList, FakeData, send_dataflow_zmq
from ziggurat.engine.callback import Callback
from ziggurat.errors import ConfigurationError, DataError, DataWorkerError, StateError
from ziggurat.tf.config import TrainConfig, launch_train_with_config
from ziggurat.tf.inputs.base import FeedInput, InputSource, PlaceholderInput, remap_input_source
from ziggurat.tf.inputs.dataset import TFDatasetInput
from ziggurat.tf.inputs.queue import BatchQueueInput, QueueInput, ZMQInput
from ziggurat.tf.inputs.staging import StagingInput, staged_for
from ziggurat.tf.inputs.tensors import DummyConstantInput, TensorInput
from ziggurat.tf.model import ModelDesc
from ziggurat.tf.trainers import SimpleTrainer, SingleCostTrainer


class Regression(ModelDesc):
    def inputs(self):
        return signature()

    def build_graph(self, x, y):
        return regression(x, y)

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(0.1)


class PlainTrainer(SimpleTrainer):
    """A trainer that is not exactly a ``SimpleTrainer``."""


def still():
    """Return an optimizer that changes nothing."""
    return tf.train.GradientDescentOptimizer(0.0)


def flow_dataset(flow=None):
    types = [tf.float32, tf.float32]
    return TFDatasetInput.dataflow_to_dataset(shuffled_batches() if flow is None else flow, types)


def array_dataset(api):
    x, y = (np.stack(column) for column in zip(*rows(), strict=True))
    return api.data.Dataset.from_tensor_slices((x, y)).shuffle(ROWS, seed=5).repeat().batch(4)


SOURCES = {
    "FeedInput": lambda: FeedInput(shuffled_batches()),
    "QueueInput": lambda: QueueInput(shuffled_batches()),
    "BatchQueueInput": lambda: BatchQueueInput(DataFromList(rows(), shuffle=True).seed(4), 4),
    "TFDatasetInput-flow": lambda: TFDatasetInput(shuffled_batches()),
    "TFDatasetInput-v1": lambda: TFDatasetInput(array_dataset(tf)),
    "TFDatasetInput-v2": lambda: TFDatasetInput(array_dataset(tf2)),
    "dataflow_to_dataset": lambda: TFDatasetInput(flow_dataset().repeat().prefetch(2)),
    "StagingInput-feed": lambda: StagingInput(FeedInput(shuffled_batches())),
    "StagingInput-queue": lambda: StagingInput(QueueInput(shuffled_batches()), nr_stage=2),
    "StagingInput-v2": lambda: StagingInput(TFDatasetInput(array_dataset(tf2))),
}


@pytest.mark.parametrize("name", SOURCES)
def test_an_interrupted_training_equals_a_whole_one(name):
    whole = trained(SOURCES[name], epochs=2)
    first = trained(SOURCES[name], epochs=2, stop_after=7)
    second = trained(SOURCES[name], epochs=2, state=first.state)
    assert len(first.costs) == 7
    assert first.costs + second.costs == whole.costs
    assert all(np.array_equal(second.arrays[name], value) for name, value in whole.arrays.items())


@pytest.mark.parametrize("stop_after", [1, 4, 5, 6, 9])
def test_a_staged_queue_resumes_at_any_step(stop_after):
    source = SOURCES["StagingInput-queue"]
    first = trained(source, epochs=2, stop_after=stop_after)
    second = trained(source, epochs=2, state=first.state)
    assert first.costs + second.costs == trained(source, epochs=2).costs


def test_all_sources_of_a_flow_feed_the_same():
    same = ("FeedInput", "QueueInput", "TFDatasetInput-flow", "dataflow_to_dataset", "StagingInput-queue")
    assert len({tuple(trained(SOURCES[name], epochs=1).costs) for name in same}) == 1


def test_a_wait_that_is_broken_off_is_made_good():
    class Asking(DataFlow):
        trainer = None

        def __iter__(self):
            for number in range(200):
                if number == 150 and self.trainer is not None:
                    self.trainer.request_stop()
                    self.trainer.break_off_waiting()
                yield [np.full((1, 4), number / 200, "f4"), np.full(1, 0.5, "f4")]

    class Tell(Callback):
        def before_train(self):
            flow.trainer = self.trainer

    whole = trained(lambda: FeedInput(Asking()), epochs=1, steps=180)
    flow = Asking()
    first = trained(lambda: FeedInput(flow), epochs=1, steps=180, callbacks=[Tell()])
    assert len(first.costs) == 150
    assert first.state.meta["batches"]["skip"] < 64  # not all of it is made again
    second = trained(lambda: FeedInput(Asking()), epochs=1, steps=180, state=first.state)
    assert first.costs + second.costs == whole.costs


@pytest.mark.parametrize("staged", [False, True])
def test_a_stop_while_the_data_hangs_is_made_good(staged):
    def source(flow):
        queue = QueueInput(flow)
        return StagingInput(queue) if staged else queue

    class Hanging(DataFlow):
        hangs_at = None

        def __iter__(self):
            for number in range(40):
                if number == self.hangs_at:
                    wait_until(lambda: trainers[0].global_step == number and trainers[0].is_waiting)  # noqa: B023
                    os.kill(os.getpid(), signal.SIGUSR1)
                    released.wait(60)
                yield [np.full((4, 4), number / 40, "f4"), np.full(4, 0.5, "f4")]

    class Release(Callback):
        def before_train(self):
            trainers.append(self.trainer)

        def after_train(self):
            released.set()

    def stop(*_):
        trainers[0].request_stop()
        trainers[0].break_off_waiting()

    released, trainers, flow = threading.Event(), [], Hanging()
    flow.hangs_at = 7
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        first = trained(lambda: source(flow), callbacks=[Release()])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(first.costs) == 7
    second = trained(lambda: source(Hanging()), state=first.state)
    assert first.costs + second.costs == trained(lambda: source(Hanging())).costs


# ---- errors


FAILING = {
    "FeedInput": lambda: FeedInput(FailingFlow()),
    "QueueInput": lambda: QueueInput(FailingFlow()),
    "TFDatasetInput": lambda: TFDatasetInput(FailingFlow()),
    "dataflow_to_dataset": lambda: TFDatasetInput(flow_dataset(FailingFlow()).prefetch(1)),
    "StagingInput": lambda: StagingInput(QueueInput(FailingFlow())),
    "StagingInput-dataset": lambda: StagingInput(TFDatasetInput(flow_dataset(FailingFlow()))),
}


@pytest.mark.parametrize("name", FAILING)
def test_an_error_of_the_flow_ends_the_training_as_itself(name):
    steps = Steps()
    with pytest.raises(OSError, match=r"^sample 7 cannot be read$"):
        trained(FAILING[name], callbacks=[steps])
    assert steps.count == 5


class Steps(Callback):
    count = 0

    def trigger_step(self):
        self.count += 1


@pytest.mark.parametrize("name", ["QueueInput", "StagingInput-queue", "StagingInput-v2"])
def test_a_training_leaves_no_thread_of_its_source_behind(name):
    before = {each.name for each in threading.enumerate()}
    trained(SOURCES[name], epochs=1)
    trained(SOURCES[name], epochs=1, stop_after=2)
    with pytest.raises(OSError, match="sample 7"):
        trained(FAILING["StagingInput"])
    assert {each.name for each in threading.enumerate()} - before == set()


def test_a_finite_dataset_ends_the_training_with_a_reason():
    for source in (lambda: TFDatasetInput(flow_dataset()), lambda: StagingInput(TFDatasetInput(flow_dataset()))):
        end = trained(source)
        assert len(end.costs) == 10
        assert end.trainer.finish_reason == "the input has ended (End of sequence)"
        assert end.trainer.outcome == "done"


def test_batches_that_do_not_fit_are_refused():
    cases = {
        r"1 component\(s\), and the inputs of this model are x, y\.": [[np.zeros((4, 4), "f4")]],
        r"\(4, 3\) does not fit the input `x` of shape \(None, 4\)": [[np.zeros((4, 3), "f4"), np.zeros(4, "f4")]],
        "the input `y` of type float32": [[np.zeros((4, 4), "f4"), np.array(["a"] * 4)]],
        "Give it y": [{"x": np.zeros((4, 4), "f4")}],
    }
    for message, batches in cases.items():
        with pytest.raises(DataError, match=message):
            trained(lambda batches=batches: QueueInput(batches))


def test_batches_may_be_mappings_by_name():
    as_lists = list(BatchData(DataFromList(rows(), shuffle=False), 4))
    as_mappings = [{"y": y, "x": x, "more": 1} for x, y in as_lists]
    assert trained(lambda: QueueInput(as_mappings)).costs == trained(lambda: QueueInput(as_lists)).costs


def test_a_source_serves_one_training():
    source = FeedInput(shuffled_batches())
    with tf.Graph().as_default():
        with pytest.raises(StateError, match="set up before it gives"):
            source.get_input_tensors()
        source.setup(signature())
        with pytest.raises(StateError, match="serves one training"):
            source.setup(signature())


# ---- the tutorial's sources


def test_tutorial_01_flows_and_tensors_behind_one_interface():
    x, y = np.ones((4, 4), "f4"), np.ones(4, "f4")
    sources = [FeedInput([[x, y]]), QueueInput([[x, y]]), TensorInput(lambda: [tf.constant(x), tf.constant(y)])]
    assert all(isinstance(source, InputSource) for source in sources)
    costs = [trained(lambda source=source: source).costs for source in sources]
    assert costs[0] == costs[1] == costs[2]
    used = []

    class Look(Callback):
        def before_train(self):
            used.append((type(self.trainer.input), self.trainer.feed.stats().capacity))

    for trainer in (SimpleTrainer, PlainTrainer):
        with tf.Graph().as_default():
            config = TrainConfig(
                dataflow=shuffled_batches(), model=Regression(), callbacks=[Look()], extra_callbacks=[], monitors=[],
                max_epoch=1,
            )  # fmt: skip
            launch_train_with_config(config, trainer())
    assert used == [(FeedInput, 0), (QueueInput, 50)]  # prefetched by default


def test_tutorial_10_data_by_operations_and_by_tf_data():
    def batch(_=None):
        numbers = tf.range(4, dtype=tf.float32)
        return tf.tile(numbers[None], [4, 1]), numbers / 4

    by_operations = trained(lambda: TensorInput(batch))
    by_tf_data = trained(lambda: TFDatasetInput(tf2.data.Dataset.range(1).repeat().map(batch)))
    assert by_operations.costs == by_tf_data.costs


def test_tutorial_13_data_is_prepared_while_a_step_runs():
    # A step waits until the batch behind it was made: without a thread of its own, it would wait for ever.
    made = threading.Event()
    number = iter(range(1000))

    class Noting(DataFlow):
        def __iter__(self):
            for _ in range(10):
                if next(number) == 1:
                    made.set()
                yield [np.ones((4, 4), "f4"), np.ones(4, "f4")]

    def waiting_cost(x, y):
        waited = tf.py_func(lambda value: np.float32(value) if made.wait(60) else None, [tf.reduce_mean(x)], tf.float32)
        waited.set_shape(())
        with tf.control_dependencies([waited]):
            return regression(x, y)

    assert len(trained(lambda: QueueInput(Noting()), cost=waiting_cost).costs) == 15


def test_tutorial_18_feed_input_takes_a_batch_a_step():
    taken = []

    class Noting(DataFlow):
        def __iter__(self):
            for number, batch in enumerate(BatchData(DataFromList(rows(), shuffle=False), 4)):
                taken.append(number)
                yield batch

    assert len(trained(lambda: FeedInput(Noting())).costs) == len(taken) == 15
    assert taken == [*range(10), *range(5)]


def test_tutorial_19_queue_input_is_bounded_and_tells_its_size():
    sizes = []

    class Look(Callback):
        def trigger_step(self):
            sizes.append((source.queue_size(), self.trainer.feed.stats().ready_bytes))

        def after_train(self):
            sizes.append(self.trainer.monitors.get_latest("QueueInput/queue_size"))

    with tf.Graph().as_default():
        queue = tf.FIFOQueue(3, [tf.float32, tf.float32])
        source = QueueInput(shuffled_batches(), queue, max_bytes=200)
    assert (source.capacity, source.max_bytes) == (3, 200)
    trained(lambda: source, epochs=2, callbacks=[Look()])
    average = sizes.pop()
    assert 0 <= average <= 2
    assert all(size <= 2 and held <= 200 for size, held in sizes)  # a batch has 80 bytes
    assert QueueInput([]).capacity == 50
    with pytest.raises(ConfigurationError, match="at least one batch"):
        QueueInput([], 0)
    with pytest.raises(ConfigurationError, match="FIFOQueue"):
        QueueInput([], "many")


def test_refilled_queues_lose_no_batch():
    class Refill(Callback):
        def trigger_step(self):
            if self.trainer.global_step in (3, 4, 9):
                source.refill_queue()

    for make in (QueueInput, lambda flow: QueueInput(flow, 2)):
        source = make(shuffled_batches())
        refilled = trained(lambda source=source: source, callbacks=[Refill()])
        assert refilled.costs == trained(lambda make=make: make(shuffled_batches())).costs
    source = QueueInput(shuffled_batches())
    staged = trained(lambda: StagingInput(source), callbacks=[Refill()])
    assert staged.costs == refilled.costs
    with pytest.raises(StateError, match="once the training begins"):
        QueueInput([]).refill_queue()


def test_a_refilled_queue_shows_the_changed_flow():
    class Scaled(DataFlow):
        scale = 1.0

        def __iter__(self):
            for _ in range(10):
                yield [np.full((4, 4), self.scale, "f4"), np.ones(4, "f4")]

    class Change(Callback):
        def trigger_step(self):
            if self.trainer.global_step == 4:
                flow.scale = 0.0
                source.refill_queue()

    flow = Scaled()
    source = QueueInput(flow)
    costs = trained(lambda: source, callbacks=[Change()], optimizer=still).costs
    assert len(set(costs[:4])) == len(set(costs[4:])) == 1
    assert costs[3] != costs[4]


def test_batch_queue_input_batches_across_passes():
    seen = []

    class Look(Callback):
        def trigger_step(self):
            seen.append(self.trainer.batch[1])

    numbers = [[np.zeros(4, "f4"), np.float32(number / 10)] for number in range(5)]
    source = BatchQueueInput(DataFromList(numbers, shuffle=False), 3, queue=6)
    assert (source.size(), source.capacity) == (1, 2)
    trained(lambda: source, callbacks=[Look()], epochs=1)
    assert np.allclose(np.concatenate(seen) * 10, [0, 1, 2, 3, 4] * 3)


def test_tutorial_20_staging_input_stages_another_source():
    plain = trained(lambda: QueueInput(shuffled_batches()))
    beside = []

    class Beside(Callback):
        def trigger_step(self):  # takes no batch away: nothing hangs, and the training is the same
            beside.append(self.trainer.sess.run(self.trainer.towers[0]["x"]).shape)

    for stages in (1, 3):
        staged = trained(
            lambda stages=stages: StagingInput(QueueInput(shuffled_batches()), stages), callbacks=[Beside()]
        )
        assert staged.costs == plain.costs
    assert beside == [(4, 4)] * 30
    with pytest.raises(ConfigurationError, match="a source that is none"):
        StagingInput(StagingInput(QueueInput([])))
    with pytest.raises(ConfigurationError, match="at least 1"):
        StagingInput(QueueInput([]), 0)


def test_all_parts_of_a_step_see_the_same_staged_batch():
    class TwoParts(SimpleTrainer):
        def run_step(self):
            x = self.towers[0]["x"]
            pairs.append((self.hooked_sess.run(x), self.hooked_sess.run([x, self.train_op])[0]))

    pairs = []
    parts = trained(lambda: StagingInput(QueueInput(shuffled_batches())), TwoParts)
    assert all(np.array_equal(one, other) for one, other in pairs)
    assert parts.costs == trained(lambda: QueueInput(shuffled_batches())).costs


def test_tutorial_21_datasets_of_both_apis():
    x, y = (np.stack(column) for column in zip(*rows(), strict=True))
    expected = trained(lambda: FeedInput(BatchData(DataFromList(rows(), shuffle=False), 4))).costs
    for api in (tf, tf2):
        pairs = trained(lambda api=api: TFDatasetInput(api.data.Dataset.from_tensor_slices((x, y)).batch(4).repeat()))
        named = trained(
            lambda api=api: TFDatasetInput(api.data.Dataset.from_tensor_slices({"y": y, "x": x}).batch(4).repeat())
        )
        assert pairs.costs == named.costs == expected
    with pytest.raises(ConfigurationError, match=r"y: float64 .* instead of float32"):
        trained(lambda: TFDatasetInput(tf2.data.Dataset.from_tensor_slices((x, y.astype("f8"))).batch(4)))
    with pytest.raises(ConfigurationError, match=r"x: float32 \(None, 2\) instead of float32 \(None, 4\)"):
        trained(lambda: TFDatasetInput(tf2.data.Dataset.from_tensor_slices((x[:, :2], y)).batch(4)))
    with pytest.raises(ConfigurationError, match=r"takes a `tf\.data\.Dataset` or a data flow"):
        TFDatasetInput([[x, y]])


def test_tutorial_22_a_flow_processed_further_by_tf_data():
    def processed():
        flow = DataFromList(rows(), shuffle=False)
        return (
            flow_dataset(flow)
            .map(lambda x, y: (tf.ensure_shape(x, (4,)) * 2, tf.ensure_shape(y, ())))
            .batch(4)
            .repeat()
        )

    doubled = [[x * 2, y] for x, y in rows()]
    expected = trained(lambda: FeedInput(BatchData(DataFromList(doubled, shuffle=False), 4))).costs
    assert trained(lambda: TFDatasetInput(processed())).costs == expected


def test_tutorial_23_tensors_that_are_evaluated_each_step():
    def counted():
        count = tf.get_variable("count", (), tf.float32, tf.zeros_initializer(), trainable=False)
        value = count.assign_add(1.0)
        return {"y": tf.fill([4], 0.1 * value % 1), "x": tf.fill([4, 4], value)}

    source = TensorInput(counted, size=7)
    assert source.size() == 7
    assert trained(lambda: source).arrays["count"] == 15
    with pytest.raises(ConfigurationError, match="instead of float32"):
        trained(lambda: TensorInput(lambda: [tf.zeros([4, 5]), tf.zeros([4])]))
    with pytest.raises(NotImplementedError):
        TensorInput(counted).size()
    with pytest.raises(ConfigurationError, match="a function that returns tensors"):
        TensorInput([1])  # type: ignore[arg-type]


def test_tutorial_24_batches_of_other_processes():
    source = ZMQInput("tcp://127.0.0.1:*", 10)
    [address] = source.receiver.open()
    sender = threading.Thread(
        target=send_dataflow_zmq, args=(shuffled_batches(), address), kwargs={"format": "zmq_ops", "passes": 2}
    )
    sender.start()
    received = trained(lambda: source, epochs=4)
    sender.join(30)
    assert not sender.is_alive()
    assert received.costs == trained(lambda: QueueInput(shuffled_batches()), epochs=4).costs


def test_a_failing_sender_ends_the_training():
    def send(address):
        with pytest.raises(OSError, match="sample 7"):
            send_dataflow_zmq(FailingFlow(), address)

    source = ZMQInput("tcp://127.0.0.1:*", 10)
    sender = threading.Thread(target=send, args=source.receiver.open())
    sender.start()
    with pytest.raises(DataWorkerError, match=r"ended with OSError.*sample 7 cannot be read"):
        trained(lambda: source)
    sender.join(30)


def test_tutorial_25_the_recommended_sources_come_by_themselves():
    queue = QueueInput([])
    assert staged_for(queue, ["/cpu:0", "/cpu:1"]) is queue
    staged = staged_for(queue, ["/gpu:0", "/gpu:1"])
    assert isinstance(staged, StagingInput)
    assert staged.input is queue
    assert staged_for(staged, ["/gpu:0", "/gpu:1"]) is staged
    assert issubclass(PlainTrainer, SingleCostTrainer)


# ---- others


def test_dummy_constants_are_zeros():
    seen = trained(lambda: DummyConstantInput([(8, 4), (8,)]), optimizer=still)
    with tf.Graph().as_default():
        source = DummyConstantInput([(8, 4), (8,)])
        source.setup(signature())
        x, y = source.get_input_tensors()
        with tf.Session() as session:
            assert session.run([tf.reduce_sum(tf.abs(x)), tf.reduce_sum(tf.abs(y))]) == [0, 0]
    assert len(set(seen.costs)) == 1
    for shapes in ([(8, 4)], [(8, 3), (8,)]):
        with pytest.raises(ConfigurationError, match="has the sizes of each input"), tf.Graph().as_default():
            DummyConstantInput(shapes).setup(signature())


def test_placeholders_are_those_of_the_signature():
    with tf.Graph().as_default():
        source = PlaceholderInput()
        source.setup(signature())
        x, y = source.get_input_tensors()
        with tf.Session() as session:
            assert session.run(tf.reduce_sum(x) + y, {x: np.ones((1, 4)), y: [1]}).tolist() == [5]
    assert (x.name, y.name) == ("x:0", "y:0")


def test_a_remapped_source_feeds_the_named_inputs():
    def wider():
        return [tf.TensorSpec((), tf.float32, "unused"), *reversed(signature())]

    def cost(unused, y, x):
        assert unused.op.type == "Placeholder"
        return regression(x, y)

    source = remap_input_source(QueueInput(shuffled_batches()), ["x", "y"])
    assert isinstance(source, QueueInput)
    remapped = trained(lambda: source, cost=cost, inputs=wider)
    assert remapped.costs == trained(lambda: QueueInput(shuffled_batches())).costs
    with pytest.raises(StateError, match="is remapped after it was set up"):
        remap_input_source(source, ["x"])
    with pytest.raises(ConfigurationError, match="Names of inputs differ"):
        remap_input_source(QueueInput([]), ["x", "x"])
    with pytest.raises(ConfigurationError, match="A source gives inputs of the model"), tf.Graph().as_default():
        remap_input_source(QueueInput([]), ["z"]).setup(signature())


def test_the_size_of_a_source_is_that_of_its_flow():
    flow = FakeData([(4, 4), (4,)], 12, dtype="float32")
    for source in (FeedInput(flow), QueueInput(flow), StagingInput(QueueInput(flow)), TFDatasetInput(flow)):
        with tf.Graph().as_default():
            source.setup(signature())
        assert source.size() == len(source) == 12
    with pytest.raises(NotImplementedError):
        QueueInput(iter([])).size()
