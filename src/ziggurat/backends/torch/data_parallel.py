"""Programs of a training on several devices: the first process has the loop, the others compute rows of each step.

Every process has the network, the optimizers and their slots. For a step, the first one splits the batch, each process
computes the gradients of its rows, weighted by their number, and takes the same step along their sum. What is not the
same in all of them is what a step draws at random, and the statistics of batch norms. Losses that are divided by
something else than the number of rows, as objects or weights of classes, are divided by its sum over the processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from ziggurat.backends.torch.batch_sums import summing_over_devices
from ziggurat.backends.torch.device_group import DeviceGroup, LostProcessError
from ziggurat.backends.torch.network import Network
from ziggurat.backends.torch.program import ProgramOptions, TorchProgram
from ziggurat.backends.torch.reduction import GradientSum
from ziggurat.backends.torch.shards import row_ranges
from ziggurat.backends.torch.steps import OF_THE_STEP, plain
from ziggurat.backends.torch.tower import Tower
from ziggurat.backends.torch.weighing import Weighing
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.checkpoints import AVERAGES
from ziggurat.engine.feed import BatchCycle, Feed
from ziggurat.errors import ConfigurationError, StateError

__all__ = ["FirstProgram", "OtherProcesses", "ReplicaProgram", "Share", "SharedProgram"]

_OF_A_RANK: Final = 0x632BE59BD9B4E019
"""Difference between the seeds of two processes; the first has that of a training on one device."""

_OF_HOOKS: Final = 1 << 40
"""Difference between the numbers from which a step and its ``gradientUpdate`` draw at random."""

_ENDED_WITHIN_S: Final = 3.0
"""How long replicas may take to end by themselves."""

_OF_OPTIMIZERS: Final = ("learning_rate", "momentum")

_MIXED_COMPONENTS: Final = 4
"""Parts of a batch of mixed samples: samples, labels, second labels and their shares."""


@dataclass(frozen=True)
class Share:
    """What a replica is told of a step beside its rows.

    Args:
        total: number of rows of the whole batch.
        is_everywhere: whether every process has rows of each part of the batch.
        wanted: names of values of the batch.
        hyperparameters: of this step.
    """

    total: int
    is_everywhere: bool
    wanted: tuple[str, ...]
    hyperparameters: Mapping[str, float]


class OtherProcesses(Protocol):
    """The other processes as the first one sees them. Any method but ``close`` may raise a ``LostProcessError``."""

    @property
    def pids(self) -> Sequence[int]:
        """Process numbers of those on this machine that this process has started, and that have not been ended."""
        ...

    def meet(self, group: DeviceGroup) -> None:
        """Wait until they have built their programs, and find them."""
        ...

    def connect(self, position: Any, /) -> None:
        """Let the next step have the first batch behind a position of the data."""
        ...

    def tell_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Give them the state of the program."""
        ...

    def hand_out(self, batch: Sequence[Any], ranges: Sequence[Sequence[tuple[int, int]]], share: Any, /) -> None:
        """Let them take a step on their rows of a batch; ``share`` is a ``Share``."""
        ...

    def collect(self) -> Sequence[Mapping[str, list[Any]]]:
        """Return the arrays of each process that the step was asked for."""
        ...

    def watch(self, break_off: Callable[[], None], patience_s: float) -> None:
        """Call a function if one ends, or if a step takes too long."""
        ...

    def step_begins(self) -> None:
        """Let the time of a step begin."""
        ...

    def step_ends(self) -> None:
        """Let the time of a step end."""
        ...

    def cause(self, lost: BaseException) -> BaseException:
        """Return why one is lost, given what this process noticed."""
        ...

    def close(self, within_s: float) -> None:
        """End them; 0 in the middle of a step. Closing twice does nothing."""
        ...


