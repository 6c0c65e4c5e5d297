"""NumPy backend: a small network that really trains, so that nine tests in ten need no framework."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from ziggurat.engine.arithmetic import blas_threads
from ziggurat.engine.backend import ProgramRequest, single_arrays
from ziggurat.engine.feed import BatchCycle, DirectFeed, Feed
from ziggurat.engine.program import Program
from ziggurat.errors import CheckpointError, ConfigurationError, UnknownNameError
from ziggurat.tasks.arrays import ArraySpec

__all__ = ["NullBackend", "NullOptions", "NullProgram"]

_VALUES: Final = (
    "cost",
    "accuracy",
    "error",
    "incorrect_vector",
    "probabilities",
    "logits",
    "labels",
    "gradient_norm",
)

_NUMBER_VALUES: Final = ("cost", "output", "labels", "gradient_norm")
"""Values of a network that learns numbers."""

_LINEAR: Final = ("linear", "table_linear")
_NETWORKS: Final = ("", "mlp", "table_mlp", *_LINEAR)


@dataclass(frozen=True)
class NullOptions:
    """What the network is made of.

    Args:
        hidden: units of the one hidden layer; 0 for a linear network.
        dropout: share of hidden units left out in training, in [0, 1).
        learning_rate: the first learning rate.
        momentum: of stochastic gradient descent, in [0, 1).
        weight_decay: factor of the squared weights in the cost, halved.
        seed: of the first weights and of dropout.
        scale: factor of floating-point inputs; bytes are divided by 255.
    """

    hidden: int = 32
    dropout: float = 0.0
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    seed: int = 0
    scale: float = 1.0

    def __post_init__(self) -> None:
        rules = (
            ("hidden", self.hidden >= 0, "at least 0"),
            ("dropout", 0 <= self.dropout < 1, "in [0, 1)"),
            ("learning_rate", self.learning_rate >= 0, "at least 0"),
            ("momentum", 0 <= self.momentum < 1, "in [0, 1)"),
            ("weight_decay", self.weight_decay >= 0, "at least 0"),
        )
        for name, holds, rule in rules:
            if not holds:
                raise ConfigurationError(
                    f"`{name}` must be {rule}.", received=getattr(self, name), advice=f"Set `{name}` to such a number."
                )


class NullProgram:
    """One hidden layer with ReLU, softmax cross-entropy, gradient descent with momentum; float32 throughout.

    A batch is ``[x, y]`` with ``x: (N, …) uint8`` (divided by 255) or float, and ``y: (N,)`` integer class numbers. A
    network that learns numbers has ``y: (N, outputs)`` float, and the mean squared error in place of the cross-entropy.

    Args:
        inputs: numbers in one sample.
        outputs: number of classes, or of numbers to learn.
        options: the rest.
        learns_numbers: whether it learns numbers, not classes.
    """

    def __init__(
        self, inputs: int, outputs: int, options: NullOptions | None = None, *, learns_numbers: bool = False
    ) -> None:
        self.options = options or NullOptions()
        self._inputs = inputs
        self._outputs = outputs
        self._learns_numbers = learns_numbers
        self._random = np.random.Generator(np.random.PCG64(self.options.seed))
        widths = [inputs, self.options.hidden, outputs] if self.options.hidden else [inputs, outputs]
        self._weights: dict[str, np.ndarray] = {}
        for number, (fan_in, fan_out) in enumerate(itertools.pairwise(widths), start=1):
            # He et al., "Delving deep into rectifiers" (ICCV 2015), eq. 10.
            spread = math.sqrt(2.0 / fan_in)
            self._weights[f"layer{number}/W"] = self._random.normal(0, spread, (fan_in, fan_out)).astype(np.float32)
            self._weights[f"layer{number}/b"] = np.zeros(fan_out, np.float32)
        self._slots = {name: np.zeros_like(weight) for name, weight in self._weights.items()}
        self._hyperparameters = {
            "learning_rate": float(self.options.learning_rate),
            "momentum": float(self.options.momentum),
        }

    # ---- the contract

    def names(self) -> Sequence[str]:
        """Return the values that can be fetched: per batch numbers, and arrays with one row a sample."""
        return _NUMBER_VALUES if self._learns_numbers else _VALUES

    def declare(self, names: Sequence[str]) -> None:
        """Check the names; nothing has to be built for them."""
        known = self.names()
        for name in names:
            if name not in known:
                raise UnknownNameError("value of this program", name, known)

    def connect(self, batches: BatchCycle) -> Feed:
        """Make each batch when its step needs it."""
        return DirectFeed(batches)

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Train on one batch ``[x, y]``."""
        x, y = self._prepared(batch)
        hidden, kept, output = self._forward(x, training=True)
        predicted = output if self._learns_numbers else _softmax(output)
        gradients = self._gradients(x, hidden, kept, self._slope(predicted, y))
        self._descend(gradients)
        return self._values(names, y, output, predicted, gradients) if names else {}

    def evaluate(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Predict one batch ``[x, y]`` without dropout; the weights stay."""
        x, y = self._prepared(batch)
        output = self._forward(x, training=False)[2]
        return self._values(names, y, output, output if self._learns_numbers else _softmax(output), {})

    def hyperparameters(self) -> Mapping[str, float]:
        """Return ``learning_rate`` and ``momentum``."""
        return dict(self._hyperparameters)

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Set ``learning_rate`` or ``momentum`` from the next step on."""
        if name not in self._hyperparameters:
            raise UnknownNameError("hyperparameter", name, self._hyperparameters)
        self._hyperparameters[name] = float(value)

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of weights, momentum slots, hyperparameters and the generator of dropout."""
        arrays = {name: weight.copy() for name, weight in self._weights.items()}
        arrays |= {f"momentum/{name}": slot.copy() for name, slot in self._slots.items()}
        arrays |= {f"hyperparameter/{name}": np.array(value) for name, value in self._hyperparameters.items()}
        arrays["random/pcg64"] = _generator_words(self._random)
        return arrays

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``state()`` gave; all or nothing.

        Raises:
            CheckpointError: where names or shapes are of another network.
        """
        own = self.state()
        problems = [f"{name} is missing" for name in own if name not in state]
        problems += [f"{name} is unexpected" for name in state if name not in own]
        problems += [
            f"{name} has shape {state[name].shape} instead of {own[name].shape}"
            for name in own
            if name in state and state[name].shape != own[name].shape
        ]
        if problems:
            raise CheckpointError(
                "A checkpoint is loaded by the network that it was saved from.",
                received="; ".join(problems),
                advice="Give the network the sizes it had.",
                details={"problems": problems},
            )
        for name in self._weights:
            self._weights[name][...] = state[name]
            self._slots[name][...] = state[f"momentum/{name}"]
        for name in self._hyperparameters:
            self._hyperparameters[name] = float(state[f"hyperparameter/{name}"])
        _load_generator_words(self._random, state["random/pcg64"])

    def arithmetic(self) -> dict[str, str | int | bool]:
        """Return what decides the last bits: NumPy's BLAS and its threads."""
        return {"backend": "null", "blas_threads": blas_threads(os.environ), "devices": "cpu", "precision": "float32"}

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    # ---- inside

    @property
    def _decay_cost(self) -> float:
        if not self.options.weight_decay:
            return 0.0
        matrices = (weight for name, weight in self._weights.items() if name.endswith("/W"))
        return 0.5 * self.options.weight_decay * float(sum(np.sum(matrix * matrix) for matrix in matrices))

    def _prepared(self, batch: Any) -> tuple[np.ndarray, np.ndarray]:
        x, y = batch[0], np.asarray(batch[1])
        scale = np.float32(1 / 255 if x.dtype == np.uint8 else self.options.scale)
        x = x.reshape(len(x), -1).astype(np.float32) * scale
        if x.shape[1] != self._inputs:
            raise ConfigurationError(
                f"A sample of this network has {self._inputs} numbers.",
                received=f"{x.shape[1]} (batch of shape {batch[0].shape})",
                advice="Give it data of the size it was made for.",
            )
        if self._learns_numbers:
            if y.size != len(x) * self._outputs:
                raise ConfigurationError(
                    f"A label of this network has {self._outputs} numbers.",
                    received=f"{len(x)} samples with labels of shape {y.shape}",
                    advice="Give it the labels that it was made for.",
                )
            y = y.reshape(len(x), self._outputs).astype(np.float32)
        return x, y

    def _forward(self, x: np.ndarray, *, training: bool) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        weights = self._weights
        if not self.options.hidden:
            return x, None, x @ weights["layer1/W"] + weights["layer1/b"]
        hidden = np.maximum(x @ weights["layer1/W"] + weights["layer1/b"], 0)
        kept = None
        if training and self.options.dropout:
            share = np.float32(1 - self.options.dropout)
            kept = (self._random.random(hidden.shape, dtype=np.float32) < share) / share
            hidden = hidden * kept
        return hidden, kept, hidden @ weights["layer2/W"] + weights["layer2/b"]

    def _slope(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the gradient of the cost by the output of the last layer."""
        if self._learns_numbers:
            return (predicted - y) * np.float32(2 / y.size)
        slope = predicted.copy()
        slope[np.arange(len(y)), y] -= 1
        slope /= np.float32(len(y))
        return slope

    def _gradients(
        self, x: np.ndarray, hidden: np.ndarray, kept: np.ndarray | None, slope: np.ndarray
    ) -> dict[str, np.ndarray]:
        last = "layer2" if self.options.hidden else "layer1"
        gradients = {f"{last}/W": hidden.T @ slope, f"{last}/b": slope.sum(0)}
        if self.options.hidden:
            below = (slope @ self._weights["layer2/W"].T) * (hidden > 0)
            if kept is not None:
                below *= kept
            gradients |= {"layer1/W": x.T @ below, "layer1/b": below.sum(0)}
        for name in gradients if self.options.weight_decay else ():
            if name.endswith("/W"):
                gradients[name] += np.float32(self.options.weight_decay) * self._weights[name]
        return gradients

    def _descend(self, gradients: Mapping[str, np.ndarray]) -> None:
        rate = np.float32(self._hyperparameters["learning_rate"])
        momentum = np.float32(self._hyperparameters["momentum"])
        for name, gradient in gradients.items():
            slot = self._slots[name]
            slot *= momentum
            slot -= rate * gradient
            self._weights[name] += slot

    def _values(
        self,
        names: Sequence[str],
        y: np.ndarray,
        output: np.ndarray,
        predicted: np.ndarray,
        gradients: Mapping[str, np.ndarray],
    ) -> dict[str, Any]:
        makers: dict[str, Callable[[], Any]] = {
            "output": lambda: output,
            "labels": lambda: y,
            "gradient_norm": lambda: math.sqrt(sum(float(np.vdot(part, part)) for part in gradients.values())),
        }
        if self._learns_numbers:
            makers["cost"] = lambda: float(np.mean(np.square(output - y))) + self._decay_cost
        else:
            makers |= _class_makers(y, output, predicted, self._decay_cost)
        return {name: makers[name]() for name in names}


def _class_makers(
    y: np.ndarray, logits: np.ndarray, probabilities: np.ndarray, decay_cost: float
) -> dict[str, Callable[[], Any]]:
    wrong = logits.argmax(1) != y
    return {
        "cost": lambda: float(-np.log(np.maximum(probabilities[np.arange(len(y)), y], 1e-30)).mean()) + decay_cost,
        "accuracy": lambda: 1.0 - float(wrong.mean()),
        "error": lambda: float(wrong.mean()),
        "incorrect_vector": lambda: wrong.astype(np.float32),
        "probabilities": lambda: probabilities,
        "logits": lambda: logits,
    }


def _softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def _generator_words(generator: np.random.Generator) -> np.ndarray:
    """Return the state of a PCG64 generator as six 64-bit words."""
    state: Any = generator.bit_generator.state
    inner, mask = state["state"], (1 << 64) - 1
    words = [inner["state"] & mask, inner["state"] >> 64, inner["inc"] & mask, inner["inc"] >> 64]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def _load_generator_words(generator: np.random.Generator, words: np.ndarray) -> None:
    low, high, inc_low, inc_high, has_uint32, uinteger = (int(word) for word in words)
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": inc_low | inc_high << 64},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


class NullBackend:
    """Builds ``NullProgram``: gradient descent on the processor, one tower, float32."""

    name = "null"

    def why_not(self) -> str:
        """Return an empty string: NumPy is always there."""
        return ""

    def build(self, request: ProgramRequest) -> Program:
        """Return a network for the request: a classifier for class numbers, else a regression.

        Raises:
            ConfigurationError: where the request asks for what this backend does not do.
        """
        _refuse_unsupported(request)
        known = {part.name for part in fields(NullOptions)}
        optimizer = {name: value for name, value in request.optimizer_options.items() if name != "nesterov"}
        given = {**optimizer, **request.options}
        for name in given:
            if name not in known:
                raise UnknownNameError("option of the null backend", name, known)
        x, y = single_arrays(request)
        assert y is not None
        chosen: dict[str, Any] = {
            "learning_rate": request.learning_rate,
            "weight_decay": request.weight_decay,
            "seed": request.seed,
            "scale": 1 / 255 if len(x.shape) == 3 else 1.0,  # a job's images reach from 0 to 255
            **given,
        }
        if request.network in _LINEAR:
            chosen["hidden"] = 0
        if request.optimizer == "sgd":
            chosen.setdefault("momentum", 0.0)
        inputs, options = math.prod(x.shape), NullOptions(**chosen)
        if y.is_class_number:
            assert y.classes is not None
            return NullProgram(inputs, y.classes, options)
        return NullProgram(inputs, math.prod(y.shape), options, learns_numbers=True)


def _has_classes(target: ArraySpec) -> bool:
    return target.is_class_number and target.classes is not None


def _has_numbers(target: ArraySpec) -> bool:
    is_row = len(target.shape) <= 1 and np.issubdtype(np.dtype(target.dtype), np.floating)
    return is_row and target.classes is None  # several labels at once would need another cost


def _refuse_unsupported(request: ProgramRequest) -> None:
    target = single_arrays(request)[1]
    rules = (
        ("network", request.network in _NETWORKS, f"one of {', '.join(_NETWORKS[1:])}", request.network),
        ("optimizer", request.optimizer in ("sgd", "momentum"), "`sgd` or `momentum`", request.optimizer),
        ("nesterov", not request.optimizer_options.get("nesterov"), "false", True),
        ("pretrained", request.pretrained is None, "left out", "one"),
        ("fine_tuning", request.fine_tuning is None, "left out", "rates of backbone and head"),
        ("freeze", not request.freeze, "empty", ", ".join(request.freeze)),
        ("class_weights", not request.class_weights, "empty", list(request.class_weights)),
        (
            "targets",
            target is not None and (_has_classes(target) or _has_numbers(target)),
            "class numbers of known classes, or a row of numbers",
            "none" if target is None else f"{target.dtype} of shape {target.shape}",
        ),
        ("precision", request.precision == "float32", "`float32`", request.precision),
        ("gradient_clip", request.gradient_clip is None, "left out", request.gradient_clip),
        (
            "gradient_accumulation_steps",
            request.gradient_accumulation_steps == 1,
            "1",
            request.gradient_accumulation_steps,
        ),
        ("ema_decay", request.ema_decay is None, "left out", request.ema_decay),
        ("threads", not request.threads, "left out: NumPy chooses them when it is loaded", request.threads),
        ("devices", len(request.devices) <= 1, "at most one", ", ".join(request.devices)),
    )
    for name, holds, rule, received in rules:
        if not holds:
            raise ConfigurationError(
                f"With the null backend, `{name}` must be {rule}.",
                received=received,
                advice="Change it, or choose a backend with a framework behind it.",
            )
