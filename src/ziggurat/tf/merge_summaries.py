"""Callbacks that put the summaries of a graph: all of a collection, and moving averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.callback import Callback as EngineCallback
from ziggurat.engine.callbacks.summaries import MovingAverageSummary as EngineMovingAverageSummary
from ziggurat.errors import ConfigurationError, UsageError
from ziggurat.tf.randomness import ancestors
from ziggurat.tf.summary import moving_summaries_with, scalars_and_rest
from ziggurat.tf.tower import MOVING_SUMMARIES

__all__ = ["MergeAllSummaries", "MovingAverageSummary"]

_INPUTS: Final = ("Placeholder", "QueueDequeue", "Unstage", "IteratorGetNext")


class MovingAverageSummary(EngineMovingAverageSummary):
    """Keeps the moving averages of what ``add_moving_summary`` was given, and puts them after each epoch.

    Args:
        collection: the one that ``add_moving_summary`` was told.
        names: other single numbers of a step, by their names, in place of these.
        decay: of the averages of ``names``, in [0, 1).
    """

    def __init__(
        self, collection: str = MOVING_SUMMARIES, names: Sequence[str] | None = None, decay: float = 0.95
    ) -> None:
        super().__init__(names, decay)
        self._collection = collection

    def setup_graph(self) -> None:
        """Let a step give the values under the names of their curves."""
        with _program(self).extend_graph() as values:
            values.update({each.tag: each.tensor for each in self._entries()})
        super().setup_graph()

    def _entries(self) -> list[Any]:
        return _program(self).graph.get_collection(self._collection)

    def _found_decays(self) -> dict[str, float]:
        if self._given_names is not None:
            return super()._found_decays()
        return {each.tag: each.decay for each in self._entries()}


class MergeAllSummaries(EngineCallback):
    """Puts all summaries of a collection of the graph: with the last step of each epoch, and every ``period`` steps.

    The step itself evaluates them, with its own batch. Single numbers become scalars of all monitors, under their names
    without the tower's and without ``-summary``; images, histograms and the like go to TensorBoard.

    Args:
        period: also every so many steps, counted by ``global_step``; 0 for not.
        run_alone: evaluate them by themselves, after the step. Only for summaries that need no batch.
        key: the collection; ``SUMMARIES`` where it is None.
    """

    def __init__(self, period: int = 0, run_alone: bool = False, key: str | None = None) -> None:
        if period < 0:
            raise ConfigurationError("`period` must be 0 or more.", received=period, advice="0 is for epochs only.")
        self._period = period
        self._is_alone = run_alone
        self._key = key or tf.GraphKeys.SUMMARIES
        self._names: tuple[str, ...] = ()
        self._averages: MovingAverageSummary | None = None
        self._is_set_up = False
        self._is_due = False

    def setup_graph(self) -> None:
        """Merge the summaries into one tensor.

        Raises:
            UsageError: where they are to be evaluated by themselves, and need a batch.
        """
        graph = _program(self).graph
        summaries = graph.get_collection(self._key)
        if summaries:
            with graph.as_default(), graph.name_scope(None):
                merged = tf.summary.merge(summaries, collections=[], name="ziggurat/merged_summaries")
            if self._is_alone:
                _check_alone(merged, self._key)
            self._names = (merged.op.name,)
        if graph.get_collection(moving_summaries_with(self._key)):
            self._averages = MovingAverageSummary(moving_summaries_with(self._key))
            self._averages.trainer = self.trainer
            self._averages.hooks()
            self._averages.setup_graph()
        self._is_set_up = True

    def before_train(self) -> None:
        """Begin the moving averages that a resume has not brought."""
        if self._averages is not None:
            self._averages.before_train()

    def hooks(self) -> frozenset[str]:
        """Cost nothing where there is nothing to put."""
        found = super().hooks()
        if self._is_set_up and not self._names and self._averages is None:
            return frozenset()
        return found

    def declares(self) -> Sequence[str]:
        """Return the merged summaries, and the numbers of moving averages."""
        own = () if self._is_alone else self._names
        return own if self._averages is None else (*own, *self._averages.declares())

    def before_run(self) -> Sequence[str]:
        """Ask for the summaries where the step to come is one that is logged."""
        trainer = self.trainer
        is_last = trainer.local_step + 1 == trainer.steps_per_epoch
        self._is_due = is_last or bool(self._period and (trainer.global_step + 1) % self._period == 0)
        own = self._names if self._is_due and not self._is_alone else ()
        return own if self._averages is None else (*own, *self._averages.before_run())

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Put the summaries of a step that is logged."""
        if self._averages is not None:
            self._averages.after_run(values)
        if not self._is_due or self._is_alone:
            return
        self._put([values[name] for name in self._names])

    def trigger_step(self) -> None:
        """Evaluate the summaries by themselves, where they are to be and it is time."""
        if self._is_alone and self._is_due:
            self.trigger()

    def trigger_epoch(self) -> None:
        """Do nothing: the last step was logged."""

    def trigger(self) -> None:
        """Evaluate the summaries by themselves and put them.

        Raises:
            UsageError: where they are not to be evaluated by themselves.
        """
        if not self._is_alone and self._names:
            raise UsageError(
                "A wrapper triggers `MergeAllSummaries`, and summaries are evaluated with a step, which "
                "knows it before.",
                advice="Use `MergeAllSummaries(period=...)`, or `run_alone=True` for summaries that need no batch.",
            )
        program = _program(self)
        self._put(program.session.run([program.tensor(name) for name in self._names]))

    def state(self) -> Any:
        """Return the moving averages."""
        return None if self._averages is None else self._averages.state()

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        if self._averages is not None:
            self._averages.load_state(state)

    def _put(self, summaries: Sequence[bytes]) -> None:
        for serialized in summaries:
            self.trainer.monitors.put_summary(scalars_and_rest(serialized))
        if self._averages is not None:
            self._averages.trigger()


def _program(callback: EngineCallback) -> Any:
    return callback.trainer.program


def _check_alone(merged: Any, key: str) -> None:
    needed = sorted(each.name for each in ancestors([merged]) if each.type.startswith(_INPUTS))
    if needed:
        raise UsageError(
            "`run_alone` is for summaries that need no batch: another batch would be taken from the training.",
            received=f"summaries of `{key}` that need {', '.join(needed[:3])}",
            advice="Leave out `run_alone`: the last step of each epoch evaluates them with its own batch.",
        )