class SharedProgram(TorchProgram):
    """Base of the programs of all processes: gradients of some rows of a batch, added up over the processes.

    Args:
        network: the user's network.
        request: its optimizer, precision and the like.
        options: the rest.
        is_frozen: called with each parameter's name in a checkpoint; True for one that is not to be trained.
        group: the processes.
    """

    def __init__(
        self,
        network: Network,
        request: ProgramRequest,
        options: ProgramOptions,
        is_frozen: Callable[[str], bool],
        group: DeviceGroup,
    ) -> None:
        super().__init__(network, request, options, is_frozen)
        self.group = group
        self._places = {name: place for place, name in enumerate(self.numbers())}
        self._seed_of_all = self._seed_of_steps
        self._seed_of_steps += _OF_A_RANK * group.rank
        is_weighted = any(each is not None for each in self._weight_scales)
        beside = Weighing.count(len(self._weight_scales)) if is_weighted else 0
        self._sum = GradientSum(group, self._trained_parameters, len(self._places) + beside)
        self._buffers = _buffers_that_count(network.module)
        self._changes_gradients = _has_own_hook(network.module)

    def _compute(
        self, parts: Sequence[tuple[Sequence[np.ndarray], int]], shared: Share
    ) -> tuple[torch.Tensor, dict[str, list[torch.Tensor]]]:
        """Set the gradients of the whole batch; return its numbers, and the arrays of the rows of this process.

        Args:
            parts: arrays of each part of the batch, and how many rows of it are this process's.
            shared: what holds for the whole step.
        """
        total, wanted = shared.total, shared.wanted
        # Who has no rows computes no loss, and would let the others wait.
        add_up = self.group.add_up if shared.is_everywhere else None
        own = [(arrays, count) for arrays, count in parts if count]
        # The losses of one part with rows on every device have been divided by the sums over all devices.
        weighs = len(parts) > 1 or not shared.is_everywhere
        weighing = self._weighing = self._new_weighing(total) if weighs else None
        numbers: dict[int, torch.Tensor] = {}
        rows: dict[str, list[torch.Tensor]] = {name: [] for name in wanted if name not in self._places}
        for number, (arrays, count) in enumerate(own):
            share, is_last = count / total, number + 1 == len(own)
            if is_last:
                self._sum.begin()
            with summing_over_devices(add_up):
                found = self._backward(arrays, share, wanted, is_last=is_last)
            for name, value in found.items():
                if name in rows:
                    rows[name].append(value)
                else:
                    place = self._places[name]
                    mean = self._means_of_rows(name, value[None])[0] if value.ndim else value
                    part = mean.float() * share
                    numbers[place] = numbers[place] + part if place in numbers else part
        if not own and self._scaler is not None:  # it is made ready by what it scales
            self._scaler.scale(torch.zeros((), device=self.options.device))
        self._weighing = None
        if weighing is not None:
            first = len(self._places)
            numbers |= {first + place: value for place, value in enumerate(weighing.sums().unbind())}
        sums = self._sum.finish(numbers)
        if weighing is not None:
            values = {"cost": sums[self._places["cost"]]}
            self._finish_weighing(weighing, sums[len(self._places) :], values)
            sums[self._places["cost"]] = values["cost"]
        if self._buffers:
            self._share_buffers()
        return sums, rows

    @property
    def _computes_whole_batches(self) -> bool:
        return False

    def components(self) -> int:
        """Return how many parts of a batch the program looks at; others need not be arrays of numbers."""
        if self._request.mixes_labels:
            return _MIXED_COMPONENTS
        return 1 if self.network.target is None else 2

    def _before_optimizers(self) -> None:
        if self._changes_gradients:  # what it draws must be the same everywhere
            own, self._seed_of_steps = self._seed_of_steps, self._seed_of_all
            self._seed(self._step_count + _OF_HOOKS)
            self._seed_of_steps = own

    def _share_buffers(self) -> None:
        """Give all processes the buffers of the first one, which are those that a checkpoint has."""
        buffers = [getattr(module, name) for module, name in self._buffers]
        flat = torch.cat([each.detach().contiguous().reshape(-1).view(torch.uint8) for each in buffers])
        self.group.take_from_first(flat)
        if self.group.rank:
            parts = flat.split([each.numel() * each.element_size() for each in buffers])
            with torch.no_grad():
                for buffer, part in zip(buffers, parts, strict=True):
                    buffer.copy_(part.clone().view(buffer.dtype).reshape(buffer.shape))


