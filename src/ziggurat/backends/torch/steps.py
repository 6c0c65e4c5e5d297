"""Steps along gradients: what every PyTorch program has in common, whatever its network and its optimizers are."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Protocol

import numpy as np
import torch
from torch import nn

from ziggurat.backends.torch.averages import Averages
from ziggurat.backends.torch.batch_sums import Weight, WeightScale
from ziggurat.backends.torch.batches import row_count, rows_of
from ziggurat.backends.torch.feeds import taken
from ziggurat.backends.torch.shards import even_counts
from ziggurat.backends.torch.state import ProgramState
from ziggurat.backends.torch.weighing import Weighing, weighted_cost
from ziggurat.engine.program import NonFiniteStep
from ziggurat.errors import TrainingError, UnknownNameError

__all__ = ["COST_ALONE", "OF_THE_STEP", "Outcome", "StepOptions", "StepProgram", "plain"]

_MASK: Final = (1 << 64) - 1
_SEEDS_AT_ONCE: Final = 256
_HALF: Final = {"bf16": torch.bfloat16, "fp16": torch.float16}
OF_THE_STEP: Final = ("gradient_norm", "learning_rate")
"""Values that a batch alone does not have."""

COST_ALONE: Final = ("cost",)
"""What nearly every step is asked for."""

_IS_TRAINED: Final = attrgetter("requires_grad")


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """How steps are taken.

    Args:
        device: where they compute.
        seed: of what is drawn at random in them.
        precision: ``float32``, ``bf16`` or ``fp16``.
        accumulation: parts of a batch that are computed one after another, for one step of the optimizers.
        gradient_clip: largest norm of all gradients of a loss together; None for no limit.
        ema_decay: decay of the averages of the weights; None for none.
    """

    device: torch.device
    seed: int = 0
    precision: str = "float32"
    accumulation: int = 1
    gradient_clip: float | None = None
    ema_decay: float | None = None


class Outcome(Protocol):
    """What came of a batch."""

    @property
    def losses(self) -> Sequence[torch.Tensor]:
        """Return the scalars that are minimized, one for each optimizer."""
        ...

    @property
    def weights(self) -> Sequence[Weight | None]:
        """Return the weight of each loss; None for the number of rows."""
        ...

    def value(self, name: str) -> torch.Tensor:
        """Return a value by its name."""
        ...


class StepProgram(ABC):
    """Base of programs that take the steps of optimizers; the rest of ``engine.program.Program`` is its subclasses'.

    Args:
        module: what is trained, on its device.
        optimizers: one for each loss.
        parts: the parameters of each optimizer.
        options: how steps are taken.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        parts: Sequence[Sequence[nn.Parameter]],
        options: StepOptions,
    ) -> None:
        self.module = module
        self._steps = options
        self._optimizers = list(optimizers)
        self._parts = [list(part) for part in parts]
        self._trained_parameters = list({id(each): each for part in self._parts for each in part}.values())
        self._names = {id(each): name for name, each in module.named_parameters()}
        self._averages = None if options.ema_decay is None else Averages(options.ema_decay, self._trained_parameters)
        # Losses in half precision are scaled up, so that small gradients do not vanish.
        self._scaler = torch.amp.GradScaler(options.device.type) if options.precision == "fp16" else None
        self._half = _HALF.get(options.precision)
        self._seed_of_steps = options.seed
        self._seeds: list[int] = []
        self._seeds_from, self._seeds_of = 0, options.seed
        self._weight = 1.0
        """Factor of all losses: of one of several processes that share a batch."""
        self._weight_scales: Sequence[WeightScale | None] = [None] * len(self._parts)
        self._weighing: Weighing | None = None
        self._step_count = 0
        self._is_training = True
        self._recorded: dict[str, list[torch.Tensor]] = {}
        self._kept: tuple[str, ...] = ()
        self._watched: tuple[str, ...] = ()
        self._asked = False
        """Whether values of the step under way are fetched with it."""
        self._state = ProgramState(self)
        module.train()

    # ---- what a subclass says

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Return the values that can be fetched."""

    @abstractmethod
    def numbers(self) -> Sequence[str]:
        """Return those of ``names()`` that are single numbers."""

    @abstractmethod
    def hyperparameters(self) -> Mapping[str, float]:
        """Return the values that may change while it trains."""

    @abstractmethod
    def set_hyperparameter(self, name: str, value: float) -> None:
        """Give a hyperparameter another value, from the next step on."""

    @abstractmethod
    def _outcome(self, batch: Any, *, is_training: bool) -> Outcome:
        """Run the network on a batch; the mode, the random generators and the precision are set."""

    def _set_layers(self, *, is_training: bool) -> None:
        """Let the layers compute as in training, or as in validation."""
        self.module.train(is_training)

    def _before_optimizers(self) -> None:
        """Change the gradients of all losses, before anything looks at them."""

    def _change_gradients(self, number: int) -> None:
        """Change the gradients of one loss, before they are measured and clipped."""

    def extra_state(self) -> dict[str, np.ndarray]:
        """Return what else decides the steps to come."""
        return {}

    def load_extra_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``extra_state()`` gave; ``state`` holds all the rest, too."""

    # ---- the contract

    def declare(self, names: Sequence[str]) -> None:
        """Check the names; nothing has to be built for them."""
        known = self.names()
        for name in names:
            if name not in known:
                raise UnknownNameError("value of this program", name, known)

    def record(self, names: Sequence[str], watched: Sequence[str]) -> Sequence[str]:
        """Keep single numbers of every step to come, on the device."""
        numbers = {*self.numbers(), *OF_THE_STEP}
        self._kept = tuple(name for name in names if name in numbers)
        self._recorded = {name: [] for name in self._kept}
        self._watched = tuple(name for name in self._kept if name in watched)
        return list(self._kept)

    def recorded(self) -> Mapping[str, np.ndarray]:
        """Return kept name → values of the steps since the last call, oldest first."""
        found = {name: self._numbers(name, values) for name, values in self._recorded.items()}
        self._recorded = {name: [] for name in self._recorded}
        return found

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Train on one batch: one step of the optimizers, whatever the number of parts.

        Raises:
            NonFiniteStep: where a watched value is not finite.
            TrainingError: where the device has not enough memory.
        """
        if not self._is_training:
            self._train_mode(True)
        self._seed_step()
        self._asked = bool(names)
        wanted = self._kept if not names else tuple(dict.fromkeys((*self._kept, *names)))
        try:
            values = self._take_step(batch, wanted)
        except torch.OutOfMemoryError as error:
            raise self._too_large(error) from error
        self._step_count += 1
        if self._averages is not None:
            self._averages.move(self._step_count)
        for name, kept in self._recorded.items():
            kept.append(values[name])
        for name in self._watched:
            if not math.isfinite(values[name].item()):
                raise NonFiniteStep(name)
        return {name: plain(values[name]) for name in names} if names else {}

    def evaluate(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Run the network on one batch in validation mode, with the averaged weights where there are any.

        Raises:
            TrainingError: where the device has not enough memory.
        """
        self._train_mode(False)
        self._seed(0)
        try:
            with torch.no_grad(), self._autocast():
                outcome = self._outcome(batch, is_training=False)
                values = {name: plain(outcome.value(name)) for name in names}
                weights = outcome.weights
                if "cost" in values and any(each is not None for each in weights):
                    values["cost"] = weighted_cost(values["cost"], outcome.losses, weights, row_count(batch))
                return values
        except torch.OutOfMemoryError as error:
            raise self._too_large(error) from error

    def state(self) -> dict[str, np.ndarray]:
        """Return weights, buffers, slots of the optimizers, averages, hyperparameters and the number of steps.

        What is drawn at random in a step is drawn by its number, so that no generator has a state of its own.
        """
        self._train_mode(True)
        return self._state.arrays()

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``state()`` gave; all or nothing.

        Raises:
            CheckpointError: where names or shapes are of another network.
        """
        self._train_mode(True)
        self._state.load(state)

    def close(self) -> None:
        """Let memory of a GPU go; closing twice does nothing."""
        self._optimizers = []
        if self._steps.device.type == "cuda":
            torch.cuda.empty_cache()

    # ---- what the state is made of

    @property
    def optimizers(self) -> Sequence[torch.optim.Optimizer]:
        """One for each loss."""
        return self._optimizers

    @property
    def averages(self) -> Averages | None:
        """Averages of the weights; None for none."""
        return self._averages

    @property
    def scaler(self) -> Any:
        """Scaler of the losses in half precision; None elsewhere."""
        return self._scaler

    @property
    def step_count(self) -> int:
        """Number of finished steps."""
        return self._step_count

    @step_count.setter
    def step_count(self, count: int) -> None:
        self._step_count = count

    def name_of(self, parameter: torch.Tensor) -> str:
        """Return the name of a parameter in the network."""
        return self._names[id(parameter)]

    # ---- inside

    def _numbers(self, name: str, values: Sequence[torch.Tensor]) -> np.ndarray:
        """Return a recorded number of each step, (steps) float64."""
        if not values:
            return np.zeros(0)
        if len({each.shape for each in values}) > 1:  # a last batch that is smaller, or steps whose values were fetched
            values = [self._means_of_rows(name, each[None])[0] if each.ndim else each for each in values]
        stacked = torch.stack(list(values))
        return (self._means_of_rows(name, stacked) if stacked.ndim > 1 else stacked).double().cpu().numpy()

    def _means_of_rows(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        """Return the mean of each step, (steps), of a number that was recorded as the rows of its batch, (steps, N)."""
        return rows.mean(1, dtype=torch.float32)

    def _take_step(self, batch: Any, wanted: Sequence[str]) -> dict[str, torch.Tensor]:
        for parameter in self._trained_parameters:
            parameter.grad = None
        values = self._gradients(batch, wanted)
        self._before_optimizers()
        norm = self._apply("gradient_norm" in wanted)
        if norm is not None and "gradient_norm" in wanted:
            values["gradient_norm"] = norm
        if "learning_rate" in wanted:
            values["learning_rate"] = torch.tensor(self.hyperparameters()["learning_rate"], dtype=torch.float64)
        return values

    def _gradients(self, batch: Any, wanted: Sequence[str]) -> dict[str, torch.Tensor]:
        """Set the gradients of a batch, and return its values."""
        batch, pieces = taken(batch), self._steps.accumulation
        return self._backward(batch, 1.0, wanted) if pieces == 1 else self._in_pieces(batch, pieces, wanted)

    def _in_pieces(self, batch: Any, pieces: int, wanted: Sequence[str]) -> dict[str, torch.Tensor]:
        """Add up the gradients of parts of a batch, each as much as it has rows; return the values of the batch."""
        total = row_count(batch)
        counts = [count for count in even_counts(total, pieces) if count]
        first, found = 0, []
        weighing = self._weighing = self._new_weighing(total) if len(counts) > 1 else None
        for number, count in enumerate(counts):
            piece = rows_of(batch, first, first + count)
            found.append(self._backward(piece, count / total, wanted, is_last=number + 1 == len(counts)))
            first += count
        self._weighing = None
        values = _joined(found, [count / total for count in counts])
        if weighing is not None:
            self._finish_weighing(weighing, weighing.sums(), values)
        return values

    def _new_weighing(self, total: int) -> Weighing | None:
        """Return the sums of losses that are no means over rows, for the parts of a batch; None without such a loss.

        Args:
            total: rows of the batch.
        """
        return Weighing(self._weight_scales, total) if any(each is not None for each in self._weight_scales) else None

    def _finish_weighing(self, weighing: Weighing, sums: torch.Tensor, values: dict[str, torch.Tensor]) -> None:
        """Divide the gradients of each loss by the sum of its weights, and put the cost.

        Args:
            weighing: of the step.
            sums: its ``sums()``, over all devices.
            values: of the step.
        """
        divided: set[int] = set()
        for divisor, part in zip(weighing.divisors(sums), self._parts, strict=True):
            for parameter in part:
                if divisor is not None and parameter.grad is not None and id(parameter) not in divided:
                    parameter.grad.div_(divisor)
                divided.add(id(parameter))
        if "cost" in values:
            values["cost"] = weighing.cost(sums).to(values["cost"].dtype)

    def _backward(
        self, batch: Any, share: float, wanted: Sequence[str], *, is_last: bool = True
    ) -> dict[str, torch.Tensor]:
        """Add the gradients of a batch, or of a part of one, and return its values.

        Args:
            batch: the batch, or its part.
            share: of the rows of the whole batch.
            wanted: names of values.
            is_last: whether no further part follows.
        """
        if self._half is None:
            outcome = self._outcome(batch, is_training=True)
        else:
            with self._autocast():
                outcome = self._outcome(batch, is_training=True)
        losses = outcome.losses
        if self._scaler is not None:
            losses = [self._scaler.scale(each) for each in losses]
        factor, weighing = share * self._weight, self._weighing
        if weighing is not None:
            factors = weighing.add(outcome.losses, outcome.weights, share)
            losses = [each * (own * self._weight) for each, own in zip(losses, factors, strict=True)]
        elif factor != 1.0:
            losses = [each * factor for each in losses]
        if len(losses) == 1:
            losses[0].backward()
        else:
            self._add_gradients(losses)
        if wanted == COST_ALONE:  # in nearly every step
            return {"cost": outcome.value("cost").detach()}
        with torch.no_grad():
            return {name: outcome.value(name).detach() for name in wanted if name not in OF_THE_STEP}

    def _add_gradients(self, losses: Sequence[torch.Tensor]) -> None:
        """Add the gradient of each loss to its own parameters alone."""
        parts = [[each for each in part if each.requires_grad] for part in self._parts]
        gradients = [
            torch.autograd.grad(loss, part, retain_graph=True, allow_unused=True) if part else ()
            for loss, part in zip(losses, parts, strict=True)
        ]
        for part, found in zip(parts, gradients, strict=True):
            for parameter, gradient in zip(part, found, strict=True):
                if gradient is not None:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def _apply(self, wants_norm: bool) -> torch.Tensor | None:
        """Take the steps of the optimizers; return the norm of the gradients where it is wanted."""
        norms = []
        for number in range(len(self._optimizers)):
            if self._learns(number):
                norm = self._move(number, wants_norm)
                if norm is not None:
                    norms.append(norm)
        if self._scaler is not None:
            self._scaler.update()
        return torch.stack(norms).sum() if norms else None

    def _learns(self, number: int) -> bool:
        """Return whether a loss changes anything: not where all of its parameters stand still for a while."""
        return any(map(_IS_TRAINED, self._parts[number]))

    def _move(self, number: int, wants_norm: bool) -> torch.Tensor | None:
        """Take the step of one optimizer; return the norm of its gradients where it is known."""
        optimizer, clip, scaler = self._optimizers[number], self._steps.gradient_clip, self._scaler
        if scaler is not None:
            scaler.unscale_(optimizer)
        self._change_gradients(number)
        norm = _clip(self._parts[number], clip) if wants_norm or clip is not None else None
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
        return norm

    def _train_mode(self, wanted: bool) -> None:
        if wanted == self._is_training:
            return
        self._is_training = wanted
        self._set_layers(is_training=wanted)
        if self._averages is not None:
            self._averages.exchange()

    def _autocast(self) -> Any:
        return nullcontext() if self._half is None else torch.autocast(self._steps.device.type, self._half)

    def _seed(self, step: int) -> None:
        """Let everything that is drawn from now on depend on the seed and the number of the step alone."""
        self._use_seed(int(_scattered(self._seed_of_steps, step, 1)[0]))

    def _seed_step(self) -> None:
        """Do the same for the step to come, by seeds that are made for many steps at once."""
        place = self._step_count - self._seeds_from
        if self._seeds_of != self._seed_of_steps or not 0 <= place < len(self._seeds):
            place, self._seeds_from, self._seeds_of = 0, self._step_count, self._seed_of_steps
            self._seeds = _scattered(self._seed_of_steps, self._step_count, _SEEDS_AT_ONCE).tolist()
        self._use_seed(self._seeds[place])

    def _use_seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)
        if self._steps.device.type == "cuda":
            torch.cuda.default_generators[self._steps.device.index or 0].manual_seed(seed)

    def _too_large(self, error: BaseException) -> TrainingError:
        return TrainingError(
            f"A step does not fit into the memory of {self._steps.device}: {str(error).splitlines()[0].rstrip('.')}.",
            advice="Make `batch_size` or the images smaller, raise `gradient_accumulation_steps`, or use bf16.",
        )


def plain(value: torch.Tensor) -> Any:
    """Return a value as a NumPy array or number of its own memory."""
    array = value.detach().float() if value.dtype in (torch.bfloat16, torch.float16) else value.detach()
    found = array.cpu().numpy()
    return found[()] if found.ndim == 0 else np.array(found)


def _clip(part: Sequence[nn.Parameter], limit: float | None) -> torch.Tensor:
    """Return the norm of all gradients together, and make them shorter where it is above the limit."""
    gradients = [each.grad for each in part if each.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if limit is not None:
        share = limit / norm.clamp(min=limit)
        for each in gradients:
            each.mul_(share)
    return norm


def _joined(pieces: Sequence[Mapping[str, torch.Tensor]], shares: Sequence[float]) -> dict[str, torch.Tensor]:
    """Return the values of a batch that was computed in parts: means of numbers, rows of arrays one after another."""
    found = {}
    for name in pieces[0]:
        values = [each[name] for each in pieces]
        weights = torch.tensor(shares, dtype=values[0].dtype if values[0].is_floating_point() else torch.float32)
        is_number = values[0].ndim == 0
        found[name] = (torch.stack(values) * weights.to(values[0].device)).sum() if is_number else torch.cat(values)
    return found


def _scattered(seed: int, step: int, count: int) -> np.ndarray:
    """Return 64 bits that look random for each of some steps: (count,) uint64.

    Those of neighbors have nothing in common (splitmix64: Steele et al., OOPSLA 2014).
    """
    first = np.uint64(seed * 0x9E3779B97F4A7C15 + step + 1 & _MASK)
    mixed = np.arange(count, dtype=np.uint64) + first
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
