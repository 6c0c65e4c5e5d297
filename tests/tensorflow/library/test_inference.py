"""Evaluation during a training on graphs: exact, in a tower of its own, on one device and on several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from callback_trainings import flow, samples, train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import (
    BinaryClassificationStats,
    ClassificationError,
    Inferencer,
    PeriodicTrigger,
    ScalarStats,
)
from ziggurat.dataflow import BatchData, DataFromGenerator
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError
from ziggurat.tf.inference import DataParallelInferenceRunner, InferenceRunner
from ziggurat.tf.inputs.base import FeedInput, InputSource
from ziggurat.tf.inputs.queue import QueueInput

VALIDATION = samples(21, seed=9)


def validation(batch: int = 8) -> Any:
    return flow(21, batch, seed=9, shuffle=False)


def expected(trainer: Any) -> tuple[float, float]:
    """Return error and mean cost of the validation set, computed by NumPy."""
    values = variables(trainer)
    x = np.stack([each[0] for each in VALIDATION]).astype(np.float64)
    labels = np.array([each[1] for each in VALIDATION])
    logits = x @ values["linear/W"] + values["linear/b"]
    costs = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(labels)), labels]
    return float(np.mean(logits.argmax(1) != labels)), float(costs.mean())


def statistics() -> list[Inferencer]:
    return [ClassificationError("wrong-top1", "val-error"), ScalarStats("cost")]


@pytest.mark.parametrize("batch", [1, 8, 21, 50])
def test_tutorial_51_every_sample_counts_once(batch: int) -> None:
    trainer = train([InferenceRunner(validation(batch), statistics())])

    error, cost = expected(trainer)
    assert trainer.monitors.get_latest("val-error") == pytest.approx(error, abs=1e-9)
    assert trainer.monitors.get_latest("validation_cost") == pytest.approx(cost, rel=1e-5)
    assert [step for step, _ in trainer.monitors.get_history("val-error")] == [8, 16]


@pytest.mark.parametrize("source", [FeedInput, QueueInput])
def test_tutorial_75_inference_takes_input_sources(source: Any) -> None:
    trainer = train([InferenceRunner(source(validation()), statistics())])

    assert trainer.monitors.get_latest("val-error") == pytest.approx(expected(trainer)[0], abs=1e-9)


@pytest.mark.parametrize("source", [FeedInput, QueueInput])
@pytest.mark.parametrize("towers", [1, 2, 4])
def test_tutorial_75_data_parallel_inference_is_exact(towers: int, source: Any) -> None:
    runner = DataParallelInferenceRunner(source(validation(5)), statistics(), ["/cpu:0"] * towers)
    trainer = train([runner])

    error, cost = expected(trainer)
    assert trainer.monitors.get_latest("val-error") == pytest.approx(error, abs=1e-9)
    assert trainer.monitors.get_latest("validation_cost") == pytest.approx(cost, rel=1e-5)


def test_tutorial_76_inference_tower_does_not_train() -> None:
    seen: list[tuple[str, bool]] = []

    def noting(x: Any, label: Any) -> Any:
        from ziggurat.tf.tower import get_current_tower_context

        context = get_current_tower_context()
        assert context is not None
        seen.append((context.ns_name, context.is_training))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op())
        weights = tf.get_variable("w", [4, 1], initializer=tf.ones_initializer())
        return tf.reduce_mean(x @ weights, name="cost")

    trainer = train([InferenceRunner(validation(), ScalarStats("cost"))], get_cost=noting)

    assert seen == [("", True), ("InferenceTower", False)]
    assert len(trainer.graph.get_collection(tf.GraphKeys.UPDATE_OPS)) == 1


def test_two_runners_have_towers_of_their_own() -> None:
    other = flow(5, 2, seed=4, shuffle=False)
    runners = [
        InferenceRunner(validation(), ClassificationError("wrong-top1", "first")),
        InferenceRunner(other, ClassificationError("wrong-top1", "second"), tower_name="Other"),
    ]
    trainer = train(runners)

    assert {each.ns_name for each in trainer.towers.inference()} == {"InferenceTower", "Other"}
    assert trainer.monitors.get_latest("first") == pytest.approx(expected(trainer)[0], abs=1e-9)

    again = [InferenceRunner(validation(), statistics()) for _ in range(2)]
    with pytest.raises(ConfigurationError, match="tower_name"):
        train(again)


class Largest(Inferencer):
    """In Tensorpack's form."""

    def _before_inference(self) -> None:
        self.largest = -np.inf

    def _get_fetches(self) -> list[str]:
        return ["logits", "x"]

    def _on_fetches(self, results: list[np.ndarray]) -> None:
        logits, x = results
        assert logits.shape == (len(x), 3)
        self.largest = max(self.largest, float(x.max()))

    def _after_inference(self) -> dict[str, float]:
        return {"largest": self.largest}


