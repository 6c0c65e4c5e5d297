"""Program around a module of the user: its own optimizer and loss, behind the methods that the loop calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ziggurat.backends.torch.arithmetic import torch_arithmetic
from ziggurat.backends.torch.batches import on_device, row_count, rows_of
from ziggurat.backends.torch.feeds import make_feed, taken
from ziggurat.backends.torch.steps import COST_ALONE, StepOptions, StepProgram
from ziggurat.engine.feed import BatchCycle, DirectFeed, Feed
from ziggurat.errors import ConfigurationError, TrainingError, UnknownNameError
from ziggurat.torch.loaders import LoaderPasses
from ziggurat.torch.processes import join_processes, lost_processes

__all__ = ["ModuleProgram", "Options"]

_GROUP: Final = "ziggurat/groups/"
_SEED: Final = "ziggurat/seed"
_PRECISIONS: Final = ("float32", "bf16", "fp16")
_COMPUTED: Final = ("output", "probabilities", "incorrect_vector", "labels")
"""Values of a module with a loss of its output, besides the cost and the user's own."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a module is trained.

    Args:
        device: where to compute; None for a GPU where there is one. Of several processes each takes its own.
        precision: ``float32``, ``bf16`` or ``fp16``; the weights stay as they are, the layers compute in half.
        compile: whether the module is compiled by ``torch.compile``.
        accumulation: parts of a batch that are computed one after another for one step, which saves memory.
        gradient_clip: largest norm of all gradients of an optimizer together; None for no limit.
        ema_decay: decay of averages of the weights, which evaluation uses; None for none.
        channels_last: whether images and weights of convolutions have their channels last in memory.
        prefetch_batches: batches that a thread makes ahead; 0 for the choice of the program. A ``DataLoader`` has
            workers of its own instead.
        seed: of dropout and the like; None for that of ``seed_everything`` or ``torch.manual_seed``.
        overlap: of several processes, average gradients while others are still computed. False: at once and at the
            end, which works with parameters that a step does not use.
    """

    device: torch.device | str | None = None
    precision: str = "float32"
    compile: bool = False
    accumulation: int = 1
    gradient_clip: float | None = None
    ema_decay: float | None = None
    channels_last: bool = False
    prefetch_batches: int = 0
    seed: int | None = None
    overlap: bool = True

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigurationError: where one cannot be.
        """
        if self.precision not in _PRECISIONS:
            raise ConfigurationError(
                f"`precision` is {self.precision}, not {', '.join(_PRECISIONS)}.", advice="`bf16` needs no scaling."
            )
        if self.accumulation < 1:
            raise ConfigurationError("`accumulation` is at least 1.", received=self.accumulation, advice="Set it so.")
        if self.gradient_clip is not None and not self.gradient_clip > 0:
            raise ConfigurationError(f"`gradient_clip` is {self.gradient_clip}, not above 0.", advice="1.0 is usual.")
        if self.ema_decay is not None and not 0 < self.ema_decay < 1:
            raise ConfigurationError(f"`ema_decay` is {self.ema_decay}, not in (0, 1).", advice="0.999 is usual.")


