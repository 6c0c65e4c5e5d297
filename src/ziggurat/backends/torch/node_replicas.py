"""Programs of a training over several nodes: the other ranks as rank 0 sees them, and how they follow it.

Each process makes the batches by itself and computes its rows of them, as the replicas of one machine do. Rank 0 says
which batch is next, with which hyperparameters, and compares the labels: on other samples the sum of the gradients
would be silently wrong.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import torch

from ziggurat.backends.torch.data_parallel import ReplicaProgram, Share
from ziggurat.backends.torch.device_group import DeviceGroup, LostProcessError
from ziggurat.backends.torch.feeds import make_feed
from ziggurat.backends.torch.node_line import Arrays, NodeLine
from ziggurat.backends.torch.replicas import Watch
from ziggurat.backends.torch.shards import row_ranges
from ziggurat.engine.feed import BatchCycle, Feed
from ziggurat.errors import DataError, TrainingError, ZigguratError

__all__ = ["NodeReplicas", "follow_rank_0"]

_VERDICT_S: Final = 90.0
"""How long rank 0 waits to be ended when another process is lost: its node is given up after the lease, and then the
job goes on elsewhere, which the end of this process as a failure would prevent."""

_AGAIN_S: Final = 0.1


class NodeReplicas:
    """The processes of ranks above 0, on whatever nodes.

    Args:
        line: to them.
        size: number of processes, rank 0 included.
        verdict_s: how long to wait for the end of this process when one of them is lost.
    """

    def __init__(self, line: NodeLine, size: int, verdict_s: float = _VERDICT_S) -> None:
        self._line = line
        self._size = size
        self._verdict_s = verdict_s
        self._is_there = False
        self._watch: Watch | None = None
        self._position: Any = None

    @property
    def pids(self) -> Sequence[int]:
        """None: others have started them."""
        return []

    def meet(self, group: DeviceGroup) -> None:
        """Wait until all processes are there.

        Raises:
            LostProcessError: if one does not come.
        """
        group.meet(self._line.meet())
        self._is_there = True
        self._line.tell({"kind": "threads", "threads": torch.get_num_threads()})

    def connect(self, position: Any) -> None:
        """Let the next step have the first batch behind a position of the data."""
        self._position = position

    def tell_state(self, state: Arrays) -> None:
        """Give all processes the state of the program.

        Raises:
            LostProcessError: if one has ended.
        """
        self._line.tell({"kind": "state"}, state)

    def hand_out(self, batch: Sequence[Any], _ranges: Sequence[Sequence[tuple[int, int]]], share: Share) -> None:
        """Let all processes take a step on their rows of the next batch, which they have themselves.

        Raises:
            LostProcessError: if one has ended.
        """
        if self._position is not None:
            self._line.tell({"kind": "data", "position": self._position})
            self._position = None
        self._line.tell({"kind": "step", "share": asdict(share), "labels": _checksum(batch)})

    def collect(self) -> list[Mapping[str, list[Any]]]:
        """Return the arrays of the step of each process.

        Raises:
            LostProcessError: if one has ended.
        """
        return [_rows(*self._line.answer_of(rank)) for rank in range(1, self._size)]

    def watch(self, break_off: Callable[[], None], patience_s: float) -> None:
        """Call a function if a step takes too long: NCCL waits for a lost process without an end."""
        self._watch = Watch([], break_off, patience_s)

    def step_begins(self) -> None:
        """Let the time of a step begin."""
        if self._watch is not None:
            self._watch.step_begins()

    def step_ends(self) -> None:
        """Let the time of a step end.

        Raises:
            LostProcessError: if it took too long.
        """
        if self._watch is not None:
            self._watch.step_ends()

    def cause(self, lost: BaseException) -> BaseException:
        """Return why a process is lost: its own word, else what this process noticed, after a time to be ended in.

        Args:
            lost: what this process noticed.
        """
        until = time.monotonic() + self._verdict_s
        while True:
            errors = self._line.errors()
            if errors:
                rank, text = min(errors.items())
                return TrainingError(f"Rank {rank} failed: {text}")
            if time.monotonic() > until:
                return TrainingError(
                    f"A process of the training cannot be reached: {lost}.",
                    advice="Look at the logs of the other ranks; then resume the job.",
                )
            time.sleep(_AGAIN_S)

    def close(self, within_s: float) -> None:
        """Tell the others that the training is over; in the middle of a step they notice it by themselves."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._is_there and within_s:
            try:
                self._line.tell({"kind": "end"})
            except LostProcessError:
                pass  # no other process is left
        self._is_there = False
        self._line.close()


