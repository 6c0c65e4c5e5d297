"""Callbacks of trainings of modules: a watch for losses that are not finite, and agreement among processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.numerics import non_finite_error
from ziggurat.engine.step_values import StepSeries

if TYPE_CHECKING:
    from ziggurat.torch.trainer import Trainer

__all__ = ["FiniteLoss"]


class FiniteLoss(Callback):
    """Ends the training where the loss of a step is NaN or infinite. ``BlackBox`` also keeps the last batches.

    Raises:
        NonFiniteError: from the training; names the step, the value and the last good checkpoint.
    """

    def __init__(self) -> None:
        self._series: StepSeries | None = None

    def setup_graph(self) -> None:
        """Let the program watch the loss."""
        self._series = self.trainer.step_values.series(("cost",), last=1, callback=self)
        self.trainer.step_values.watch(self, ("cost",), self._found)

    def hooks(self) -> frozenset[str]:
        """Return none between the set-up and the end: the program watches."""
        return frozenset({"setup_graph"})

    def declares(self) -> Sequence[str]:
        """Return the loss."""
        return ("cost",)

    def _found(self, name: str) -> None:
        column = [] if self._series is None else self._series.take()[name]
        value = column[-1] if column else float("nan")
        error = non_finite_error(self.trainer, name, value, {"value": str(value)})
        raise error


class Together(Callback):
    """Keeps several processes alike: rates that the callbacks of the first one set, and the end of the training.

    It stands behind all other callbacks, in every process.
    """

    chief_only: ClassVar[bool] = False
    trainer: Trainer  # pyright: ignore[reportIncompatibleVariableOverride]

    def before_train(self) -> None:
        """Begin with the rates of the first process."""
        self.trigger()

    def trigger_step(self) -> None:
        """Take the next step with the same rates, or none."""
        self.trigger()

    def trigger_epoch(self) -> None:
        """Begin the next epoch with the same rates, or none."""
        self.trigger()

    def trigger(self) -> None:
        """Tell the others, and hear of them."""
        trainer, program = self.trainer, self.trainer.program
        own = program.group_numbers()
        rates = own if program.processes.is_first else [0.0] * len(own)
        stops, ends, *numbers = program.processes.sums([*trainer.asked(), *rates])
        if not program.processes.is_first:
            program.set_group_numbers(numbers)
        trainer.end_together(stop=stops > 0, finish=ends > 0)

    def state(self) -> Any:
        """Return nothing: the rates are the program's."""
        return None