class ModuleProgram(StepProgram):
    """Trains a module by an optimizer, in one process or in several.

    The loss is told in one of two forms:

    - ``loss(output, *targets)``: the module is called with the first component of a batch, the loss with its output
      and the other components. Values that callbacks and inferencers may ask for: ``cost``, ``output``,
      ``probabilities``, ``incorrect_vector`` and ``labels`` (of class numbers), and those of ``scalars``.
    - ``batch_loss(batch)``: computes everything itself. It returns a scalar tensor, or a list of them where there are
      several optimizers (each is minimized over the parameters of its own), or a mapping with that as ``cost`` and with
      the values that ``scalars`` names.

    Arrays of a batch arrive as tensors on the device. In several processes each computes its share of the rows of every
    batch, so that a step is the same as in one process.

    Args:
        module: what is trained; it is moved to the device.
        optimizer: of ``torch.optim``, over its parameters; a list for several losses.
        loss: of the output of the module, as ``torch.nn.functional.cross_entropy``.
        batch_loss: of a batch, in its place.
        scalars: single numbers that become curves: with ``loss``, name → function of output and targets that gives a
            scalar tensor; with ``batch_loss``, their names in its mapping.
        arrays: with ``batch_loss``, names of arrays in its mapping that have one row a sample.
        options: how it is trained.

    Raises:
        ConfigurationError: where the arguments do not fit together.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
        loss: Callable[..., torch.Tensor] | None = None,
        *,
        batch_loss: Callable[[Any], Any] | None = None,
        scalars: Mapping[str, Callable[..., torch.Tensor]] | Sequence[str] = (),
        arrays: Sequence[str] = (),
        options: Options | None = None,
    ) -> None:
        self.options = options or Options()
        self.processes = join_processes(self.options.device)
        self._loss, self._batch_loss = _one_of(loss, batch_loss)
        self._scalars = _checked_scalars(scalars, self._loss is not None)
        self._arrays = _COMPUTED if self._loss is not None else tuple(arrays)
        optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer)
        module.to(self.processes.device)
        if self.options.channels_last:
            module.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        if self.options.compile:
            module.compile()
        seed = torch.initial_seed() if self.options.seed is None else self.options.seed
        super().__init__(
            module,
            optimizers,
            [_parameters_of(each, module) for each in optimizers],
            StepOptions(
                device=self.processes.device,
                seed=seed,
                precision=self.options.precision,
                accumulation=self.options.accumulation,
                gradient_clip=self.options.gradient_clip,
                ema_decay=self.options.ema_decay,
            ),
        )
        self._set_seed(seed)
        self._memory_format = torch.channels_last if self.options.channels_last else None
        rates = [group["lr"] for each in optimizers for group in each.param_groups]
        self._first_rates = [float(each) for each in rates]
        self._cost = _Cost(module, self._loss, self._batch_loss)
        plain = self.options.precision == "float32" and self.options.accumulation == 1
        self._may_be_short = plain and self.options.gradient_clip is None and len(optimizers) == 1
        self._is_checked = False
        self._replica: DistributedDataParallel | None = None

    # ---- the contract

    def arithmetic(self) -> dict[str, str | int | bool]:
        """Return what decides the last bits: PyTorch, its instructions, threads, devices and switches."""
        return torch_arithmetic(
            self.processes.device,
            count=self.processes.size,
            precision=self.options.precision,
            channels_last=self.options.channels_last,
            is_compiled=self.options.compile,
        )

    def names(self) -> Sequence[str]:
        """Return the values that can be fetched: those of training steps; evaluation has most of them."""
        return (*self.evaluation_names(), "gradient_norm", "learning_rate")

    def evaluation_names(self) -> Sequence[str]:
        """Return the values that ``evaluate`` can give."""
        return ("cost", *self._scalars, *self._arrays)

    def numbers(self) -> Sequence[str]:
        """Return the values that are single numbers."""
        return ("cost", *self._scalars)

    def summary_names(self) -> Sequence[str]:
        """Return the single numbers that are logged unless a callback names others."""
        return self.numbers()

    def connect(self, batches: BatchCycle) -> Feed:
        """Make each batch when its step needs it, or some of them ahead in a thread."""
        if isinstance(batches.source, LoaderPasses):
            return DirectFeed(batches)  # it has its own workers, and draws from the generator of the process
        is_alone = self.processes.size == 1
        return make_feed(batches, self.processes.device, self.options.prefetch_batches, staged=is_alone)

    def hyperparameters(self) -> Mapping[str, float]:
        """Return ``learning_rate``, and ``momentum`` where the optimizer has it, of its first group of parameters."""
        if not self._optimizers:
            return {}
        group = self._optimizers[0].param_groups[0]
        found = {"learning_rate": float(group["lr"])}
        return {**found, "momentum": float(group["momentum"])} if "momentum" in group else found

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Set a hyperparameter from the next step on; learning rates of several groups keep their ratios."""
        known = self.hyperparameters()
        if name not in known:
            raise UnknownNameError("hyperparameter", name, known)
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        for group, first in zip(groups, self._first_rates, strict=True):
            if name != "learning_rate":
                group[name] = float(value)
            else:
                ratio = first / self._first_rates[0] if self._first_rates[0] else 1.0
                _put(group, "lr", float(value) * ratio)

    def extra_state(self) -> dict[str, np.ndarray]:
        """Return the numbers of all groups of parameters, and the seed."""
        found = {
            f"{_GROUP}{number}/{place}/{name}": np.array(value, np.float64)
            for number, optimizer in enumerate(self._optimizers)
            for place, group in enumerate(optimizer.param_groups)
            for name, value in _group_numbers(group).items()
        }
        return {**found, _SEED: np.array(self._seed_words, np.int64)}

    def load_extra_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``extra_state()`` gave."""
        for number, optimizer in enumerate(self._optimizers):
            for place, group in enumerate(optimizer.param_groups):
                for name, value in _group_numbers(group).items():
                    saved = np.asarray(state[f"{_GROUP}{number}/{place}/{name}"]).tolist()
                    _put(group, name, tuple(saved) if isinstance(value, list) else saved)
        high, low = (int(each) for each in state[_SEED])
        self._set_seed(high << 32 | low)

    @property
    def seed(self) -> int:
        """What is drawn at random depends on it: that of the options, or of PyTorch's generator at the beginning."""
        high, low = self._seed_words
        return high << 32 | low

    # ---- several processes

    def group_numbers(self) -> list[float]:
        """Return the numbers of all groups of parameters, which schedules change, in one list."""
        return [
            number
            for optimizer in self._optimizers
            for group in optimizer.param_groups
            for value in _group_numbers(group).values()
            for number in (value if isinstance(value, list) else [value])
        ]

    def set_group_numbers(self, numbers: Sequence[float]) -> None:
        """Take numbers that ``group_numbers()`` of another process gave."""
        left = iter(numbers)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                for name, value in _group_numbers(group).items():
                    taken = tuple(next(left) for _ in value) if isinstance(value, list) else next(left)
                    _put(group, name, taken)

    def _take_step(self, batch: Any, wanted: Sequence[str]) -> dict[str, torch.Tensor]:
        if self.processes.size == 1:
            is_short = self._may_be_short and wanted == COST_ALONE
            return self._short_step(batch) if is_short else super()._take_step(batch, wanted)
        rank, size = self.processes.rank, self.processes.size
        total = row_count(batch)
        first, end = total * rank // size, total * (rank + 1) // size
        self._weight = (end - first) * size / total
        own = rows_of(batch, first, end) if end > first else rows_of(batch, 0, 1)  # takes part, and counts for nothing
        numbers = self.numbers()
        try:
            with lost_processes():
                values = super()._take_step(own, tuple(dict.fromkeys((*wanted, *numbers))))
        except RuntimeError as error:
            raise _unused(error) from error
        together = torch.stack([values[name].float() for name in numbers]) * (self._weight / size)
        if self._weight == 0:
            together.zero_()  # NaN times 0 is no 0
        self.processes.add_up(together)
        return {**values, **dict(zip(numbers, together, strict=True))}

    def _short_step(self, batch: Any) -> dict[str, torch.Tensor]:
        """Take a step without anything that options add to it: that of ``super()._take_step``, written out.

        Between two steps the processor's caches are cold, so each call that is left out saves some microseconds.
        """
        for parameter in self._trained_parameters:
            parameter.grad = None
        held = on_device(taken(batch), self._steps.device, self._memory_format)
        losses, _ = self._cost.forward(held)
        if not self._is_checked:
            self._check(losses)
            self._is_checked = True
        loss = losses[0]
        try:
            loss.backward()
        except RuntimeError:
            self._check(losses)  # where a later loss is none, this says why
            raise
        self._optimizers[0].step()  # passes over parameters without a gradient, and so over those that stand still
        return {"cost": loss.detach()}

    def _backward(
        self, batch: Any, share: float, wanted: Sequence[str], *, is_last: bool = True
    ) -> dict[str, torch.Tensor]:
        if self._replica is None or is_last:
            return super()._backward(batch, share, wanted)
        with self._replica.no_sync():
            return super()._backward(batch, share, wanted)

    def _before_optimizers(self) -> None:
        if self.processes.size > 1 and self._replica is None:
            self._average_gradients()

    def _average_gradients(self) -> None:
        """Replace each gradient by its mean over the processes, all in one message."""
        parameters = self._trained_parameters
        parts = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
        flat = torch.cat([each.reshape(-1).float() for each in parts])
        counts = torch.tensor([float(each.grad is not None) for each in parameters], device=flat.device)
        message = torch.cat([flat, counts])
        self.processes.add_up(message)
        found = message[: len(flat)] / self.processes.size
        is_used = (message[len(flat) :] > 0).tolist()
        split = found.split([each.numel() for each in parts])
        for parameter, used, values in zip(parameters, is_used, split, strict=True):
            parameter.grad = values.reshape(parameter.shape).to(parameter.dtype) if used else None

    # ---- inside

    def _outcome(self, batch: Any, *, is_training: bool) -> _BatchOutcome:
        held = on_device(batch, self._steps.device, self._memory_format)
        if not is_training or self.processes.size == 1 or not self._is_replicated():
            losses, values = self._cost.forward(held)  # nothing hooks in: a call of the module would look for it
        else:
            if self._replica is None:
                self._replica = DistributedDataParallel(self._cost)
            losses, values = self._replica(held)
        if is_training:
            self._check(losses)
        return _BatchOutcome(self, held, losses, values)

    def _is_replicated(self) -> bool:
        return self.options.overlap and len(self._optimizers) == 1

    def _check(self, losses: Sequence[torch.Tensor]) -> None:
        if len(losses) != len(self._optimizers):
            raise ConfigurationError(
                f"There are {len(losses)} losses and {len(self._optimizers)} optimizers.",
                advice="Return a list of scalars from `batch_loss`, or add the losses up.",
            )
        for loss in losses:
            if loss.ndim or not loss.requires_grad:
                kind = f"a tensor of shape {tuple(loss.shape)}" if loss.ndim else "a number without a gradient"
                raise ConfigurationError(
                    f"The loss is {kind}, not a scalar tensor that depends on what is trained.",
                    advice="Reduce it with `.mean()`, and do not detach it.",
                )

    def value_of(self, name: str, batch: Any, output: Any) -> torch.Tensor:
        """Return a value of a batch whose loss is one of the output.

        Args:
            name: one of ``names()``.
            batch: with tensors on the device.
            output: of the module.
        """
        targets = batch[1:]
        if name in self._scalars:
            return self._scalars[name](output, *targets)  # pyright: ignore[reportCallIssue, reportArgumentType]
        if name == "output":
            return output
        if name == "labels":
            return targets[0]
        if name == "probabilities":
            return output.float().softmax(1)
        if name == "incorrect_vector":
            return (output.argmax(1) != targets[0]).float()
        raise UnknownNameError("value of this program", name, self.names())

    def _set_seed(self, seed: int) -> None:
        # Each process draws its own dropout, and in one process it is that of the first.
        self._seed_words = (seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF)
        self._seed_of_steps = seed + 0x632BE59BD9B4E019 * self.processes.rank


