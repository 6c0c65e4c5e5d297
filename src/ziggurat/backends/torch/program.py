"""PyTorch program: a network with its optimizers, behind the methods that the loop calls."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from ziggurat.backends.torch.arithmetic import torch_arithmetic
from ziggurat.backends.torch.batch_sums import Weight
from ziggurat.backends.torch.feeds import make_feed
from ziggurat.backends.torch.frozen_features import frozen_features, sample_keys
from ziggurat.backends.torch.linear_head import head_inputs, linear_head
from ziggurat.backends.torch.network import Network, Results, channels_last
from ziggurat.backends.torch.network_file import FILE_NAME
from ziggurat.backends.torch.optimizers import first_momentum, make_optimizer
from ziggurat.backends.torch.rates import StageRates
from ziggurat.backends.torch.steps import StepOptions, StepProgram, plain
from ziggurat.backends.torch.summaries import summary_of
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.feed import BatchCycle, Feed
from ziggurat.engine.fine_tuning import BACKBONE_RATE
from ziggurat.errors import ConfigurationError, NetworkCodeError, UnknownNameError

__all__ = ["ProgramOptions", "TorchProgram"]


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """What only this backend knows of a request.

    Args:
        device: where it computes.
        channels_last: whether images and the weights of convolutions have their channels last in memory.
        compile: whether the network is compiled by ``torch.compile``.
        prefetch_batches: batches that a thread makes ahead; 0 for none.
        intra_threads: of the processor; 0 for PyTorch's choice.
        sync_batch_norm: of several devices, whether batch norms see the rows of all.
        device_timeout_s: of several devices, how long one waits for the others in a step.
    """

    device: torch.device
    channels_last: bool = True
    compile: bool = False
    prefetch_batches: int = 0
    intra_threads: int = 0
    sync_batch_norm: bool = False
    device_timeout_s: float = 300.0


_SHARES = ("accuracy", "error")
"""Numbers that are shares of the rows of a batch."""


class TorchProgram(StepProgram):
    """Trains a network: one process, one device.

    Args:
        network: the user's network.
        request: its optimizer, precision and the like.
        options: the rest.
        is_frozen: called with each parameter's name in a checkpoint; True for one that is not to be trained.

    Raises:
        NetworkCodeError: where a loss has nothing to train.
        ConfigurationError: where a network that is fine-tuned has no head, or no backbone.
    """

    _process_threads = 0
    """Of this process while it trains; 0 for those that it has."""

    def __init__(self, network: Network, request: ProgramRequest, options: ProgramOptions, is_frozen: Any) -> None:
        self.network = network
        self.options = options
        self._request = request
        module = network.module
        for name, parameter in module.named_parameters():
            if is_frozen(f"model/{name}"):
                parameter.requires_grad_(False)
        network.to(options.device)
        network.is_contiguous = network.is_contiguous or not options.channels_last
        network.keep_channels_last()
        parts = [self._trained(part, number) for number, part in enumerate(network.parts)]
        decoupled = request.weight_decay
        optimizers = [
            make_optimizer(request.optimizer, request.optimizer_options, part, request.learning_rate, decoupled)
            for part in parts
        ]
        self._added_decay = 0.0 if request.optimizer == "adamw" else request.weight_decay
        self._decayed = [[each for each in part if each.ndim > 1] for part in parts]
        self._hyperparameters = {"learning_rate": float(request.learning_rate)}
        momentum = first_momentum(request.optimizer, request.optimizer_options)
        if momentum is not None:
            self._hyperparameters["momentum"] = momentum
        self._rates = None if request.fine_tuning is None else StageRates(request.fine_tuning, module, optimizers)
        if self._rates is not None:
            self._hyperparameters[BACKBONE_RATE] = 1.0
            self._rates.set(request.learning_rate, 1.0)
        self._forward = _compiled(network) if options.compile else network.results
        # A network of a file may draw at random; one with a published head gives the same of a sample each time.
        tuned = request.fine_tuning
        self._features = None if tuned is None or options.compile else frozen_features(network, tuned.head)
        self._keys: list[bytes] | None = None
        self._gradient_hook = getattr(module, "gradientUpdate", None)
        steps = StepOptions(
            device=options.device,
            seed=request.seed,
            precision=request.precision,
            accumulation=request.gradient_accumulation_steps,
            gradient_clip=request.gradient_clip,
            ema_decay=request.ema_decay,
        )
        super().__init__(module, optimizers, parts, steps)
        self._weight_scales = network.weight_scales

    # ---- the contract

    def arithmetic(self) -> dict[str, str | int | bool]:
        """Return what decides the last bits: PyTorch, its instructions, threads, devices and switches."""
        place = self._request.place
        return torch_arithmetic(
            self.options.device,
            count=max(1, len(self._request.devices)) if place is None else place.size,
            precision=self._request.precision,
            channels_last=not self.network.is_contiguous,
            is_compiled=self.options.compile,
            threads=self._process_threads,
        )

    def names(self) -> Sequence[str]:
        """Return the values that can be fetched: those of training steps; evaluation has most of them."""
        return (*self.evaluation_names(), "gradient_norm", "learning_rate")

    def has_rival_losses(self) -> bool:
        """Return whether the network has several losses, each with parameters of its own."""
        return sum(part is not None for part in self.network.parts) > 1

    def evaluation_names(self) -> Sequence[str]:
        """Return the values that ``evaluate`` can give."""
        outputs = ["output", *(f"output_{number}" for number in range(1, len(self.network.output_shapes)))]
        scored = ["incorrect_vector", "error", "probabilities"] if self.network.gives_class_scores else []
        labels = [] if self.network.target is None else ["labels"]
        return ("cost", *self.network.scalar_names, *outputs, *scored, *labels)

    def numbers(self) -> Sequence[str]:
        """Return the values that are single numbers."""
        return ("cost", "error", *self.network.scalar_names)

    def summary_names(self) -> Sequence[str]:
        """Return the single numbers that every job logs: the cost, and what the user shows."""
        error = ["error"] if self.network.gives_class_scores else []
        return ["cost", *error, *self.network.scalar_names]

    def connect(self, batches: BatchCycle) -> Feed:
        """Make each batch when its step needs it, or some of them ahead in a thread."""
        return make_feed(
            batches, self.options.device, self.options.prefetch_batches, staged=self._computes_whole_batches
        )

    def hyperparameters(self) -> Mapping[str, float]:
        """Return ``learning_rate``, ``momentum`` where the optimizer has it, ``backbone_rate`` where it fine-tunes."""
        return dict(self._hyperparameters)

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Set a hyperparameter from the next step on."""
        if name not in self._hyperparameters:
            raise UnknownNameError("hyperparameter", name, self._hyperparameters)
        self._hyperparameters[name] = float(value)
        if self._rates is not None and name in ("learning_rate", BACKBONE_RATE):
            if self._rates.set(self._hyperparameters["learning_rate"], self._hyperparameters[BACKBONE_RATE]):
                self._set_layers(is_training=self._is_training)
                self._forget_features()
            return
        key = {"learning_rate": "lr"}.get(name, name)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group[key] = float(value)

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
        return [plain(channels_last(each)) for each in outputs]

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return the inputs of the head of samples ``x: (N, …)``, (N, D) float32, computed as in inference.

        Raises:
            ConfigurationError: if the head is not one layer that is computed once, from one vector for each sample.
        """
        network = self.network
        self._train_mode(False)
        self._seed(0)
        with torch.no_grad(), self._autocast():
            samples = network.samples(x)
            return head_inputs(
                network.module, self._request.fine_tuning, lambda: network.predict(samples), len(samples)
            )

    def head_names(self) -> tuple[str, str]:
        """Return the names of weights and bias of the head in ``state()``.

        Raises:
            ConfigurationError: if the output of the network is not that of one fully connected layer with a bias.
        """
        network = self.network
        self._train_mode(False)
        self._seed(0)
        with torch.no_grad():
            return linear_head(network.module, self._request.fine_tuning, lambda: network.predict(network.zeros()))

    def set_head(self, weights: np.ndarray, bias: np.ndarray) -> None:
        """Replace the weights of the head by those of a linear classifier, (D, K) and (K,).

        Raises:
            ConfigurationError: if the output of the network is not that of one fully connected layer with a bias.
        """
        names = self.head_names()
        self.load_state({**self.state(), **dict(zip(names, (weights.T, bias), strict=True))})
        self.start_averages()

    def start_averages(self) -> None:
        """Begin to average at the weights as they are now."""
        if self._averages is not None:
            self._train_mode(True)
            self._averages.start()

    def keeps_rows(self, name: str) -> bool:
        """Return whether the step under way keeps the rows of a number whose mean is made by ``recorded()``."""
        is_asked = self._asked or name in self._watched
        return not is_asked and self._computes_whole_batches and self._steps.accumulation == 1

    # ---- inside

    def _means_of_rows(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        return super()._means_of_rows(name, rows if name == "accuracy" else ~rows)

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``state()`` gave; all or nothing."""
        super().load_state(state)
        self._forget_features()

    def _forget_features(self) -> None:
        if self._features is not None:
            self._features.clear()

    def _gradients(self, batch: Any, wanted: Sequence[str]) -> dict[str, torch.Tensor]:
        features = self._features
        keeps = features is not None and features.is_of_use and self._is_head_alone and self._steps.accumulation == 1
        self._keys = sample_keys(batch[0]) if keeps and batch else None
        return super()._gradients(batch, wanted)

    @property
    def _computes_whole_batches(self) -> bool:
        """Whether this process computes all rows of a batch."""
        return True

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

    def _set_layers(self, *, is_training: bool) -> None:
        self.module.train(is_training and not self._is_head_alone)

    @property
    def _is_head_alone(self) -> bool:
        """Whether steps train the head of the network alone: it computes as in validation then."""
        return self._rates is not None and self._rates.is_frozen

    def _outcome(self, batch: Any, *, is_training: bool) -> _NetworkOutcome:
        x, y, second = self._tensors(batch)
        if not is_training:
            return _NetworkOutcome(self, self.network.results(x, y, is_training=False), y)
        is_whole = not self._is_head_alone
        forward = partial(self._forward, x, y, is_training=is_whole, step=self._step_count, second=second)
        keys, self._keys = self._keys, None
        if keys is None or self._features is None or second is not None:
            results = forward()
        else:
            results = self._features.results(keys, x, y, forward)
        for number, loss in enumerate(results.losses):
            if not loss.value.requires_grad and self._learns(number):
                raise NetworkCodeError(
                    "`loss` depends on at least one parameter that is trained.",
                    received=f"loss {number + 1} without a gradient",
                    advice="Check what is frozen, `vars`, and that the loss is made from the output and not detached.",
                    details={"file": self.network.path},
                )
        return _NetworkOutcome(self, results, y)

    def _change_gradients(self, number: int) -> None:
        if self._gradient_hook is not None:
            self._hook(self._parts[number])
        if self._added_decay:
            _add_decay(self._decayed[number], self._added_decay)

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
        share = torch.as_tensor(batch[3], dtype=torch.float32, device=self.options.device)
        return network.samples(batch[0]), y, (network.labels(batch[2]), share)


