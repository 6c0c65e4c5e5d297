"""Values that the graph keeps: the same averages, no fetches, the first bad step, and a graph open to callbacks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorflow_networks import SMALL, batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import build_job_graph, session_config
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import (
    BlackBox,
    Callback,
    LogScalars,
    Monitor,
    MovingAverageSummary,
    PeriodicCallback,
    Scalar,
    SimpleMovingAverage,
    Trainer,
)
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import NonFiniteError, StateError

TINY = """
class UserModel(Tower):
    @model_property
    def inference(self):
        return slim.fully_connected(slim.flatten(self.x), self.nclasses, activation_fn=None, scope='fc')

    @model_property
    def loss(self):
        self.summaries.append(tf.summary.scalar('count', tf.size(self.y)))
        return digits.classification_loss(self.inference, self.y) * self.bad()

    def bad(self):
        return 1.0
"""


class Counted(TensorFlowProgram):
    """A program that remembers what its steps fetched."""

    def __init__(self, network: str = TINY, **options: Any) -> None:
        request: dict[str, Any] = {"network": "n.py", "network_text": network, **class_arrays((8, 8, 1), 10)}
        request |= {"batch_size": 32, "learning_rate": 0.01, "optimizer": "momentum", "seed": 3}
        chosen = ProgramRequest(**{**request, **options})
        super().__init__(
            build_job_graph(chosen), batch_parts=chosen.gradient_accumulation_steps, config=session_config(chosen)
        )
        self.fetched: list[tuple[str, ...]] = []

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        self.fetched.append(tuple(names))
        return super().step(batch, names)


class Every(Callback):
    """Fetches values with every step."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.seen: list[tuple[float, ...]] = []

    def declares(self) -> Sequence[str]:
        return self.names

    def before_run(self) -> Sequence[str]:
        return self.names

    def after_run(self, values: Mapping[str, Any]) -> None:
        self.seen.append(tuple(float(values[name]) for name in self.names))


class Points(Monitor):
    """Remembers scalars."""

    def __init__(self) -> None:
        self.scalars: dict[str, list[tuple[int, float]]] = {}

    def process_scalar(self, scalar: Scalar) -> None:
        self.scalars.setdefault(scalar.tag, []).append((scalar.step, scalar.value))


def trained(program: Counted, *callbacks: Callback, epochs: int = 1, steps: int = 8) -> dict[str, Any]:
    points = Points()
    trainer = Trainer(program, batches(4, 32), callbacks=callbacks, monitors=[points], steps_per_epoch=steps)
    trainer.train(epochs)
    return points.scalars


def test_kept_values_are_those_of_fetched_steps() -> None:
    names, every = ("cost", "error", "count"), Every("cost", "error", "count")
    expected = Counted()
    trained(expected, every, steps=1200)
    costs = [seen[0] for seen in every.seen]
    program = Counted()
    points = trained(
        program,
        LogScalars(names, every_k_steps=700, mean=True),
        PeriodicCallback(LogScalars(["error"], mean=True), every_k_steps=5),
        MovingAverageSummary(["cost"], decay=0.5),
        SimpleMovingAverage(["cost"], 600),
        steps=1200,
    )
    assert set(program.fetched) == {()}
    assert points["count"] == [(700, 32.0), (1200, 32.0)]
    assert points["cost"][:2] == [
        (700, pytest.approx(np.mean(costs[:700]), rel=1e-12)),
        (1200, pytest.approx(np.mean(costs[700:]), rel=1e-12)),
    ]
    weights = 0.5 ** np.arange(1200)[::-1]
    assert points["cost"][2] == (1200, pytest.approx(np.average(costs, weights=weights), rel=1e-12))
    fifths = [seen[1] for seen in every.seen][4::5]
    assert points["error"][-1] == (1200, pytest.approx(np.mean(fifths), rel=1e-12))
    assert [step for step, _ in points["cost/SMA"]] == [600, 1200]
    state, other = program.state(), expected.state()
    assert list(state) == list(other)
    for name, array in state.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def test_value_that_is_no_number_is_fetched(tmp_path: Path) -> None:
    program = Counted()
    trained(program, BlackBox(["cost", "incorrect_vector"], tmp_path), steps=2)
    assert program.fetched == [("incorrect_vector",)] * 2


@pytest.mark.parametrize("gradient_accumulation_steps", [1, 2])
def test_first_bad_step_ends_the_training(gradient_accumulation_steps: int, tmp_path: Path) -> None:
    bad = "return tf.where(tf.train.get_global_step() >= 3, np.float32('nan'), 1.0)"
    program = Counted(TINY.replace("return 1.0", bad), gradient_accumulation_steps=gradient_accumulation_steps)
    after = Every()
    with pytest.raises(NonFiniteError) as caught:
        trained(program, after, BlackBox(["cost"], tmp_path, last_n=2), LogScalars(["cost"], mean=True))
    assert caught.value.details["step"] == 4
    assert caught.value.details["tag"] == "cost"
    assert caught.value.details["non_finite"] == "NaN"
    assert caught.value.__notes__ == ["Raised by after_run of callback BlackBox, epoch 1, step 4."]
    assert program.state()["global_step"] == 4
    assert len(after.seen) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "black_box.json",
        "step-00000003.npz",
        "step-00000004.npz",
    ]
    costs = [np.load(tmp_path / f"step-0000000{step}.npz")["value/cost"] for step in (3, 4)]
    assert np.isfinite(costs[0])
    assert np.isnan(costs[1])
    np.testing.assert_array_equal(np.load(tmp_path / "step-00000004.npz")["batch/0"], batches(4, 32)[3][0])


def test_unwatched_bad_step_goes_on() -> None:
    program = Counted(TINY.replace("return 1.0", "return np.float32('nan')"))
    points = trained(program, LogScalars(["cost"], mean=True))
    assert np.isnan(points["cost"][0][1])
    assert program.state()["global_step"] == 8


def test_callback_adds_to_the_graph() -> None:
    class Adds(Callback):
        def setup_graph(self) -> None:
            program: Any = self.trainer.program
            with program.extend_graph() as values:
                seen = tf.get_variable("mine/seen", (), tf.int64, tf.zeros_initializer(), trainable=False)
                with tf.control_dependencies([values["cost"]]):
                    values["seen"] = seen.assign_add(1)
                values["double"] = 2 * values["cost"]

    every, program = Every("seen", "double", "cost"), Counted()
    trained(program, Adds(), every, steps=3)
    assert [seen[0] for seen in every.seen] == [1, 2, 3]
    assert [seen[1] for seen in every.seen] == pytest.approx([2 * seen[2] for seen in every.seen])
    assert program.state()["mine/seen"] == 3
    with pytest.raises(StateError, match="`extend_graph` was called when the session was open"), program.extend_graph():
        pass


def test_second_trainer_of_a_program_fetches_new_values() -> None:
    program = Counted(SMALL)
    trained(program, LogScalars(["cost"], mean=True))
    program.fetched.clear()
    points = trained(program, LogScalars(["cost", "error"], mean=True))
    assert set(program.fetched) == {("error",)}
    assert {tag: len(values) for tag, values in points.items()} == {"cost": 1, "error": 1}


def test_threads_of_a_small_step_do_not_show() -> None:
    states = []
    for options in ({}, {"inter_threads": 2}):  # left alone, small steps move to the thread that trains
        program = Counted(SMALL, options=options)
        trained(program, LogScalars(["cost"], mean=True), steps=60)
        states.append(program.state())
        program.close()
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name], err_msg=name)
