"""PyTorch program: a network with its optimizers, behind the methods that the loop calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from ziggurat.backends.torch.averages import Averages
from ziggurat.backends.torch.feeds import make_feed
from ziggurat.backends.torch.network import Network, Results, channels_last
from ziggurat.backends.torch.optimizers import first_momentum, make_optimizer
from ziggurat.backends.torch.state import ProgramState
from ziggurat.backends.torch.summaries import summary_of
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.feed import BatchCycle, Feed
from ziggurat.engine.program import NonFiniteStep
from ziggurat.errors import ConfigurationError, NetworkCodeError, TrainingError, UnknownNameError

__all__ = ["ProgramOptions", "TorchProgram"]

_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """What only this backend knows of a request.

    Args:
        device: where it computes.
        channels_last: whether images and the weights of convolutions have their channels last in memory.
        compile: whether the network is compiled by ``torch.compile``.
        prefetch_batches: batches that a thread makes ahead; 0 for none.
    """

    device: torch.device
    channels_last: bool = True
    compile: bool = False
    prefetch_batches: int = 0


class TorchProgram:
    """Trains a network: one process, one device.

    Args:
        network: the user's network.
        request: its optimizer, precision and the like.
        options: the rest.
        is_frozen: called with each parameter's name in a checkpoint; True for one that is not to be trained.

    Raises:
        NetworkCodeError: where a loss has nothing to train.
    """

    def __init__(self, network: Network, request: ProgramRequest, options: ProgramOptions, is_frozen: Any) -> None:
        self.network = network
        self.options = options
        self._request = request
        self._names = {id(each): name for name, each in network.module.named_parameters()}
        for name, parameter in network.module.named_parameters():
            if is_frozen(f"model/{name}"):
                parameter.requires_grad_(False)
        network.module.to(options.device)
        if options.channels_last:
            network.module.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self._parts = [self._trained(part, number) for number, part in enumerate(network.parts)]
        decoupled = request.weight_decay
        self._optimizers = [
            make_optimizer(request.optimizer, request.optimizer_options, part, request.learning_rate, decoupled)
            for part in self._parts
        ]
        added = 0.0 if request.optimizer == "adamw" else request.weight_decay
        self._added_decay = added
        self._decayed = [[each for each in part if each.ndim > 1] for part in self._parts]
        self._hyperparameters = {"learning_rate": float(request.learning_rate)}
        momentum = first_momentum(request.optimizer, request.optimizer_options)
        if momentum is not None:
            self._hyperparameters["momentum"] = momentum
        trained = {id(each): each for part in self._parts for each in part}
        self._averages = None if request.ema_decay is None else Averages(request.ema_decay, list(trained.values()))
        # Losses in half precision are scaled up, so that small gradients do not vanish.
        scaled = request.precision == "fp16"
        self._scaler = torch.amp.GradScaler(options.device.type) if scaled else None
        self._forward = torch.compile(network.results) if options.compile else network.results
        self._step_count = 0
        self._is_training = True
        self._recorded: dict[str, list[torch.Tensor]] = {}
        self._watched: tuple[str, ...] = ()
        self._gradient_hook = getattr(network.module, "gradientUpdate", None)
        self._needs_norm = request.gradient_clip is not None
        self._state = ProgramState(self)
        network.module.train()

    # ---- the contract

    def names(self) -> Sequence[str]:
        """Return the values that can be fetched: those of training steps; evaluation has most of them."""
        return (*self.evaluation_names(), "gradient_norm", "learning_rate")

    def evaluation_names(self) -> Sequence[str]:
        """Return the values that ``evaluate`` can give."""
        outputs = ["output", *(f"output_{number}" for number in range(1, len(self.network.output_shapes)))]
        scored = ["incorrect_vector", "error", "probabilities"] if self.network.gives_class_scores else []
        labels = [] if self.network.target is None else ["labels"]
        return ("cost", *self.network.scalar_names, *outputs, *scored, *labels)

    def summary_names(self) -> Sequence[str]:
        """Return the single numbers that every job logs: the cost, and what the user shows."""
        error = ["error"] if self.network.gives_class_scores else []
        return ["cost", *error, *self.network.scalar_names]

    def declare(self, names: Sequence[str]) -> None:
        """Check the names; nothing has to be built for them."""
        known = self.names()
        for name in names:
            if name not in known:
                raise UnknownNameError("value of this program", name, known)

    def connect(self, batches: BatchCycle) -> Feed:
        """Make each batch when its step needs it, or some of them ahead in a thread."""
        return make_feed(batches, self.options.device, self.options.prefetch_batches)

    def record(self, names: Sequence[str], watched: Sequence[str]) -> Sequence[str]:
        """Keep single numbers of every step to come, on the device."""
        numbers = {"cost", "error", "gradient_norm", "learning_rate", *self.network.scalar_names}
        kept = [name for name in names if name in numbers]
        self._recorded = {name: [] for name in kept}
        self._watched = tuple(name for name in kept if name in watched)
        return kept

    def recorded(self) -> Mapping[str, np.ndarray]:
        """Return kept name → values of the steps since the last call, oldest first."""
        found = {
            name: torch.stack(values).double().cpu().numpy() if values else np.zeros(0)
            for name, values in self._recorded.items()
        }
        self._recorded = {name: [] for name in self._recorded}
        return found

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Train on one batch ``[x, y]``: one step of the optimizers, whatever the number of parts.

        Where labels are mixed, it is ``[x, y, second_y, share]``.

        Raises:
            NonFiniteStep: where a watched value is not finite.
            TrainingError: where the device has not enough memory.
        """
        self._train_mode(True)
        self._seed(self._step_count)
        try:
            values = self._trained_step(batch, names)
        except torch.OutOfMemoryError as error:
            raise self._too_large(error) from error
        self._step_count += 1
        if self._averages is not None:
            self._averages.move(self._step_count)
        for name, kept in self._recorded.items():
            kept.append(values[name])
        for name in self._watched:
            if not math.isfinite(float(values[name])):
                raise NonFiniteStep(name)
        return {name: _plain(values[name]) for name in names}

    def evaluate(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Run the network on one batch ``[x, y]`` in validation mode, with the averaged weights where there are any."""
        self._train_mode(False)
        self._seed(0)
        with torch.no_grad(), self._autocast():
            x, y, _ = self._tensors(batch)
            results = self.network.results(x, y, is_training=False)
            return {name: _plain(self._value(name, results, y)) for name in names}

    def hyperparameters(self) -> Mapping[str, float]:
        """Return ``learning_rate``, and ``momentum`` where the optimizer has it."""
        return dict(self._hyperparameters)

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Set a hyperparameter from the next step on."""
        if name not in self._hyperparameters:
            raise UnknownNameError("hyperparameter", name, self._hyperparameters)
        self._hyperparameters[name] = float(value)
        key = {"learning_rate": "lr"}.get(name, name)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group[key] = float(value)

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
        if self.options.device.type == "cuda":
            torch.cuda.empty_cache()

    # ---- beyond the contract

    def summarise(self, batch: Any) -> bytes:
        """Return the images and histograms of the network of one batch, as a ``Summary`` message; empty for none."""
        if not self.network.has_shown_summaries:
            return b""
        self._train_mode(False)
        self._seed(0)
        with torch.no_grad(), self._autocast():
            x, y, _ = self._tensors(batch)
            return summary_of(self.network.results(x, y, is_training=False).summaries)

    def predict(self, x: np.ndarray, given: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
        """Return the outputs of inference for ``x: (N, …)``, as a batch has it; images (N, H, W, C)."""
        self._train_mode(False)
        self._seed(0)
        with torch.no_grad(), self._autocast():
            beside = {name: torch.from_numpy(np.asarray(each)) for name, each in (given or {}).items()}
            outputs = self.network.predict(self.network.samples(x), beside)
        return [_plain(channels_last(each)) for each in outputs]

    def start_averages(self) -> None:
        """Begin to average at the weights as they are now."""
        if self._averages is not None:
            self._train_mode(True)
            self._averages.start()

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

    def _trained(self, part: Sequence[nn.Parameter] | None, number: int) -> list[nn.Parameter]:
        chosen = self.network.module.parameters() if part is None else part
        found = [each for each in chosen if each.requires_grad]
        if not found:
            raise NetworkCodeError(
                "`loss` depends on at least one parameter that is trained.",
                received=f"loss {number + 1} without one",
                advice="Check what is frozen, and `vars`.",
                details={"file": self.network.path},
            )
        return found

    def _trained_step(self, batch: Any, names: Sequence[str]) -> dict[str, Any]:
        wanted = dict.fromkeys((*self._recorded, *names))
        pieces = self._request.gradient_accumulation_steps
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)
        if pieces == 1:
            values = self._backward(batch, 1, wanted)
        else:
            split = zip(*(np.array_split(np.asarray(part), pieces) for part in batch), strict=True)
            values = _joined([self._backward(list(piece), pieces, wanted) for piece in split])
        norm = self._apply("gradient_norm" in wanted)
        if norm is not None and "gradient_norm" in wanted:
            values["gradient_norm"] = norm
        if "learning_rate" in wanted:
            values["learning_rate"] = torch.tensor(self._hyperparameters["learning_rate"], dtype=torch.float64)
        return values

    def _backward(self, batch: Any, pieces: int, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Add the gradients of a batch, and return its values."""
        with self._autocast():
            x, y, second = self._tensors(batch)
            results = self._forward(x, y, is_training=True, step=self._step_count, second=second)
        losses = [
            self._scaled(each.value) / pieces if pieces > 1 else self._scaled(each.value) for each in results.losses
        ]
        if len(losses) == 1:
            self._need_gradient(losses[0], 0)
            losses[0].backward()
        else:
            gradients = [self._gradients(loss, number) for number, loss in enumerate(losses)]
            for part, found in zip(self._parts, gradients, strict=True):
                for parameter, gradient in zip(part, found, strict=True):
                    if gradient is not None:
                        parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        rest = [name for name in wanted if name not in ("gradient_norm", "learning_rate")]
        with torch.no_grad():
            return {name: self._value(name, results, y).detach() for name in rest}

    def _gradients(self, loss: torch.Tensor, number: int) -> Sequence[torch.Tensor | None]:
        self._need_gradient(loss, number)
        return torch.autograd.grad(loss, self._parts[number], retain_graph=True, allow_unused=True)

    def _need_gradient(self, loss: torch.Tensor, number: int) -> None:
        if not loss.requires_grad:
            raise NetworkCodeError(
                "`loss` depends on at least one parameter that is trained.",
                received=f"loss {number + 1} without a gradient",
                advice="Check what is frozen, `vars`, and that the loss is made from the output and not detached.",
                details={"file": self.network.path},
            )

    def _scaled(self, loss: torch.Tensor) -> torch.Tensor:
        return loss if self._scaler is None else self._scaler.scale(loss)

    def _apply(self, wants_norm: bool) -> torch.Tensor | None:
        """Take the steps of the optimizers; return the norm of the gradients where it is wanted."""
        norms: list[torch.Tensor] = []
        for optimizer, part, decayed in zip(self._optimizers, self._parts, self._decayed, strict=True):
            if self._scaler is not None:
                self._scaler.unscale_(optimizer)
            if self._gradient_hook is not None:
                self._hook(part)
            if self._added_decay:
                _add_decay(decayed, self._added_decay)
            if wants_norm or self._needs_norm:
                norms.append(_clip(part, self._request.gradient_clip))
            if self._scaler is None:
                optimizer.step()
            else:
                self._scaler.step(optimizer)
        if self._scaler is not None:
            self._scaler.update()
        return torch.stack(norms).sum() if norms else None

    def _hook(self, part: Sequence[nn.Parameter]) -> None:
        pairs = [(each.grad, each) for each in part if each.grad is not None]
        assert self._gradient_hook is not None
        kept = {id(parameter): gradient for gradient, parameter in self._gradient_hook(pairs) if gradient is not None}
        for parameter in part:
            parameter.grad = kept.get(id(parameter))

    def _tensors(self, batch: Any) -> tuple[torch.Tensor, torch.Tensor | None, Any]:
        network = self.network
        needed = 1 if network.target is None else 2
        if len(batch) < needed:
            raise ConfigurationError(
                f"A batch of this network is {'samples' if needed == 1 else 'samples and labels'}.",
                received=f"{len(batch)} component(s)",
                advice="Give it one array for each.",
            )
        y = None if network.target is None else network.labels(batch[1])
        if not self._request.mixes_labels or len(batch) < 4 or not self._is_training:
            return network.samples(batch[0]), y, None
        share = torch.from_numpy(np.asarray(batch[3], np.float32)).to(self.options.device)
        return network.samples(batch[0]), y, (network.labels(batch[2]), share)

    def _value(self, name: str, results: Results, y: torch.Tensor | None) -> torch.Tensor:
        if name == "cost":
            values = [each.value for each in results.losses]
            return values[0] if len(values) == 1 else torch.stack(values).sum()
        if name in results.scalars:
            return results.scalars[name]
        if name.startswith("output"):
            return channels_last(results.outputs[int(name.removeprefix("output").lstrip("_") or 0)])
        if name == "labels" and y is not None:
            return y[..., None] if y.ndim == 3 else channels_last(y)
        if name == "probabilities":
            return results.outputs[0].float().softmax(1)
        if name in ("incorrect_vector", "error") and y is not None:
            wrong = (results.outputs[0].argmax(1) != y).float()
            return wrong.mean() if name == "error" else wrong
        raise UnknownNameError("value of this program", name, self.names())

    def _train_mode(self, wanted: bool) -> None:
        if wanted == self._is_training:
            return
        self._is_training = wanted
        self.network.module.train(wanted)
        if self._averages is not None:
            self._averages.exchange()

    def _autocast(self) -> Any:
        precision = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self._request.precision)
        return torch.autocast(self.options.device.type, precision or torch.bfloat16, enabled=precision is not None)

    def _seed(self, step: int) -> None:
        """Let everything that is drawn from now on depend on the seed and the number of the step alone."""
        seed = _scattered(self._request.seed * 0x9E3779B97F4A7C15 + step + 1)
        torch.default_generator.manual_seed(seed)
        if self.options.device.type == "cuda":
            torch.cuda.default_generators[self.options.device.index or 0].manual_seed(seed)

    def _too_large(self, error: BaseException) -> TrainingError:
        return TrainingError(
            f"A step must fit into the memory of {self.options.device}.",
            received=str(error).splitlines()[0],
            advice="Make `batch_size` or the images smaller, raise `gradient_accumulation_steps`, or use bf16.",
        )


def _clip(part: Sequence[nn.Parameter], limit: float | None) -> torch.Tensor:
    """Return the norm of all gradients together, and make them shorter where it is above the limit."""
    gradients = [each.grad for each in part if each.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if limit is not None:
        share = limit / norm.clamp(min=limit)
        for each in gradients:
            each.mul_(share)
    return norm


def _add_decay(parameters: Sequence[nn.Parameter], factor: float) -> None:
    """Add ``factor`` times each parameter to its gradient, all of them in one call."""
    pairs = [(each.grad, each.detach()) for each in parameters if each.grad is not None]
    if pairs:
        gradients, weights = zip(*pairs, strict=True)
        torch._foreach_add_(gradients, weights, alpha=factor)  # pyright: ignore[reportPrivateImportUsage]


def _joined(pieces: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Return the values of a batch that was computed in parts: means of numbers, rows of arrays one after another."""
    found = {}
    for name in pieces[0]:
        values = [each[name] for each in pieces]
        found[name] = torch.stack(values).mean() if values[0].ndim == 0 else torch.cat(values)
    return found


def _plain(value: torch.Tensor) -> Any:
    """Return a value as a NumPy array or number of its own memory."""
    array = value.detach().float() if value.dtype in (torch.bfloat16, torch.float16) else value.detach()
    found = array.cpu().numpy()
    return found[()] if found.ndim == 0 else np.array(found)


def _scattered(number: int) -> int:
    """Return 64 bits that look random, other ones for each number (splitmix64: Steele et al., OOPSLA 2014)."""
    mixed = number & _MASK
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
    return mixed ^ (mixed >> 31)
