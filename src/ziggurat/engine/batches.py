"""Endless supply of batches for the loop: repeated passes over a data source, with a position to resume from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ziggurat.dataflow.adapting import method_of
from ziggurat.errors import DataError, UsageError

__all__ = ["BatchCycle", "steps_in_pass"]


class BatchCycle:
    """Repeats a source of batches without end.

    A source that has ``state()`` and ``load_state()`` (every ``DataFlow``) is resumed by them. Any other iterable is
    resumed by passing over what was taken, which is exact where its passes are all alike.

    Args:
        source: an iterable of batches that can be iterated again.
    """

    def __init__(self, source: Iterable[Any]) -> None:
        self.source = source
        self._passes: Iterator[Any] | None = None
        self._taken = 0
        self._skip = 0
        self._since_load = 0
        self._pass_start: tuple[Any, int, int, int] = (None, 0, 0, 0)
        self._may_be_empty = False

    def __iter__(self) -> Iterator[Any]:
        """Return the one endless iterator; it goes on where the last one stood."""
        if self._passes is None:
            self._passes = self._repeat()
        return self._passes

    def state(self) -> Any:
        """Return the position after the batch that was taken last, as JSON values."""
        state = {"taken": self._taken + self._skip, "source": self._source_state()}
        return {**state, "skip": self._skip} if self._skip and self._has_state() else state

    def load_state(self, state: Any) -> None:
        """Go on where ``state()`` was called.

        Raises:
            DataError: where the source is of another shape.
        """
        self.close()
        self._may_be_empty = True  # it may have stood behind the last batch of a pass
        self._since_load = 0
        self._skip = state.get("skip", 0) if self._has_state() else state["taken"]
        self._taken = state["taken"] - self._skip
        if self._has_state():
            method_of(self.source, "load_state")(state["source"])

    def go_back_to(self, taken: int) -> None:
        """Go on after ``taken`` batches since the last ``load_state()``, though the source was left in mid-batch.

        What the source holds of its next batch is lost, so its pass is begun again, and the batches that were taken of
        it are passed over.
        """
        source, taken_then, skip_then, since_load = self._pass_start
        skip = skip_then + taken - since_load
        self.load_state({"taken": taken_then + skip, "source": source, "skip": skip})

    def close(self) -> None:
        """End the pass that is under way and free the source."""
        passes, self._passes = self._passes, None
        if passes is not None:
            passes.close()  # pyright: ignore[reportAttributeAccessIssue]
        close = method_of(self.source, "close")
        if close is not None:
            close()

    def _repeat(self) -> Iterator[Any]:
        while True:
            before = self._taken
            items = iter(self.source)
            # In one assignment: a signal may come at any moment and ask for it.
            self._pass_start = (self._source_state(), self._taken, self._skip, self._since_load)
            for batch in items:
                self._taken += 1
                if self._skip:
                    self._skip -= 1
                    continue
                self._since_load += 1
                yield batch
            if self._taken == before and not self._may_be_empty:
                raise DataError(
                    "A source of batches gives at least one batch in every pass.",
                    received=f"none in the pass after {before} batches",
                    advice="Give a source that can be iterated again (a DataFlow or a list, not a generator object), "
                    "and check that a batch is not larger than the data.",
                )
            self._may_be_empty = False
            if not self._has_state():
                self._taken = 0

    def _has_state(self) -> bool:
        return all(method_of(self.source, name) for name in ("state", "load_state"))

    def _source_state(self) -> Any:
        return method_of(self.source, "state")() if self._has_state() else None


def steps_in_pass(batches: Iterable[Any], given: int | None) -> int:
    """Return the steps of an epoch: as given, or as many as one pass over the batches has.

    Raises:
        UsageError: where it is not given and the batches have no length, or is below 1.
    """
    if given is None:
        try:
            given = len(batches)  # pyright: ignore[reportArgumentType]
        except TypeError as error:
            raise UsageError(
                "`steps_per_epoch` must be given where the batches have no length.",
                received=type(batches).__name__,
                advice="Set `steps_per_epoch`.",
            ) from error
    if given < 1:
        raise UsageError(
            "`steps_per_epoch` must be at least 1.",
            received=given,
            advice="A batch may be larger than the data: make `batch_size` smaller.",
        )
    return given
