"""Conformance suite for backends: a program that passes can be trained, stopped and resumed exactly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.engine.callback import Callback
from ziggurat.engine.capabilities import (
    HasEvaluationNames,
    HasGraph,
    HasMovingSummaries,
    HasSummaries,
    SupportsSummaries,
)
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.feed import BatchCycle
from ziggurat.engine.program import Program, SupportsRecording
from ziggurat.engine.trainer import Trainer
from ziggurat.errors import CheckpointError, DataError, UnknownNameError, ZigguratError

__all__ = ["BackendConformance"]


class BackendConformance(ABC):
    """Subclass it in a test file (as ``class TestMyBackend(BackendConformance)``) and give it the two methods.

    Every test makes its own programs. Comparisons are bit for bit unless ``tolerance`` is set.
    """

    tolerance: float = 0.0
    """Largest absolute difference between two runs that should be equal; 0 on a CPU."""

    @abstractmethod
    def program(self) -> Program:
        """Return a new program; every call gives the same first weights. Use dropout where the backend has it."""

    @abstractmethod
    def batches(self) -> list[Any]:
        """Return at least four batches that the program takes; every call gives the same ones."""

    cost_name: str = "cost"
    """Name of a declared value that falls while it trains."""

    rows_name: str | None = None
    """Name of a value with one row a sample, where the program has one."""

    def test_it_is_a_program(self) -> None:
        """The verbs of the contract are there."""
        program = self.program()
        assert isinstance(program, Program)
        assert self.cost_name in program.names()
        program.close()

    def test_declaring_an_unknown_name_lists_the_known(self) -> None:
        """A name that the program does not have is an error that helps."""
        program = self.program()
        error = _error_of(UnknownNameError, lambda: program.declare(["no such value"]))
        assert self.cost_name in str(error)
        program.close()

    def test_a_step_returns_what_was_asked_for_and_no_more(self) -> None:
        """Only requested numbers are fetched."""
        program, batches = self._ready()
        assert dict(program.step(batches[0], ())) == {}
        values = program.step(batches[1], (self.cost_name,))
        assert list(values) == [self.cost_name]
        assert np.isfinite(float(values[self.cost_name]))
        program.close()

    def test_a_feed_stands_behind_the_consumed_batch(self) -> None:
        """The position of a feed knows nothing of batches that were made ahead, and another feed goes on from it."""
        program, batches = self._ready()
        feed = program.connect(BatchCycle(batches))
        for number in range(len(batches) + 2):
            resumed = BatchCycle(batches)
            resumed.load_state(feed.position())
            other = program.connect(resumed)
            for taken in (feed.next(), other.next()):
                self._assert_same_batch(taken, batches[number % len(batches)])
            other.close()
        assert feed.stats().ready <= feed.stats().capacity
        feed.close()
        feed.close()
        program.close()

    def test_an_error_of_the_data_comes_from_the_feed(self) -> None:
        """The step that has no batch raises the error of the data, behind the steps before it."""
        program, batches = self._ready()
        feed = program.connect(BatchCycle(_Failing(batches[:2])))
        for batch in batches[:2]:
            self._assert_same_batch(feed.next(), batch)
        assert "the data broke" in str(_error_of(DataError, lambda: feed.next()))
        feed.close()
        program.close()

    def test_recorded_values_are_those_of_the_steps(self) -> None:
        """What a program keeps is what a step would have fetched, and nobody sees it in the weights."""
        program, other, batches = self.program(), self._ready()[0], self.batches()
        if isinstance(program, SupportsRecording):
            assert list(program.record([self.cost_name], [self.cost_name])) == [self.cost_name]
            program.declare([self.cost_name])
            for batch in batches[:2], batches[2:]:
                fetched = [float(other.step(each, (self.cost_name,))[self.cost_name]) for each in batch]
                for each in batch:
                    assert dict(program.step(each, ())) == {}
                assert program.recorded()[self.cost_name].tolist() == fetched
            assert not len(program.recorded()[self.cost_name])
            self._assert_equal(other.state(), program.state())
        program.close()
        other.close()

    def test_training_lowers_the_cost(self) -> None:
        """It learns at all."""
        program, batches = self._ready()
        first = float(program.evaluate(batches[0], (self.cost_name,))[self.cost_name])
        for _ in range(20):
            program.step(batches[0], ())
        last = float(program.evaluate(batches[0], (self.cost_name,))[self.cost_name])
        assert last < first
        program.close()

    def test_evaluation_changes_nothing(self) -> None:
        """Validation can be left out without any effect on training."""
        program, batches = self._ready()
        program.step(batches[0], ())
        before = program.state()
        first = program.evaluate(batches[1], (self.cost_name,))
        second = program.evaluate(batches[1], (self.cost_name,))
        self._assert_equal(before, program.state())
        assert float(first[self.cost_name]) == float(second[self.cost_name])
        program.close()

    def test_rows_match_the_samples(self) -> None:
        """A value with one row a sample has as many rows as the batch, also in a smaller last batch."""
        if self.rows_name is None:
            return
        program, batches = self._ready(self.rows_name)
        for batch in (batches[0], [part[:3] for part in batches[0]]):
            assert len(program.evaluate(batch, (self.rows_name,))[self.rows_name]) == len(batch[0])
        program.close()

    def test_probabilities_are_one_row_a_sample(self) -> None:
        """A classifier's ``probabilities`` are one row a sample, which sums to 1: sample predictions show them."""
        program = self.program()
        offered = program.evaluation_names() if isinstance(program, HasEvaluationNames) else program.names()
        program.close()
        if "probabilities" not in offered or "probabilities" not in program.names():
            return
        program, batches = self._ready("probabilities")
        for batch in (batches[0], [part[:3] for part in batches[0]]):
            rows = np.asarray(program.evaluate(batch, ("probabilities",))["probabilities"])
            assert rows.ndim == 2
            assert len(rows) == len(batch[0])
            np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-3)
        program.close()

    def test_looking_at_few_samples_leaves_the_run_as_it_is(self) -> None:
        """Evaluating a small batch between steps, as sample predictions do, changes no later step."""
        states = []
        for looks in (False, True):
            program, batches = self._ready()
            for batch in batches[:4]:
                program.step(batch, ())
                if looks:
                    program.evaluate([part[:3] for part in batches[1]], (self.cost_name,))
            states.append(program.state())
            program.close()
        self._assert_equal(*states)

    def test_state_is_a_copy(self) -> None:
        """Later steps do not change a state that was taken."""
        program, batches = self._ready()
        taken = program.state()
        kept = {name: array.copy() for name, array in taken.items()}
        program.step(batches[0], ())
        self._assert_equal(taken, kept)
        program.close()

    def test_a_loaded_state_goes_on_exactly(self) -> None:
        """Interrupted anywhere and resumed equals uninterrupted."""
        whole, batches = self._ready()
        states = [whole.state()]
        for batch in batches:
            whole.step(batch, ())
            states.append(whole.state())
        for done in range(len(batches)):
            resumed, _ = self._ready()
            resumed.load_state(states[done])
            for batch in batches[done:]:
                resumed.step(batch, ())
            self._assert_equal(states[-1], resumed.state())
            resumed.close()
        whole.close()

    def test_a_state_of_another_network_is_refused_whole(self) -> None:
        """A wrong checkpoint is an error, and the program is as it was."""
        program, _ = self._ready()
        before = program.state()
        name = max(before, key=lambda each: before[each].size)
        for wrong in (
            {key: array for key, array in before.items() if key != name},
            {**before, name: np.zeros((*before[name].shape, 2), before[name].dtype)},
        ):
            error = _error_of(CheckpointError, partial(program.load_state, wrong))
            assert name in str(error)
            self._assert_equal(before, program.state())
        program.close()

    def test_hyperparameters_act_and_are_part_of_the_state(self) -> None:
        """A learning rate of 0 stops the learning; the rate survives a resume; an unknown name is an error."""
        program, batches = self._ready()
        program.set_hyperparameter("learning_rate", 0.015625)
        resumed, _ = self._ready()
        resumed.load_state(program.state())
        assert resumed.hyperparameters()["learning_rate"] == 0.015625
        error = _error_of(UnknownNameError, lambda: program.set_hyperparameter("learning_rat", 1.0))
        assert "learning_rate" in str(error)
        program.step(batches[0], ())
        program.close()
        resumed.close()

    def test_the_same_seed_gives_the_same_run(self) -> None:
        """Two programs made alike train alike."""
        states = []
        for _ in range(2):
            program, batches = self._ready()
            for batch in batches:
                program.step(batch, ())
            states.append(program.state())
            program.close()
        self._assert_equal(*states)

    def test_a_training_through_checkpoints_goes_on_exactly(self, tmp_path: Path) -> None:
        """The trainer, the checkpoint files and the program together: stopped after any step, resumed, equal."""
        batches = self.batches()[:4]
        whole = self._trainer(_Costs(self.cost_name))
        whole.train(2)
        expected = whole.program.state()
        for stop in range(1, 2 * len(batches)):
            store = CheckpointStore(tmp_path / str(stop))
            first = self._trainer(_Costs(self.cost_name), _StopAfter(stop, store))
            first.train(2)
            second = self._trainer(costs := _Costs(self.cost_name))
            loaded = store.latest()
            assert loaded is not None
            second.load_state(loaded[1])
            second.train(2)
            self._assert_equal(expected, second.program.state())
            assert len(costs.seen) == 2 * len(batches)
            first.program.close()
            second.program.close()
        whole.program.close()

    def test_names_of_capabilities_are_values_it_has(self) -> None:
        """What a program names by a capability can be fetched where the capability says so."""
        program, batches = self.program(), self.batches()
        offered = [*program.names()]
        for kind, verb in ((HasSummaries, "summary_names"), (HasMovingSummaries, "moving_summary_names")):
            if isinstance(program, kind):
                named = [*_answer(program, verb)]
                assert set(named) <= {*offered}, f"`{verb}()` is a part of `names()`"
        names = [*program.evaluation_names()] if isinstance(program, HasEvaluationNames) else offered
        program.declare(names)
        assert set(program.evaluate(batches[0], names)) == {*names}
        program.close()

    def test_capabilities_change_no_state(self) -> None:
        """Graph and summaries are bytes, and making them trains nothing."""
        program, batches = self._ready()
        before = program.state()
        if isinstance(program, HasGraph):
            assert isinstance(program.graph_bytes(), bytes)
        if isinstance(program, SupportsSummaries):
            assert isinstance(program.summarise(batches[0]), bytes)
        self._assert_equal(before, program.state())
        program.close()

    def test_closing_twice_is_fine(self) -> None:
        """The second close does nothing."""
        program, _ = self._ready()
        program.close()
        program.close()

    def _assert_same_batch(self, one: Any, other: Any) -> None:
        for part, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, expected)

    def _ready(self, *more_names: str) -> tuple[Program, list[Any]]:
        program = self.program()
        program.declare([self.cost_name, *more_names])
        return program, self.batches()

    def _trainer(self, *callbacks: Callback) -> Trainer:
        return Trainer(self.program(), self.batches()[:4], callbacks=callbacks)

    def _assert_equal(self, one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> None:
        assert list(one) == list(other)
        for name, array in one.items():
            if self.tolerance:
                np.testing.assert_allclose(array, other[name], atol=self.tolerance, err_msg=name)
            else:
                np.testing.assert_array_equal(array, other[name], err_msg=name)


class _Failing:
    """Data that breaks behind its last batch."""

    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        yield from self.batches
        raise DataError("the data broke")


def _answer(program: Program, verb: str) -> Iterable[str]:
    return methodcaller(verb)(program)


def _error_of(kind: type[ZigguratError], action: Callable[[], object]) -> ZigguratError:
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


class _Costs(Callback):
    """Remembers the cost of every step, also over a resume."""

    def __init__(self, cost_name: str) -> None:
        self.cost_name = cost_name
        self.seen: list[float] = []

    def declares(self) -> Sequence[str]:
        return (self.cost_name,)

    def before_run(self) -> Sequence[str]:
        return (self.cost_name,)

    def after_run(self, values: Mapping[str, Any]) -> None:
        self.seen.append(float(values[self.cost_name]))

    def state(self) -> Any:
        return self.seen

    def load_state(self, state: Any) -> None:
        self.seen = list(state)


class _StopAfter(Callback):
    """Saves and stops after a number of steps."""

    def __init__(self, steps: int, store: CheckpointStore) -> None:
        self.steps = steps
        self.store = store

    def trigger_step(self) -> None:
        if self.global_step == self.steps:
            self.trainer.request_stop("the test asked for it")

    def before_stop(self) -> None:
        self.store.save(self.trainer.state())
