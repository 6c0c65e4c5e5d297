"""Summaries: what is logged, when, and where it goes."""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import DataFromList
from ziggurat.engine.callback import Callback
from ziggurat.engine.monitor import Monitor, Scalar
from ziggurat.engine.monitors.json_writers import JSONWriter
from ziggurat.engine.monitors.scalar_printer import ScalarPrinter
from ziggurat.engine.monitors.tensorboard import TFEventWriter
from ziggurat.errors import ConfigurationError, UsageError
from ziggurat.events import Message
from ziggurat.tf.inputs.base import FeedInput
from ziggurat.tf.merge_summaries import MergeAllSummaries, MovingAverageSummary
from ziggurat.tf.models import FullyConnected
from ziggurat.tf.summary import (
    add_activation_summary,
    add_moving_summary,
    add_param_summary,
    add_tensor_summary,
    create_image_summary,
    create_scalar_summary,
)
from ziggurat.tf.tower import MOVING_SUMMARIES, PredictTowerContext, TowerContext, TrainTowerContext
from ziggurat.tf.trainers import SimpleTrainer

BATCHES = np.random.RandomState(2).rand(4, 3, 2).astype(np.float32)
STEPS = len(BATCHES)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


class Collected(Monitor):
    """Keeps what it is given, by tag: (step, value) of numbers, and (step, kind) of everything else."""

    def __init__(self) -> None:
        self.scalars: dict[str, list[tuple[int, float]]] = {}
        self.others: list[tuple[int, str, str]] = []

    def process_scalar(self, scalar: Scalar) -> None:
        self.scalars.setdefault(scalar.tag, []).append((scalar.step, scalar.value))

    def process_summary(self, summary: Any, step: int) -> None:
        for value in tf.Summary.FromString(summary).value:
            self.others.append((step, value.tag, value.WhichOneof("value")))


def trained(
    summarize: Callable[[Any, Any], object],
    callbacks: Sequence[Callback],
    monitors: Sequence[Monitor] = (),
    *,
    epochs: int = 2,
    trainer: SimpleTrainer | None = None,
) -> Collected:
    """Train on four batches an epoch; ``summarize`` gets the inputs and the cost of a tower."""

    def network(x: Any) -> Any:
        weights = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        cost = tf.reduce_mean(tf.square(x @ weights), name="cost")
        summarize(x, cost)
        return cost

    trainer = trainer or SimpleTrainer()
    flow = DataFromList([[batch] for batch in BATCHES], shuffle=False)
    signature = [tf.TensorSpec((None, 2), tf.float32, "x")]
    trainer.setup_graph(signature, FeedInput(flow), network, lambda: tf.train.GradientDescentOptimizer(0.01))
    collected = Collected()
    trainer.train(callbacks, [collected, *monitors], steps_per_epoch=STEPS, max_epoch=epochs)
    return collected


def sums(*numbers: int) -> list[tuple[int, float]]:
    """Return (step, sum of the step's batch) of these steps."""
    return [(number, pytest.approx(BATCHES[(number - 1) % STEPS].sum(), rel=1e-6)) for number in numbers]


def written(folder: Path) -> list[tuple[int, Any]]:
    """Return (step, value) of every summary in the event files of a folder, read by TensorFlow."""
    (path,) = folder.glob("events*")
    return [(event.step, value) for event in tf.train.summary_iterator(str(path)) for value in event.summary.value]