def follow_rank_0(
    program: ReplicaProgram, line: NodeLine, batches: BatchCycle, accumulation: int, after_step: Callable[[], None]
) -> bool:
    """Take part in all steps; see ``ziggurat.engine.capabilities.TrainsOnNodes``.

    Args:
        program: of this process.
        line: to rank 0.
        batches: the ones that rank 0 has, too.
        accumulation: parts of a batch that are computed one after another.
        after_step: called after each step.

    Raises:
        ZigguratError: if a step fails here.
    """
    try:
        program.group.meet(line.meet())
        _Follower(program, line, batches, accumulation).follow(after_step)
        return True
    except LostProcessError:
        return False
    except BaseException as error:
        line.report(str(error) if isinstance(error, ZigguratError) else f"{type(error).__name__}: {error}")
        raise
    finally:
        program.group.close()  # so that rank 0 notices at once, whatever this process still does
        line.close()
        batches.close()


class _Follower:
    def __init__(self, program: ReplicaProgram, line: NodeLine, batches: BatchCycle, accumulation: int) -> None:
        self._program, self._line, self._batches = program, line, batches
        self._accumulation = accumulation
        self._feed: Feed | None = None

    def follow(self, after_step: Callable[[], None]) -> None:
        try:
            while True:
                message, arrays = self._line.hear()
                kind = message["kind"]
                if kind == "end":
                    return
                if kind == "step":
                    self._step(message)
                    after_step()
                elif kind == "state":
                    self._program.load_state(arrays)
                elif kind == "data":
                    self._go_to(message["position"])
                else:
                    torch.set_num_threads(message["threads"])
        finally:
            if self._feed is not None:
                self._feed.close()

    def _go_to(self, position: Any) -> None:
        if self._feed is not None:
            self._feed.close()
        self._batches.load_state(position)
        options = self._program.options
        self._feed = make_feed(self._batches, options.device, options.prefetch_batches, staged=False)

    def _step(self, message: Mapping[str, Any]) -> None:
        assert self._feed is not None
        batch = [np.asarray(each) for each in self._feed.next()[: self._program.components()]]
        share = Share(**{**message["share"], "wanted": tuple(message["share"]["wanted"])})
        if len(batch[0]) != share.total or _checksum(batch) != message["labels"]:
            raise DataError(
                "The samples of this process are not those of rank 0.",
                advice="Use a dataset that does not change, at the same place on all nodes; one that Ziggurat made is "
                "copied there.",
            )
        group = self._program.group
        own = row_ranges(share.total, self._accumulation, group.size)[group.rank]
        arrays = [_taken(each, own) for each in batch]
        rows = self._program.take_part(arrays, [end - first for first, end in own], share)
        if rows:
            counts = {name: len(parts) for name, parts in rows.items()}
            flat = {f"{name}/{place}": each for name, parts in rows.items() for place, each in enumerate(parts)}
            self._line.answer({"rows": counts}, flat)


def _rows(message: Mapping[str, Any], arrays: Arrays) -> dict[str, list[Any]]:
    return {name: [arrays[f"{name}/{place}"] for place in range(count)] for name, count in message["rows"].items()}


def _taken(array: np.ndarray, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return some rows of an array, range after range."""
    if len(ranges) == 1:
        return array[ranges[0][0] : ranges[0][1]]
    return np.concatenate([array[first:end] for first, end in ranges])


def _checksum(batch: Sequence[Any]) -> int:
    """Return a number that tells the labels of a batch: that of whole numbers, which are alike on all processors."""
    labels = np.asarray(batch[1]) if len(batch) > 1 else np.zeros(0, np.int64)
    return zlib.crc32(np.ascontiguousarray(labels).tobytes()) if labels.dtype.kind in "biu" else 0