class _Cost(nn.Module):
    """Computes the losses of a batch; replicas of it notice when gradients are complete."""

    def __init__(
        self, module: nn.Module, loss: Callable[..., torch.Tensor] | None, batch_loss: Callable[[Any], Any] | None
    ) -> None:
        super().__init__()
        self.module = module
        self._loss = loss
        self._batch_loss = batch_loss

    def forward(self, batch: Any) -> tuple[list[torch.Tensor], Any]:
        """Return the losses, and the output or the mapping of values."""
        if self._loss is not None:
            if not isinstance(batch, list) or not batch:
                raise ConfigurationError(
                    f"A batch is a {type(batch).__name__}; with `loss`, it is a list of components: what the "
                    "module gets, then what the loss gets.",
                    advice="Give `batch_loss`, a function of the whole batch.",
                )
            output = self.module(batch[0])
            return [self._loss(output, *batch[1:])], output
        assert self._batch_loss is not None
        found = self._batch_loss(batch)
        values = found if isinstance(found, Mapping) else {"cost": found}
        if "cost" not in values:
            raise ConfigurationError(
                f"The mapping of `batch_loss` has no `cost`, the loss: {', '.join(map(str, values)) or 'it is empty'}.",
                advice="Return {'cost': loss, ...}.",
            )
        cost = values["cost"]
        losses = list(cost) if isinstance(cost, list | tuple) else [cost]
        if not all(isinstance(each, torch.Tensor) for each in losses):
            raise ConfigurationError(
                f"The loss is a {type(cost).__name__}, not a scalar tensor.", advice="Return it without `.item()`."
            )
        return losses, values