def test_tutorial_68_tf_summaries_of_the_main_tower() -> None:
    def build() -> None:
        tf.summary.scalar("number", tf.ones([]))
        tf.summary.histogram("spread", tf.ones([3]))
        add_moving_summary(tf.ones([], name="one"))

    for context in (TrainTowerContext("tower0", index=0, total=2), TrainTowerContext("tower1", index=1, total=2)):
        with context:
            build()
    with PredictTowerContext("tower-pred"):
        build()
    names = [each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert names == ["tower0/number", "tower0/spread"]
    assert [each.tag for each in tf.get_collection(MOVING_SUMMARIES)] == ["one"]


def test_tutorial_69_merged_once_an_epoch_with_its_last_batch() -> None:
    def summarize(x: Any, _: Any) -> None:
        tf.summary.scalar("total", tf.reduce_sum(x))
        tf.summary.histogram("spread", x)

    found = trained(summarize, [MergeAllSummaries()])
    assert found.scalars == {"total": sums(4, 8)}
    assert found.others == [(4, "spread", "histo"), (8, "spread", "histo")]


def test_tutorial_69_names_without_tower_and_suffix() -> None:
    def summarize(x: Any, cost: Any) -> None:
        with tf.name_scope("tower0/"):
            add_tensor_summary(cost, ["scalar"], "cost")
            tf.summary.image("pictures", tf.reshape(x, [1, 3, 2, 1]))

    found = trained(summarize, [MergeAllSummaries()], epochs=1)
    assert list(found.scalars) == ["cost"]
    assert found.others == [(4, "pictures/image/0", "image")]


def test_tutorial_70_every_monitor_gets_them(tmp_path: Path) -> None:
    def summarize(x: Any, _: Any) -> None:
        tf.summary.scalar("total", tf.reduce_sum(x))
        tf.summary.histogram("spread", x)
        tf.summary.image("pictures", tf.reshape(x, [1, 3, 2, 1]))

    stream, path = io.StringIO(), tmp_path / "stats.json"
    trained(summarize, [MergeAllSummaries()], [TFEventWriter(tmp_path), JSONWriter(path), ScalarPrinter(stream=stream)])
    assert stream.getvalue().count("  total: ") == 2
    assert [(line["global_step"], line["total"]) for line in map(json.loads, path.read_text().splitlines())] == sums(
        4, 8
    )
    found = {(step, value.tag): value for step, value in written(tmp_path)}
    assert set(found) == {(step, tag) for step in (4, 8) for tag in ("total", "spread", "pictures/image/0")}
    assert found[8, "total"].simple_value == pytest.approx(BATCHES[3].sum())
    assert found[8, "spread"].histo.num == 6
    assert found[8, "spread"].histo.sum == pytest.approx(BATCHES[3].sum())
    assert (found[8, "pictures/image/0"].image.height, found[8, "pictures/image/0"].image.width) == (3, 2)


def test_tutorial_71_more_often_and_apart() -> None:
    def summarize(x: Any, cost: Any) -> None:
        tf.summary.scalar("total", tf.reduce_sum(x))
        tf.summary.scalar("often", tf.reduce_sum(x), collections=["frequent"])

    found = trained(summarize, [MergeAllSummaries(), MergeAllSummaries(period=3, key="frequent")])
    assert found.scalars == {"total": sums(4, 8), "often": sums(3, 4, 6, 8)}


def test_tutorial_72_moving_averages_of_all_steps() -> None:
    def summarize(x: Any, _: Any) -> None:
        total = tf.reduce_sum(x, name="total")
        count = tf.size(x, name="count")
        assert add_moving_summary(total, count, decay=0.6) == [total, count]

    found = trained(summarize, [MovingAverageSummary()])
    average, weight, wanted = 0.0, 0.0, []
    for number in range(1, 9):
        average = 0.6 * average + 0.4 * float(BATCHES[(number - 1) % STEPS].sum())
        weight = 0.6 * weight + 0.4
        if number % STEPS == 0:
            wanted.append((number, pytest.approx(average / weight, rel=1e-6)))
    assert found.scalars == {"total": wanted, "count": [(4, pytest.approx(6)), (8, pytest.approx(6))]}


def test_tutorial_72_moving_averages_with_a_period() -> None:
    def summarize(x: Any, _: Any) -> None:
        add_moving_summary([tf.reduce_sum(x, name="total")], decay=0.0, summary_collections=["frequent"])
        add_moving_summary(tf.reduce_max(x, name="top"), decay=0.0, collection="others")

    frequent = MergeAllSummaries(period=3, key="frequent")
    found = trained(summarize, [MovingAverageSummary(), MovingAverageSummary("others"), frequent], epochs=1)
    assert found.scalars["total"] == sums(3, 4)
    assert found.scalars["top"] == [(4, pytest.approx(BATCHES[3].max()))]
    assert set(frequent.state()) == {"total"}


def test_tutorial_73_callbacks_put_data_of_their_own(tmp_path: Path) -> None:
    class Put(Callback):
        def trigger_epoch(self) -> None:
            monitors = self.trainer.monitors
            monitors.put_scalar("validation", 0.5)
            monitors.put_image("image", np.zeros((2, 2, 3), np.uint8))
            monitors.put_summary(create_scalar_summary("number", 3))
            monitors.put_summary(create_image_summary("pixels", np.full((2, 4, 5, 1), 300.0)))
            monitors.put_summary(tf.Summary(value=[]).SerializeToString())
            monitors.put_event(Message(time=monitors.now(), level="info", text="said", step=self.global_step))

    found = trained(lambda x, cost: None, [Put()], [TFEventWriter(tmp_path)], epochs=1)
    assert found.scalars == {"validation": [(4, 0.5)], "number": [(4, 3.0)]}
    assert found.others == [(4, "pixels/0", "image"), (4, "pixels/1", "image")]
    values = [value for _, value in written(tmp_path)]
    assert {value.tag for value in values} == {"validation", "image", "number", "pixels/0", "pixels/1"}
    pixels = next(value.image for value in values if value.tag == "pixels/1")
    decoded = np.asarray(Image.open(io.BytesIO(pixels.encoded_image_string)))
    assert decoded.tolist() == np.full((4, 5), 255).tolist()


def test_summaries_alone_need_no_batch() -> None:
    def summarize(x: Any, _: Any) -> None:
        tf.summary.scalar("weight", tf.trainable_variables()[0][0, 0], collections=["alone"])

    found = trained(summarize, [MergeAllSummaries(period=3, run_alone=True, key="alone")])
    assert [step for step, _ in found.scalars["weight"]] == [3, 4, 6, 8]
    values = [value for _, value in found.scalars["weight"]]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 4


def test_summaries_alone_of_a_batch_are_an_error() -> None:
    with pytest.raises(UsageError, match=r"`run_alone` is for summaries that need no batch.*that need x"):
        trained(lambda x, cost: tf.summary.scalar("cost", cost), [MergeAllSummaries(run_alone=True)])


def test_nothing_to_summarize_costs_nothing() -> None:
    callbacks = [MergeAllSummaries(), MovingAverageSummary()]
    assert trained(lambda x, cost: None, callbacks, epochs=1).scalars == {}
    assert [callback.hooks() for callback in callbacks] == [frozenset(), frozenset()]
    with pytest.raises(ConfigurationError, match="`period` must be 0 or more"):
        MergeAllSummaries(-1)


def test_steps_of_several_parts_are_summarized_too() -> None:
    class Parts(SimpleTrainer):
        def run_step(self) -> None:
            self.hooked_sess.run(self.train_op)
            self.hooked_sess.run([])

    found = trained(lambda x, _: tf.summary.scalar("total", tf.reduce_sum(x)), [MergeAllSummaries()], trainer=Parts())
    assert found.scalars == {"total": sums(4, 8)}


def test_summaries_of_parameters_and_activations() -> None:
    with TowerContext("", is_training=True):
        x = FullyConnected("fc", tf.ones([1, 2]), 2, activation=tf.nn.relu)
        add_param_summary((".*/W", ["histogram", "rms", "mean"]), ("nothing", ["scalar"]))
        add_param_summary((".*/b", ["sparsity"]), collections=["own"])
        add_activation_summary(x)
        add_activation_summary(x, ["mean"], name="again")
    with TowerContext("predict", is_training=False):
        add_param_summary((".*", ["rms"]))
        add_activation_summary(x)
    names = [each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert names == [
        "param-summary/fc/W-histogram",
        "param-summary/fc/W-rms",
        "param-summary/fc/W-mean",
        "activation-summary/fc/output-sparsity",
        "activation-summary/fc/output-rms",
        "activation-summary/fc/output-histogram",
        "activation-summary/again-mean",
    ]
    assert [each.op.name for each in tf.get_collection("own")] == ["param-summary/fc/b-sparsity"]


def test_summaries_that_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="curve is no type of summary; these are scalar"):
        add_tensor_summary(tf.ones([]), ["curve"])
    with pytest.raises(ConfigurationError, match=r"of single numbers \(received: `many` with shape \(3,\)"):
        add_moving_summary(tf.ones([3], name="many"))
    with pytest.raises(ConfigurationError, match="`decay`"):
        add_moving_summary(tf.ones([]), decay=1.0)
    with pytest.raises(ConfigurationError, match="An activation has an axis"):
        add_activation_summary(tf.ones([]))
    with pytest.raises(ConfigurationError, match="at most 4 channels"):
        create_image_summary("image", np.zeros((2, 2, 5)))
    with tf.variable_scope("", reuse=True):
        assert add_moving_summary(tf.ones([])) == []