class _NetworkOutcome:
    """What a network file gave of a batch.

    Args:
        program: whose step it is.
        results: of the network.
        y: the labels.
    """

    def __init__(self, program: TorchProgram, results: Results, y: torch.Tensor | None) -> None:
        self._program = program
        self._results = results
        self._y = y

    @property
    def losses(self) -> list[torch.Tensor]:
        return [each.value for each in self._results.losses]

    @property
    def weights(self) -> list[Weight | None]:
        return [each.weight for each in self._results.losses]

    def value(self, name: str) -> torch.Tensor:
        results, y = self._results, self._y
        if name == "cost":
            values = self.losses
            return values[0] if len(values) == 1 else torch.stack(values).sum()
        right = results.is_right
        if right is not None and name in _SHARES:
            # Of most steps nothing but a point of a curve is needed, much later: the mean of all of them at once.
            if self._program.keeps_rows(name):
                return right
            return (right if name == "accuracy" else ~right).mean(dtype=torch.float32)
        if name in results.scalars:
            return results.scalars[name]
        if name.startswith("output"):
            return channels_last(results.outputs[int(name.removeprefix("output").lstrip("_") or 0)])
        if name == "labels" and y is not None:
            return y[..., None] if y.ndim == 3 else channels_last(y)
        if name == "probabilities":
            return results.outputs[0].float().softmax(1)
        if name in ("incorrect_vector", "error") and y is not None:
            wrong = results.outputs[0].argmax(1) != y
            return wrong.mean(dtype=torch.float32) if name == "error" else wrong.float()
        raise UnknownNameError("value of this program", name, self._program.names())