class _BatchOutcome:
    """What came of a batch.

    Args:
        program: whose step it is.
        batch: with tensors on the device.
        losses: what is minimized.
        values: the output, or the mapping of values.
    """

    def __init__(self, program: ModuleProgram, batch: Any, losses: list[torch.Tensor], values: Any) -> None:
        self.losses = losses
        self.weights = [None] * len(losses)  # a loss of one's own counts by samples
        self._program = program
        self._batch = batch
        self._values = values

    def value(self, name: str) -> torch.Tensor:
        if name == "cost":
            return self.losses[0] if len(self.losses) == 1 else torch.stack(self.losses).sum()
        if self._program._loss is not None:
            return self._program.value_of(name, self._batch, self._values)
        if name not in self._values:
            raise UnknownNameError("value in the mapping of `batch_loss`", name, self._values)
        return torch.as_tensor(self._values[name])


def _one_of(loss: Any, batch_loss: Any) -> tuple[Any, Any]:
    if (loss is None) == (batch_loss is None):
        raise ConfigurationError(
            "Neither `loss` nor `batch_loss` is given."
            if loss is None
            else "Both `loss` and `batch_loss` are given: a program has one.",
            advice="Give `loss=torch.nn.functional.cross_entropy`, or a function of the whole batch.",
        )
    return loss, batch_loss


