"""Layers in trainings: over towers with synchronized statistics, and resumed bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import DataFromList
from ziggurat.engine.callback import Callback
from ziggurat.engine.run_state import RunState
from ziggurat.tf.argument_scopes import argscope
from ziggurat.tf.data_parallel import SyncMultiGPUTrainerParameterServer, SyncMultiGPUTrainerReplicated
from ziggurat.tf.graph_callbacks import RunUpdateOps
from ziggurat.tf.inputs.base import FeedInput
from ziggurat.tf.linear_wrap import LinearWrap
from ziggurat.tf.merge_summaries import MergeAllSummaries, MovingAverageSummary
from ziggurat.tf.models import BatchNorm, BNReLU, Conv2D
from ziggurat.tf.summary import add_moving_summary
from ziggurat.tf.trainers import SimpleTrainer

IMAGES = np.random.RandomState(4).rand(24, 8, 6, 6, 2).astype(np.float32)
LABELS = np.random.RandomState(5).randint(0, 3, (24, 8))


class Stop(Callback):
    """Stops after a step, and keeps the state of the training at its end."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.found: RunState | None = None

    def trigger_step(self) -> None:
        if self.global_step == self.step:
            self.trainer.request_stop()

    def before_stop(self) -> None:
        self.found = self.trainer.state()

    def after_train(self) -> None:
        if self.found is None:
            self.found = self.trainer.state()


def trained(
    make_trainer: Callable[[], Any],
    batches: list[Any],
    *,
    sync: str | None = None,
    dropout: float = 0.0,
    start: RunState | None = None,
    stop: int = 0,
) -> RunState:
    """Train a small network for 2 epochs of 6 steps; return its state at the end, or at the stop."""

    def network(images: Any, labels: Any) -> Any:
        with (
            argscope(Conv2D, kernel_size=3, activation=BNReLU),
            argscope(BatchNorm, sync_statistics=sync, momentum=0.6),
        ):
            logits = (
                LinearWrap(images)
                .Conv2D("conv0", 4)
                .MaxPooling("pool", 2)
                .Conv2D("conv1", 4)
                .Dropout("drop", rate=dropout)
                .FullyConnected("fc", 3)()
            )
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        cost = tf.reduce_mean(losses, name="cost")
        add_moving_summary(cost, summary_collections=[tf.GraphKeys.SUMMARIES])
        return cost

    with tf.Graph().as_default():
        tf.set_random_seed(9)
        trainer = make_trainer()
        signature = [tf.TensorSpec((None, 6, 6, 2), tf.float32, "images"), tf.TensorSpec((None,), tf.int32, "labels")]
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        trainer.setup_graph(signature, FeedInput(DataFromList(batches, shuffle=False)), network, lambda: optimizer)
        trainer.resume_from(start)
        end = Stop(stop)
        callbacks = [MovingAverageSummary(), MergeAllSummaries(), RunUpdateOps(), end]
        trainer.train(callbacks, steps_per_epoch=6, max_epoch=2)
    assert end.found is not None
    return end.found


WHOLE = [[IMAGES[number], LABELS[number]] for number in range(12)]


@pytest.fixture(scope="module")
def one() -> Any:
    """What one tower reaches on the whole batches."""
    return trained(SimpleTrainer, WHOLE).arrays


@pytest.fixture(scope="module")
def uninterrupted() -> RunState:
    return trained(SimpleTrainer, WHOLE, dropout=0.4)


@pytest.mark.parametrize("trainer", [SyncMultiGPUTrainerReplicated, SyncMultiGPUTrainerParameterServer])
def test_two_towers_equal_one_on_the_whole_batch(trainer: Any, one: Any) -> None:
    halves = [[IMAGES[n][part], LABELS[n][part]] for n in range(12) for part in (slice(0, 4), slice(4, 8))]
    two = trained(lambda: trainer(2), halves, sync="towers").arrays
    names = [name for name in one if name.startswith(("conv", "fc"))]
    assert len(names) > 12
    for name in names:
        np.testing.assert_allclose(two[name], one[name], rtol=2e-3, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("stop", [4, 6, 9])
def test_dropout_and_averages_resume_bit_for_bit(stop: int, uninterrupted: RunState) -> None:
    parted = trained(SimpleTrainer, WHOLE, dropout=0.4, stop=stop)
    resumed = trained(SimpleTrainer, WHOLE, dropout=0.4, start=parted)
    assert set(resumed.arrays) == set(uninterrupted.arrays)
    for name, value in uninterrupted.arrays.items():
        assert resumed.arrays[name].tobytes() == value.tobytes(), name
    assert resumed.meta["callbacks"] == uninterrupted.meta["callbacks"]