class ReplicaProgram(SharedProgram):
    """The program of a replica."""

    _shards: tuple[Sequence[np.ndarray], Sequence[int]] = ((), ())
    _rows: Mapping[str, list[np.ndarray]] = {}

    def take_part(
        self, arrays: Sequence[np.ndarray], counts: Sequence[int], share: Share
    ) -> Mapping[str, list[np.ndarray]]:
        """Take a step; return the arrays that are wanted, for each part of the batch with rows of this process.

        Args:
            arrays: rows of this process, part after part.
            counts: how many of them are of each part of the batch.
            share: what holds for the whole step.
        """
        known = self.hyperparameters()
        for name, value in share.hyperparameters.items():
            if known[name] != value:
                self.set_hyperparameter(name, value)
        self._shards, self._rows = (arrays, counts), {}
        self.step(share, ())
        self._shards = ((), ())
        return self._rows

    def _gradients(self, batch: Share, wanted: Sequence[str]) -> dict[str, torch.Tensor]:
        arrays, counts = self._shards
        ends = np.cumsum(counts).tolist()
        parts = [([each[end - count : end] for each in arrays], count) for end, count in zip(ends, counts, strict=True)]
        _, rows = self._compute(parts, batch)
        self._rows = {name: [plain(each) for each in values] for name, values in rows.items()}
        return {}


class FirstProgram(SharedProgram):
    """The program of the first process, which the loop sees: it behaves like one on one device.

    Args:
        network: the user's network.
        request: its optimizer, precision and the like.
        options: the rest.
        is_frozen: called with each parameter's name in a checkpoint; True for one that is not to be trained.
        group: the processes.
        start: starts the replicas.
    """

    _is_news = True
    """Whether the replicas have not got the state yet."""

    def __init__(
        self,
        network: Network,
        request: ProgramRequest,
        options: ProgramOptions,
        is_frozen: Callable[[str], bool],
        group: DeviceGroup,
        start: Callable[[int], OtherProcesses],
    ) -> None:
        super().__init__(network, request, options, is_frozen, group)
        self._needs_every_row = options.sync_batch_norm
        self._threads = torch.get_num_threads()
        each = _threads_of_each(options, group.size) if request.place is None else 0
        self._process_threads = each or self._threads
        self._replicas: OtherProcesses | None = start(each)
        self._patience_s = options.device_timeout_s
        self._has_met = False

    @property
    def replicas(self) -> Sequence[int]:
        """Process numbers of the replicas; empty when they have been ended."""
        return [] if self._replicas is None else self._replicas.pids

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``state()`` gave; all or nothing. The replicas get it before the next step.

        Raises:
            CheckpointError: where names or shapes are of another network.
        """
        super().load_state(state)
        self._is_news = True

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Set a hyperparameter from the next step on, on all devices."""
        before = self.hyperparameters().get(name)
        super().set_hyperparameter(name, value)
        # Layers that stand still use the statistics of their norms, which are each device's own until then.
        is_switched = before is not None and (before == 0) != (value == 0)
        self._is_news |= is_switched and name not in _OF_OPTIMIZERS

    def connect(self, batches: BatchCycle) -> Feed:
        """Make each batch when its step needs it, or some of them ahead; from here on, all processes are there.

        Raises:
            ZigguratError: where a replica could not build its program.
        """
        with self._working() as replicas:
            self._meet(replicas)
            replicas.connect(batches.state())
        return super().connect(batches)

    def close(self) -> None:
        """End the replicas, and let memory of a GPU go; closing twice does nothing."""
        self._end(within_s=_ENDED_WITHIN_S)
        super().close()

    # ---- inside

    def _take_step(self, batch: Any, wanted: Sequence[str]) -> dict[str, torch.Tensor]:
        with self._working() as replicas:
            self._meet(replicas)
            if self._is_news:
                state = self.state()
                replicas.tell_state({name: each for name, each in state.items() if not name.startswith(AVERAGES)})
                self._is_news = False
            replicas.step_begins()
            values = super()._take_step(batch, wanted)
            replicas.step_ends()
        return values

    @contextmanager
    def _working(self) -> Iterator[OtherProcesses]:
        """Give the replicas; an error ends them, because they may be in the middle of a step.

        Raises:
            StateError: where they have ended.
            ZigguratError: of a replica, where that is why this process cannot go on.
        """
        replicas = self._replicas
        if replicas is None:
            raise StateError(
                "A program trains until an error of a step, or until it is closed.",
                received="a step behind that",
                advice="Build a new one, and give it the last state.",
            )
        try:
            yield replicas
        except BaseException as error:
            cause = replicas.cause(error) if _is_of_a_lost_process(error) else None
            self._end(within_s=0.0)
            if cause is None:
                raise
            raise cause from cause.__cause__

    def _end(self, within_s: float) -> None:
        """End the replicas; calling it twice does nothing."""
        if self._replicas is not None:
            self._replicas.close(within_s)
            self._replicas = None
            self.group.close()
            torch.set_num_threads(self._threads)

    def _gradients(self, batch: Any, wanted: Sequence[str]) -> dict[str, torch.Tensor]:
        assert self._replicas is not None
        arrays = [np.asarray(each) for each in batch[: self.components()]]
        total, pieces = len(arrays[0]), self._steps.accumulation
        ranges = row_ranges(total, pieces, self.group.size)
        is_everywhere = all(first < end for own in ranges for first, end in own)
        if self._needs_every_row and not is_everywhere:
            raise ConfigurationError(
                "With `sync_batch_norm`, every device has at least one sample of each part of a batch.",
                received=f"{total} samples for {self.group.size} devices",
                advice="Make `batch_size` larger, or take fewer devices.",
            )
        names = tuple(name for name in wanted if name not in OF_THE_STEP)
        share = Share(total, is_everywhere, names, self.hyperparameters())
        self._replicas.hand_out(arrays, ranges[1:], share)
        parts = [([each[first:end] for each in arrays], end - first) for first, end in ranges[0]]
        sums, rows = self._compute(parts, share)
        values = {name: sums[self._places[name]].clone() for name in names if name in self._places}
        if rows:
            values |= _joined(ranges, [rows, *self._replicas.collect()])
        return values

    def _meet(self, replicas: OtherProcesses) -> None:
        """Wait until the replicas have built their programs, and find each other; afterwards it does nothing."""
        if self._has_met:
            return
        replicas.meet(self.group)
        if self.options.device.type == "cuda":
            replicas.watch(self.group.break_off, self._patience_s)
        else:
            torch.set_num_threads(self._process_threads)
        self._has_met = True