def _checked_scalars(scalars: Any, has_functions: bool) -> Mapping[str, Any]:
    if has_functions:
        if scalars and not (isinstance(scalars, Mapping) and all(callable(each) for each in scalars.values())):
            raise ConfigurationError(
                f"`scalars` is a {type(scalars).__name__}; with `loss`, it maps names to functions of "
                "output and targets.",
                advice="Write `scalars={'accuracy': accuracy}`.",
            )
        return dict(scalars)
    return dict.fromkeys([scalars] if isinstance(scalars, str) else scalars)


def _parameters_of(optimizer: torch.optim.Optimizer, module: nn.Module) -> list[nn.Parameter]:
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ConfigurationError(
            "LBFGS asks for several gradients in a step, and a step computes one.", advice="Use another optimizer."
        )
    own = {id(each) for each in module.parameters()}
    found = [each for group in optimizer.param_groups for each in group["params"]]
    strangers = sum(id(each) not in own for each in found)
    if strangers:
        raise ConfigurationError(
            f"The optimizer has {strangers} of {len(found)} parameters that the module does not have.",
            advice="Put all parts into one `nn.Module`, and make the optimizer behind that.",
        )
    device = next((each.device for each in found), None)
    for slots in optimizer.state.values():  # made before the module was moved
        for name, value in slots.items():
            if isinstance(value, torch.Tensor) and value.ndim:
                slots[name] = value.to(device)
    return [each for each in found if each.requires_grad]


def _group_numbers(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a group of parameters: name → float or list of floats."""
    found: dict[str, Any] = {}
    for name, value in group.items():
        is_tensor = isinstance(value, torch.Tensor) and value.ndim == 0
        if is_tensor or (isinstance(value, int | float) and not isinstance(value, bool)):
            found[name] = float(value)
        elif isinstance(value, list | tuple) and value and all(isinstance(each, int | float) for each in value):
            found[name] = [float(each) for each in value]
    return found


def _put(group: dict[str, Any], name: str, value: Any) -> None:
    """Set a number of a group; one that is a tensor stays one, because a compiled step reads it."""
    held = group[name]
    if isinstance(held, torch.Tensor):
        held.fill_(value)
    else:
        group[name] = int(value) if isinstance(held, int) and float(value).is_integer() else value


def _unused(error: RuntimeError) -> Exception:
    text = str(error)
    if "Expected to have finished reduction" not in text and "mark_variable_ready" not in text:
        return error
    return TrainingError(
        f"A step of one of several processes does not use every parameter once: {text.splitlines()[0].rstrip('.')}.",
        advice="Give `Options(overlap=False)`, which averages the gradients at the end of the step.",
    )