def _compiled(network: Network) -> Callable[..., Results]:
    """Return the computation of results, which is compiled in the first step.

    Raises:
        ConfigurationError: where there is no compiler, without which that step would fail.
    """
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ConfigurationError(
            f"There is no C++ compiler `{compiler}` on the path, which `compile` needs.",
            advice="Install g++ (on Debian and Ubuntu the package `g++`), name another one in the variable CXX, or "
            "leave `compile` off.",
        )
    _give_module(type(network.module))
    return torch.compile(network.results)


def _give_module(kind: type) -> None:
    """Let the compiler import the module of a user's class: it looks up the names of the file there."""
    for owner in kind.__mro__:
        for method in vars(owner).values():
            names = getattr(method, "__globals__", {})
            if names.get("__name__") == FILE_NAME:
                module = ModuleType(FILE_NAME)
                module.__dict__.update(names)
                sys.modules[FILE_NAME] = module
                return


def _add_decay(parameters: Sequence[nn.Parameter], factor: float) -> None:
    """Add ``factor`` times each parameter to its gradient, all of them in one call."""
    pairs = [(each.grad, each.detach()) for each in parameters if each.grad is not None]
    if pairs:
        gradients, weights = zip(*pairs, strict=True)
        torch._foreach_add_(gradients, weights, alpha=factor)  # pyright: ignore[reportPrivateImportUsage]