def test_own_inferencer_with_tensorpacks_names() -> None:
    trainer = train([PeriodicTrigger(InferenceRunner(validation(), [Largest()]), every_k_epochs=2)], epochs=2)

    assert trainer.monitors.get_latest("largest") == pytest.approx(max(float(row.max()) for row, _ in VALIDATION))
    assert len(trainer.monitors.get_history("largest")) == 1


def test_binary_statistics_of_a_tower() -> None:
    def binary(x: Any, label: Any) -> Any:
        weights = tf.get_variable("w", [4, 1], initializer=tf.ones_initializer())
        tf.cast(x[:, 0] > 0, tf.int32, name="called")
        tf.cast(label > 0, tf.int32, name="true")
        return tf.reduce_mean(x @ weights, name="cost")

    trainer = train([InferenceRunner(validation(), BinaryClassificationStats("called", "true"))], get_cost=binary)

    called = np.array([row[0] > 0 for row, _ in VALIDATION])
    true = np.array([label > 0 for _, label in VALIDATION])
    assert trainer.monitors.get_latest("val_precision") == pytest.approx(np.mean(true[called]))
    assert trainer.monitors.get_latest("val_recall") == pytest.approx(np.mean(called[true]))


class Counted(InputSource):
    """Batches that are made in the graph: three of two rows, then one of five."""

    def __init__(self, sized: bool) -> None:
        super().__init__()
        self._sized = sized

    def _get_input_tensors(self) -> list[Any]:
        flow = tf.data.Dataset.from_generator(self._batches, (tf.float32, tf.int32), ((None, 4), (None,)))
        self._iterator = tf.data.make_initializable_iterator(flow)
        return list(self._iterator.get_next())

    def _batches(self) -> Any:
        for rows, cost_sign in [(2, 1.0), (2, 1.0), (2, 1.0), (5, -1.0)]:
            yield np.full((rows, 4), cost_sign, np.float32), np.zeros(rows, np.int32)

    def reset_state(self) -> None:
        session = tf.get_default_session()
        assert session is not None
        session.run(self._iterator.initializer)

    def _size(self) -> int:
        return 4 if self._sized else super()._size()


@pytest.mark.parametrize("sized", [True, False])
def test_sources_of_tensors_run_for_size_or_to_the_end(sized: bool) -> None:
    def mean(x: Any, label: Any) -> Any:
        weights = tf.get_variable("w", [4, 1], initializer=tf.ones_initializer())
        tf.reduce_mean(x, name="mean")
        return tf.reduce_mean(tf.square(x @ weights), name="cost")

    trainer = train([InferenceRunner(Counted(sized), ScalarStats("mean"))], get_cost=mean)

    assert trainer.monitors.get_latest("validation_mean") == pytest.approx((6 - 5) / 11)


@pytest.mark.parametrize("source", [FeedInput, QueueInput])
def test_errors_of_validation_data_end_the_training(source: Any) -> None:
    def broken() -> Any:
        yield from VALIDATION[:3]
        raise ValueError("the file is damaged")

    runner = InferenceRunner(source(BatchData(DataFromGenerator(broken), 2)), statistics())
    with pytest.raises(Exception, match="the file is damaged"):
        train([runner])


def test_validation_errors_say_what_to_do() -> None:
    with pytest.raises(DataError, match="at least one batch"):
        train([InferenceRunner([], statistics())])
    with pytest.raises(DataError, match="1 component"):
        train([InferenceRunner([[np.zeros((2, 4))]], statistics())])
    with pytest.raises(UnknownNameError, match="wrong-top1"):
        train([InferenceRunner(validation(), ClassificationError("wrong-top2"))])
    with pytest.raises(ConfigurationError, match="data flow"):
        DataParallelInferenceRunner(Counted(True), statistics(), 2)


def test_variables_are_fetched_by_name() -> None:
    trainer = train([InferenceRunner(validation(), ScalarStats(["linear/b", "learning_rate:0"]))], epochs=1)

    assert trainer.monitors.get_latest("validation_learning_rate") == pytest.approx(0.1)
    mean = float(variables(trainer)["linear/b"].mean())
    assert trainer.monitors.get_latest("validation_linear/b") == pytest.approx(mean)
