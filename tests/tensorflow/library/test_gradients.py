"""Gradient processors: numbers against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from callback_trainings import train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import MovingAverageSummary
from ziggurat.errors import ConfigurationError
from ziggurat.tf.defaults import MergeAllSummaries
from ziggurat.tf.gradients import (
    CheckGradient,
    FilterNoneGrad,
    GlobalNormClip,
    GradientProcessor,
    MapGradient,
    PrintGradient,
    ScaleGradient,
    SummaryGradient,
)
from ziggurat.tf.optimizers import AccumGradOptimizer, apply_grad_processors
from ziggurat.tf.tower import MOVING_SUMMARIES, TowerContext

FIRST = np.array([3.0, -4.0], np.float32)
SECOND = np.array([[12.0]], np.float32)
ROWS = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def processed(*processors: GradientProcessor) -> dict[str, np.ndarray]:
    """Return what processors make of fixed gradients of `a/W`, `b/W` and, of two of its rows, `table`."""
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.get_variable("a/W", [2]), tf.get_variable("b/W", [1, 1])
        table = tf.get_variable("table", [5, 2])
        sparse = tf.IndexedSlices(tf.constant(ROWS), tf.constant([0, 3]), tf.constant([5, 2]))
        pairs: Any = [(tf.constant(FIRST), a), (tf.constant(SECOND), b), (sparse, table)]
        for processor in processors:
            pairs = processor.process(pairs)
        return {
            variable.op.name: session.run(gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient)
            for gradient, variable in pairs
        }


def test_global_norm_is_clipped() -> None:
    norm = np.sqrt(sum(float(np.square(each).sum()) for each in (FIRST, SECOND, ROWS)))

    clipped = processed(GlobalNormClip(2.0))
    assert np.allclose(clipped["a/W"], FIRST * 2 / norm)
    assert np.allclose(clipped["table"], ROWS * 2 / norm)
    assert np.allclose(processed(GlobalNormClip(1000.0))["b/W"], SECOND)
    with pytest.raises(ConfigurationError, match="above 0"):
        GlobalNormClip(0)


def test_functions_of_gradients_by_name() -> None:
    doubled = processed(MapGradient(lambda gradient: gradient * 2, "./W"))
    assert np.array_equal(doubled["a/W"], FIRST * 2)
    assert np.array_equal(doubled["b/W"], SECOND * 2)
    assert np.array_equal(doubled["table"], ROWS)
    assert list(processed(MapGradient(lambda gradient: None, "a"))) == ["a/W", "b/W", "table"]
    assert list(processed(MapGradient(lambda gradient, variable: None if variable.op.name == "b/W" else gradient))) == [
        "a/W",
        "table",
    ]


def test_scales_count_from_the_first_that_fits() -> None:
    scaled = processed(ScaleGradient([("b/.*", 0), (".*/W", 10), ("table", 0.5)]))

    assert list(scaled) == ["a/W", "table"]
    assert np.array_equal(scaled["a/W"], FIRST * 10)
    assert np.array_equal(scaled["table"], ROWS * 0.5)
    assert np.array_equal(processed(ScaleGradient(("a/W", 3), verbose=False))["a/W"], FIRST * 3)


def test_gradients_that_are_none_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default():
        used, unused = tf.get_variable("used", []), tf.get_variable("unused", [])
        kept = FilterNoneGrad().process([(tf.constant(1.0), used), (None, unused)])
        with pytest.raises(ConfigurationError, match="trainable"):
            FilterNoneGrad(verbose=False).process([(None, unused)])
    assert [variable.op.name for _, variable in kept] == ["used"]
    assert "unused" in caplog.text


def test_checked_gradients_name_the_variable() -> None:
    assert np.array_equal(processed(CheckGradient())["table"], ROWS)
    with tf.Graph().as_default(), tf.Session() as session:
        [(gradient, _)] = CheckGradient().process([(tf.constant([1.0, np.nan]), tf.get_variable("a/W", [2]))])
        with pytest.raises(tf.errors.InvalidArgumentError, match="gradient of a/W"):
            session.run(gradient)


def test_printed_gradients_are_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    printed = processed(PrintGradient("a/W|table"))
    assert np.array_equal(printed["table"], ROWS)  # still of two rows
    assert np.array_equal(printed["a/W"], FIRST)
    shown = capfd.readouterr().err
    assert "a/W" in shown
    assert "b/W" not in shown


def test_summaries_of_gradients_are_the_main_towers() -> None:
    def count(name: str, is_training: bool) -> tuple[int, int]:
        with tf.Graph().as_default() as graph, TowerContext(name, is_training=is_training):
            pairs: Any = [(tf.constant(FIRST), tf.get_variable("a/W", [2]))]
            SummaryGradient().process(pairs)
            SummaryGradient(collections=["other"]).process(pairs)
            found = graph.get_collection(MOVING_SUMMARIES)
            if found:
                with tf.Session() as session:
                    assert session.run(found[0].tensor) == pytest.approx(np.sqrt(12.5))
            return len(graph.get_collection("summaries")), len(graph.get_collection("other"))

    assert count("", True) == (1, 1)
    assert count("predict", False) == (0, 0)


def test_processors_work_within_a_training() -> None:
    def optimizer() -> Any:
        processors = [FilterNoneGrad(), SummaryGradient(), ScaleGradient(("linear/b", 0)), GlobalNormClip(1e-3)]
        return apply_grad_processors(tf.train.GradientDescentOptimizer(1.0), processors)

    values = variables(train([], epochs=1, steps=1, get_optimizer=optimizer))

    assert not values["linear/b"].any()
    assert np.linalg.norm(values["linear/W"]) == pytest.approx(1e-3, rel=1e-4)
    with pytest.raises(ConfigurationError, match="MapGradient"):
        wrong: Any = [lambda pairs: pairs]
        apply_grad_processors(tf.train.GradientDescentOptimizer(1.0), wrong)


def test_summaries_stay_out_of_accumulation(caplog: pytest.LogCaptureFixture) -> None:
    def inside() -> Any:
        return AccumGradOptimizer(apply_grad_processors(tf.train.GradientDescentOptimizer(1.0), [SummaryGradient()]), 3)

    def around() -> Any:
        return apply_grad_processors(AccumGradOptimizer(tf.train.GradientDescentOptimizer(1.0), 3), [SummaryGradient()])

    callbacks = lambda: [MovingAverageSummary(), MergeAllSummaries()]  # noqa: E731
    assert not train(callbacks(), epochs=1, steps=4, get_optimizer=inside).monitors.latest()
    assert "around AccumGradOptimizer" in caplog.text
    trainer = train(callbacks(), epochs=1, steps=4, get_optimizer=around)
    assert "SummaryGradient/linear/W/rms" in trainer.monitors.latest()
