"""Evaluation while it trains: every sample exactly once."""

import math

import numpy as np
import pytest
from engine_fakes import FakeProgram, make_trainer, train

from ziggurat.callbacks import (
    BinaryClassificationStats,
    ClassificationError,
    Inferencer,
    InferenceRunner,
    PeriodicTrigger,
    ScalarStats,
)
from ziggurat.dataflow.base import DataFlow
from ziggurat.engine.callbacks.batches import batch_keys, batch_size
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError
from ziggurat.tasks.weighted_mean import WeightedMean, WeightedSum

VALIDATION = [[np.array([0.0, 1, 2])], [np.array([3.0, 4, 0])], [np.array([9.0])]]
"""Seven samples; the last batch is smaller."""


class Costs(FakeProgram):
    """The cost of a batch is the mean of its rows."""

    def evaluate(self, batch, names):
        values = dict(super().evaluate(batch, names))
        if "cost" in values:
            values["cost"] = float(np.mean(batch[0]))
        return values


def test_means_are_taken_over_samples_not_over_batches():
    memory = train(InferenceRunner(VALIDATION, [ScalarStats(["cost", "rows"])]), program=Costs())
    mean = (0 + 1 + 2 + 3 + 4 + 0 + 9) / 7
    assert memory.points("validation_cost") == [(4, pytest.approx(mean))]
    assert memory.points("validation_rows") == [(4, pytest.approx(mean))]  # one number a sample


def test_the_classification_error_counts_samples():
    runner = InferenceRunner(VALIDATION, [ClassificationError("wrong"), ClassificationError("wrong", "val-error-top1")])
    memory = train(runner)
    assert memory.points("validation_error") == memory.points("val-error-top1") == [(4, pytest.approx(5 / 7))]


def test_precision_and_recall():
    batches = [[np.array([1, 1, 0]), np.array([1, 0, 1])], [np.array([1.0]), np.array([1])]]
    memory = train(InferenceRunner(batches, BinaryClassificationStats("wrong", "labels")))
    assert memory.points("val_precision") == [(4, pytest.approx(2 / 3))]
    assert memory.points("val_recall") == [(4, pytest.approx(2 / 3))]


def test_the_ratio_of_nothing_is_not_a_number():
    batches = [[np.array([0.0, 0]), np.array([0, 0])]]
    memory = train(InferenceRunner(batches, BinaryClassificationStats("wrong", "labels", prefix="x")))
    assert [math.isnan(memory.points(tag)[0][1]) for tag in ("x_precision", "x_recall")] == [True, True]


def test_prefixes_may_be_left_out_and_one_name_is_enough():
    assert train(InferenceRunner(VALIDATION, ScalarStats("cost", prefix=""))).points("cost")


def test_every_pass_begins_anew_and_training_is_not_touched():
    alone, watched = FakeProgram(), FakeProgram()
    make_trainer(program=alone).train(2)
    memory = train(InferenceRunner(VALIDATION, ClassificationError("wrong")), program=watched, epochs=2)
    assert memory.points("validation_error") == [(4, pytest.approx(5 / 7)), (8, pytest.approx(5 / 7))]
    assert watched.weight == alone.weight


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda runner: runner(every_k_epochs=2), [8, 16]),
        (lambda runner: runner(every_k_epochs=None, every_k_steps=6), [6, 12]),
        (lambda runner: runner(before_train=True, every_k_epochs=4), [0, 16]),
        (lambda runner: PeriodicTrigger(runner(), every_k_steps=6), [6, 12]),
    ],
)
def test_when(make, steps):
    memory = train(make(lambda **when: InferenceRunner(VALIDATION, ScalarStats("cost"), **when)), epochs=4)
    assert [step for step, _ in memory.points("validation_cost")] == steps


def test_an_inferencer_of_ones_own():
    class Largest(Inferencer):
        def names(self):
            return ["rows"]

        def before_inference(self):
            self.largest, self.samples = -math.inf, 0

        def on_values(self, values, batch):
            self.largest = max(self.largest, values["rows"].max())
            self.samples += batch_size(batch)

        def after_inference(self):
            return {"largest": self.largest, "samples": self.samples}

    memory = train(InferenceRunner(VALIDATION, Largest()))
    assert (memory.points("largest"), memory.points("samples")) == ([(4, 9)], [(4, 7)])