def _threads_of_each(options: ProgramOptions, size: int) -> int:
    """Return how many threads each process uses; 0 to leave it to PyTorch."""
    if options.device.type != "cpu" or options.intra_threads:
        return 0
    return max(1, torch.get_num_threads() // size)


def _joined(ranges: Sequence[Sequence[tuple[int, int]]], found: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Return arrays of a batch: the rows of all processes, in the order of the batch.

    Args:
        ranges: of each process, rows of each part of the batch.
        found: of each process, name → its rows of each part that it has rows of.
    """
    joined = {}
    for name in found[0]:
        left = [iter(each[name]) for each in found]
        pieces = [
            torch.as_tensor(next(left[rank])).cpu()
            for place in range(len(ranges[0]))
            for rank, own in enumerate(ranges)
            if own[place][0] < own[place][1]
        ]
        joined[name] = torch.cat([each.float() if each.dtype in _HALF else each for each in pieces])
    return joined


_HALF: Final = (torch.bfloat16, torch.float16)


def _is_of_a_lost_process(error: BaseException) -> bool:
    """Return whether an error was raised because another process does not answer."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, LostProcessError):
            return True
        link = link.__cause__ or link.__context__
    return False


def _buffers_that_count(module: nn.Module) -> list[tuple[nn.Module, str]]:
    """Return the buffers of a checkpoint that may decide the steps to come.

    The means and variances of norms do not: a training step computes with those of its batch.
    """
    return [
        (each, name)
        for each in module.modules()
        if not isinstance(each, _NormBase)
        for name, buffer in each._buffers.items()
        if buffer is not None and name not in each._non_persistent_buffers_set
    ]


def _has_own_hook(module: nn.Module) -> bool:
    hook = getattr(type(module), "gradientUpdate", None)
    return hook is not None and hook is not Tower.gradientUpdate
