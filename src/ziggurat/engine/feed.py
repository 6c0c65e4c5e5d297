"""Feeds: how batches get from a data source to the steps, with the position behind the batch consumed last.

``BatchCycle`` repeats a source without end. A program connects it to its steps by a feed: ``DirectFeed`` makes each
batch when the step needs it, ``QueueFeed`` lets a thread make some batches ahead.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from ziggurat.dataflow.adapting import method_of
from ziggurat.dataflow.stages.batching import is_pooled
from ziggurat.errors import DataError, StateError, UsageError

__all__ = ["BatchCycle", "DirectFeed", "Feed", "FeedStats", "QueueFeed", "held_batch", "steps_in_pass"]

_ARRAY: Final = np.ndarray

_JOIN_S: Final = 2.0
"""How long the end of a feed waits for a batch that its thread is making."""


@dataclass(frozen=True)
class FeedStats:
    """What a feed holds now.

    Args:
        capacity: batches that it makes ahead at most; 0 for none.
        ready: batches that wait for their step.
        ready_bytes: bytes of their arrays.
    """

    capacity: int = 0
    ready: int = 0
    ready_bytes: int = 0


class Feed(Protocol):
    """The way of batches into the steps of a program: ``Program.connect`` makes it."""

    @property
    def next(self) -> Callable[[], Any]:
        """The function that makes the next batch available and returns it; it raises an error of the data as it is."""
        ...

    def position(self) -> Any:
        """Return the state of the data behind the batch that was consumed last, as JSON values.

        What was made ahead does not show in it. ``BatchCycle.load_state`` takes it.
        """
        ...

    def go_back_to(self, taken: int) -> None:
        """Stand behind the batch number ``taken`` since the connection, though a wait for the next was broken off."""
        ...

    def stats(self) -> FeedStats:
        """Return what it holds now."""
        ...

    def close(self) -> None:
        """Stop to make batches, and free the source; ``next()`` begins again behind the batch consumed last."""
        ...


class BatchCycle:
    """Repeats a source of batches without end.

    A source that has ``state()`` and ``load_state()`` (every ``DataFlow``) is resumed by them. Any other iterable is
    resumed by passing over what was taken, which is exact where its passes are all alike.

    Args:
        source: an iterable of batches that can be iterated again.
    """

    def __init__(self, source: Iterable[Any]) -> None:
        self.source = source
        self.may_run_apart = False
        """Whether a program may let another process make the batches: where that is worth it, and the source can be
        pickled."""
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


class DirectFeed:
    """Makes each batch in the thread that trains, when its step needs it.

    Args:
        batches: the batches, at the position where the feed begins.
    """

    def __init__(self, batches: BatchCycle) -> None:
        self._batches = batches

    @property
    def next(self) -> Callable[[], Any]:
        """The method of the iterator itself: a step pays for no call in between."""
        return iter(self._batches).__next__

    def position(self) -> Any:
        """Return the state of the data behind the newest batch."""
        return self._batches.state()

    def go_back_to(self, taken: int) -> None:
        """Go on after ``taken`` batches since the connection, though the source was left in mid-batch."""
        self._batches.go_back_to(taken)

    def stats(self) -> FeedStats:
        """Return zeros: nothing is made ahead."""
        return FeedStats()

    def close(self) -> None:
        """End the pass that is under way and free the source."""
        self._batches.close()


class QueueFeed:
    """Lets a thread make some batches ahead, while the steps before them run.

    With each batch, the thread notes the state of the data behind it: that is the position once the batch is consumed.
    A batch that lies in memory of others, such as the ring of a data pipeline, is copied.

    Args:
        batches: the batches, at the position where the feed begins.
        capacity: batches that are made ahead at most, at least 1.
        max_bytes: bytes that the waiting batches take at most, where more than one waits; None for any number.
    """

    def __init__(self, batches: BatchCycle, capacity: int, max_bytes: int | None = None) -> None:
        self._batches = batches
        self._capacity = capacity
        self._max_bytes = max_bytes
        self._ready_bytes = 0
        self._ready: deque[tuple[Any, Any, int]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_ended = False
        self._is_elsewhere = False
        # Number of consumed batches, the position behind the last, and that behind the one before it: in one value,
        # because a signal may come at any moment.
        self._at = (0, batches.state(), batches.state())

    def next(self) -> Any:
        """Wait for the next batch and return it; an error of the data is raised here, behind the batches before it."""
        if self._thread is None or self._is_ended:
            self._start()
        with self._changed:
            while not self._ready:
                if self._error is not None:
                    raise self._error
                if self._is_ended:
                    raise StateError("A feed that is closed gives no batches.", advice="Call `next` again.")
                self._changed.wait()
            batch, position, size = self._ready.popleft()
            self._ready_bytes -= size
            self._changed.notify_all()
        taken, before, _ = self._at
        self._at = (taken + 1, position, before)
        return batch

    def position(self) -> Any:
        """Return the state of the data behind the batch that was consumed last."""
        return self._at[1]

    def go_back_to(self, taken: int) -> None:
        """Stand behind batch ``taken``: the last one that was handed out, or the one before it."""
        handed_out, position, before = self._at
        self.close()
        self._at = (0, position if taken == handed_out else before, None)

    def stats(self) -> FeedStats:
        """Return the batches that wait, and their bytes."""
        with self._changed:
            waiting = [batch for batch, _, _ in self._ready]
        return FeedStats(self._capacity, len(waiting), sum(_bytes_of(batch) for batch in waiting))

    @property
    def ready(self) -> int:
        """The batches that wait for their step."""
        return len(self._ready)

    def refill(self) -> None:
        """Forget what was made ahead; the next batches are made again, behind the one consumed last.

        It waits for the batch that is being made, however long that takes.
        """
        self._end(None)

    def close(self) -> None:
        """Stop the thread, forget what it made ahead, and free the source.

        A thread that hangs in the data is left to itself: it must not keep a training from its end.
        """
        self._end(_JOIN_S)

    def _end(self, wait_s: float | None) -> None:
        thread = self._thread
        if thread is None:
            return
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
        thread.join(wait_s)
        if thread.is_alive():
            return
        self._thread = None
        self._forget()
        self._free()

    def _free(self) -> None:
        """Free the source, once no thread reads it."""
        self._batches.close()

    def _forget(self) -> None:
        self._ready.clear()
        self._ready_bytes = 0

    def _start(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            raise StateError(
                "A feed that was closed begins again once its thread has ended.",
                received="a thread that still waits for the data",
                advice="Find out why the data hangs, or resume in a new process.",
            )
        self._forget()
        if self._is_elsewhere:  # what was made ahead is lost: back to what was consumed
            self._batches.load_state(self._at[1])
        self._is_elsewhere, self._is_ended, self._error = True, False, None
        self._thread = threading.Thread(target=self._fill, name="batch-queue", daemon=True)
        self._thread.start()

    def _fill(self) -> None:
        """Make batches until the feed is closed."""
        try:
            for batch in self._batches:
                batch, position = self._held(batch), self._batches.state()
                size = 0 if self._max_bytes is None else _bytes_of(batch)
                with self._changed:
                    while self._is_full(size) and not self._is_ended:
                        self._changed.wait()
                    if self._is_ended:
                        return
                    self._ready.append((batch, position, size))
                    self._ready_bytes += size
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _held(self, batch: Any) -> Any:
        """Return a batch that waits, in the thread that makes it."""
        return held_batch(batch)

    def _is_full(self, size: int) -> bool:
        """Return whether a batch of so many bytes has to wait for room."""
        many = len(self._ready)
        return many >= self._capacity or (
            self._max_bytes is not None and many > 0 and self._ready_bytes + size > self._max_bytes
        )


def held_batch(part: Any) -> Any:
    """Return a batch with memory of its own: borrowed arrays are copied.

    Memory of its own an array keeps, and so it keeps that of a pool, which waits until it is let go.
    """
    if type(part) is list:  # nearly every batch: only the list must be a new one
        for each in part:
            if type(each) is not _ARRAY or (each.base is not None and not is_pooled(each)):
                break
        else:
            return part.copy()
    if isinstance(part, np.ndarray):
        return part if part.base is None or is_pooled(part) else part.copy()
    if type(part) is list:
        return [held_batch(each) for each in part]
    if type(part) is tuple:
        return tuple([held_batch(each) for each in part])
    if isinstance(part, dict):
        return {name: held_batch(each) for name, each in part.items()}
    return part


def _bytes_of(part: Any) -> int:
    if isinstance(part, dict):
        return sum(_bytes_of(each) for each in part.values())
    if isinstance(part, list | tuple):
        return sum(_bytes_of(each) for each in part)
    return int(getattr(part, "nbytes", 0))


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