def test_tensorpacks_way_to_write_an_inferencer_works():
    class Old(Inferencer):
        def _before_inference(self):
            self.seen = []

        def _get_fetches(self):
            return ["labels", "cost"]

        def _on_fetches(self, results):
            labels, _cost = results
            self.seen.extend(labels.tolist())

        def _after_inference(self):
            return {"sum": sum(self.seen)}

    assert train(InferenceRunner(VALIDATION, [Old()])).points("sum") == [(4, 19)]


def test_names_are_declared_and_wrong_ones_are_errors_at_once():
    program = FakeProgram()
    train(InferenceRunner(VALIDATION, [ScalarStats(["cost", "rows"]), ClassificationError("wrong")]), program=program)
    assert program.declared == ["cost", "rows", "wrong"]
    with pytest.raises(UnknownNameError, match="`incorrect_vector` is not a known value of this program"):
        train(InferenceRunner(VALIDATION, ClassificationError()))


def test_the_position_of_the_flow_is_part_of_the_state():
    class Counted(DataFlow):
        def __iter__(self):
            yield [np.array([float(self.pass_index)])]

    first = make_trainer(InferenceRunner(Counted(), ScalarStats("rows")))
    first.train(2)
    second = make_trainer(InferenceRunner(Counted(), ScalarStats("rows")))
    second.load_state(first.state())
    second.train(3)
    assert second.monitors.get_latest("validation_rows") == 2.0


class Weighted(FakeProgram):
    """The cost of a batch is the mean of its rows, each as much as it is large."""

    def evaluate(self, batch, names):
        values = dict(super().evaluate(batch, names))
        rows = np.asarray(batch[0])
        total, weight = float((rows * rows).sum()), float(rows.sum())
        values["cost"] = WeightedMean(total / weight, [WeightedSum(total, weight, weight)])
        return values


def test_scalar_stats_adds_up_sums_and_weights():
    memory = train(InferenceRunner(VALIDATION, ScalarStats("cost")), program=Weighted())
    assert memory.points("validation_cost") == [(4, pytest.approx((0 + 1 + 4 + 9 + 16 + 0 + 81) / 19))]


@pytest.mark.parametrize("is_old", [True, False], ids=["older-version", "this-version"])
def test_runner_says_that_an_older_curve_changes(caplog, is_old):
    first = make_trainer(InferenceRunner(VALIDATION, ScalarStats("cost")), program=Weighted())
    first.train(2)
    state = first.state()
    if is_old:
        state.meta["callbacks"] = {}
    second = make_trainer(InferenceRunner(VALIDATION, ScalarStats("cost")), program=Weighted())
    second.load_state(state)
    caplog.clear()
    second.train(4)
    told = [record.getMessage() for record in caplog.records if "weighted mean over the whole split" in record.message]
    assert [text.startswith("From epoch 3 on, the validation value of cost") for text in told] == [True] * is_old


def test_an_empty_validation_set_is_an_error():
    with pytest.raises(
        DataError, match=r"A validation set has at least one batch \(received: none\). Keep the remainder"
    ):
        train(InferenceRunner([], ScalarStats("cost")))


def test_a_mean_where_a_vector_is_needed_is_an_error():
    with pytest.raises(DataError) as caught:
        train(InferenceRunner(VALIDATION, ClassificationError("cost")))
    assert "`cost` must be a vector with one number a sample (received: shape ())." in str(caught.value)


def test_periods_are_checked():
    with pytest.raises(ConfigurationError, match=r"`every_k_epochs` must be above 0, or None for never"):
        InferenceRunner(VALIDATION, ScalarStats("cost"), every_k_epochs=0)


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        ([np.zeros((5, 2)), np.zeros(5)], 5),
        ((np.zeros((3, 2)),), 3),
        ({"image": np.zeros((4, 8, 8, 3)), "label": np.zeros(4)}, 4),
        ([{"x": np.zeros((6, 1))}, np.zeros(6)], 6),
        (np.zeros((7, 2)), 7),
        ([["a", "b"], np.zeros(2)], 2),
    ],
)
def test_the_size_of_a_batch_is_that_of_its_first_component(batch, size):
    assert batch_size(batch) == size


def test_a_batch_without_samples_is_an_error():
    with pytest.raises(DataError, match=r"The first component of a batch must have one row a sample \(received: float"):
        batch_size(3.0)


def test_keys_are_found_where_a_batch_carries_them():
    class WithKeys(list):
        keys = ("k1", "k2")

    assert batch_keys({"x": 1, "key": np.array([3, 4])}) == ["3", "4"]
    assert batch_keys({"x": 1}) == []
    assert batch_keys(WithKeys()) == ["k1", "k2"]
    assert batch_keys([1, 2]) == []
