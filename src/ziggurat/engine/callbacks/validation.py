"""Validation during training: one pass over another dataflow, each sample exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ziggurat.dataflow.adapting import method_of
from ziggurat.engine.callbacks.inferencers import Inferencer
from ziggurat.engine.callbacks.recurring import Recurring
from ziggurat.errors import DataError

__all__ = ["InferenceRunner"]


class InferenceRunner(Recurring):
    """Runs the network in validation mode over a data flow and puts what the inferencers make of it.

    It runs until the flow ends, so a smaller last batch counts too: batch with ``BatchData(..., remainder=True)``. What
    stands after it in the list, and every saver wherever it stands, sees the new numbers.

    Args:
        input: batches that can be iterated again.
        infs: an inferencer, or several.
        every_k_epochs: after every k-th epoch; None for not.
        every_k_steps: after every k-th step; None for not.
        before_train: also before the first step of the job.

    Raises:
        DataError: from the training, where the flow has no batch.
    """

    def __init__(
        self,
        input: Iterable[Any],  # noqa: A002 - Tensorpack's name
        infs: Inferencer | Sequence[Inferencer],
        *,
        every_k_epochs: float | None = 1,
        every_k_steps: int | None = None,
        before_train: bool = False,
    ) -> None:
        super().__init__(every_k_steps=every_k_steps, every_k_epochs=every_k_epochs)
        self._flow = input
        self._inferencers = [infs] if isinstance(infs, Inferencer) else list(infs)
        self._at_start = before_train

    def declares(self) -> Sequence[str]:
        """Return the names of all inferencers."""
        return tuple(dict.fromkeys(name for inferencer in self._inferencers for name in inferencer.names()))

    def before_train(self) -> None:
        """Run at the start of the job where that was asked for."""
        if self._at_start and self.global_step == 0:
            self.trigger()

    def trigger(self) -> None:
        """Run over all batches and put the results."""
        names, evaluate = self.declares(), self.trainer.program.evaluate
        for inferencer in self._inferencers:
            inferencer.before_inference()
        batches = 0
        for batch in self._flow:
            values = evaluate(batch, names)
            for inferencer in self._inferencers:
                inferencer.on_values(values, batch)
            batches += 1
            self.trainer.note_progress()
        if not batches:
            raise DataError(
                "A validation set has at least one batch.",
                received="none",
                advice="Keep the remainder (`BatchData(..., remainder=True)`), and give a source that can be iterated "
                "again, not a generator object.",
            )
        for inferencer in self._inferencers:
            for tag, value in inferencer.after_inference().items():
                self.trainer.put(tag, value)

    def state(self) -> Any:
        """Return the position of the flow: a shuffled or augmented one is another in each pass."""
        state = method_of(self._flow, "state")
        return None if state is None else state()

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        method_of(self._flow, "load_state")(state)

    def after_train(self) -> None:
        """Free the flow's workers."""
        close = method_of(self._flow, "close")
        if close is not None:
            close()
