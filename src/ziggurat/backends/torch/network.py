"""A user's network as a module, and what it gives of a batch: outputs, losses, and numbers to show.

Both forms of ``UserModel`` meet here, a ``Tower`` and a plain ``nn.Module``; training, evaluation, export and
debugging see one kind of object.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from ziggurat.backends.torch import digits
from ziggurat.backends.torch.batch_sums import Weight, WeightScale, divisors_with_gradients, noting_weights
from ziggurat.backends.torch.network_file import load_network, users_errors
from ziggurat.backends.torch.tower import Tower, as_tensor
from ziggurat.engine.backend import ArraySpec, ProgramRequest, single_arrays
from ziggurat.errors import ConfigurationError, NetworkCodeError, UnknownNameError
from ziggurat.zoo import network_path

__all__ = [
    "MODEL",
    "Loss",
    "Network",
    "Results",
    "channels_first",
    "channels_last",
    "make_network",
    "source_of",
]

MODEL: Final = "model/"
"""What stands before the names of weights in a checkpoint, as on every backend."""

_PROBE_SEED: Final = 0
_SMALLEST_SCALE: Final = 1e-6
_VIEW_ERROR: Final = "view size is not compatible"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loss:
    """One thing that is minimized.

    Args:
        value: scalar tensor.
        variables: parameters that it is minimized over; None for all that are trained.
        weight: what it was divided by; None for the number of samples.
    """

    value: torch.Tensor
    variables: Sequence[nn.Parameter] | None = None
    weight: Weight | None = None


@dataclass
class Results:
    """What a network gives of a batch.

    Args:
        outputs: one tensor or more.
        losses: what is minimized; empty for inference.
        scalars: name → scalar tensor.
        summaries: what is shown beside curves.
        is_right: (N) bool, whether the largest logit of a sample is that of its class, in place of the scalar
            ``accuracy``: in a training step of a network that shows no numbers of its own. None elsewhere.
    """

    outputs: list[torch.Tensor]
    losses: list[Loss] = field(default_factory=list)
    scalars: dict[str, torch.Tensor] = field(default_factory=dict)
    summaries: list[digits.Summary] = field(default_factory=list)
    is_right: torch.Tensor | None = None


def channels_first(tensor: torch.Tensor) -> torch.Tensor:
    """Return (N, H, W, C) as (N, C, H, W), without a copy: in memory the channels stay last."""
    return tensor.permute(0, 3, 1, 2)


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """Return (N, C, H, W) as (N, H, W, C), and any other rank as it is."""
    return tensor.permute(0, 2, 3, 1) if tensor.ndim == 4 else tensor


class Network:
    """A user's network with its layers, on a device.

    Args:
        kind: the user's class.
        path: its file, for errors.
        source: what it gets of one sample.
        target: what it learns to give for one; None where it learns from its input alone.
        pretrained: whether the job starts from a pretrained model, so that ``fineTuneHook`` is called.
        class_weights: factor of each class in the loss; empty for equal ones.

    Attributes:
        module: the user's object.
        device: where its parameters are.
        scalar_names: numbers that it shows.
        output_shapes: of one sample's outputs, as PyTorch has them.
        gives_class_scores: whether the first output holds one score a class.
        is_contiguous: whether images have to be contiguous in memory as (N, C, H, W): the network calls ``view`` on
            maps. Else their channels may be last.
        parts: parameters of each loss; None for all that are trained.
        weight_scales: of each loss; None for a mean over samples.

    Raises:
        NetworkCodeError: where the user's code fails; names file and line.
    """

    def __init__(
        self,
        kind: type[nn.Module],
        path: str,
        source: ArraySpec,
        target: ArraySpec | None = None,
        *,
        pretrained: bool = False,
        class_weights: Sequence[float] = (),
    ) -> None:
        self.path = path
        self._users_errors = users_errors(path)
        self.source = source
        self.target = target
        self.has_shown_summaries = False
        self._pretrained = pretrained
        self._class_weights = as_tensor(class_weights) if class_weights else None
        with users_errors(path):
            self.module = self._made(kind)
        first = next(self.module.parameters(), None)
        self.device = torch.device("cpu") if first is None else first.device
        self.scalar_names: list[str] = []
        self._has_usual_accuracy = False
        self.output_shapes: list[tuple[int, ...]] = []
        self.gives_class_scores = False
        self.is_contiguous = False
        self.parts: list[Sequence[nn.Parameter] | None] = [None]
        self.weight_scales: list[WeightScale | None] = [None]
        self._terms: list[Sequence[int]] = []
        try:
            self._probe()
        except NetworkCodeError as error:
            if _VIEW_ERROR not in str(error):
                raise
            self.is_contiguous = True
            self._probe()
            _LOG.info("`%s` calls `view` on maps: its images are kept contiguous, and `channels_last` is off.", path)

    # ---- batches

    @property
    def classes(self) -> int | None:
        """Number of classes of the target; None where it has none."""
        return None if self.target is None else self.target.classes

    def to(self, device: torch.device) -> None:
        """Move the layers to a device; batches follow them."""
        self.module.to(device)
        self.device = device

    def samples(self, array: np.ndarray | torch.Tensor) -> torch.Tensor:
        """Return a batch of samples as the network takes it, on its device; images (N, C, H, W)."""
        return self.laid_out(self._on_device(array, self.source))

    def labels(self, array: np.ndarray | torch.Tensor | None) -> torch.Tensor | None:
        """Return a batch of labels as the network takes them; None where there are none to learn."""
        return None if array is None or self.target is None else self.laid_out(self._on_device(array, self.target))

    def laid_out(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return samples (N, C, H, W) in the order in memory that the network takes; others as they are."""
        # `contiguous` would leave images of one channel as they are, and layers would still take them as channels last.
        is_turned = self.is_contiguous and tensor.ndim == 4
        return tensor.clone(memory_format=torch.contiguous_format) if is_turned else tensor

    def keep_channels_last(self) -> None:
        """Put the channels of weights last in memory, unless the network has to be contiguous."""
        if not self.is_contiguous:
            self.module.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    @property
    def is_tuned(self) -> bool:
        """Whether the job starts from a pretrained model."""
        return self._pretrained

    def facts(self) -> dict[str, Any]:
        """Return what the user's class is made with, as JSON values; ``target_mean`` is empty where it is not known."""
        target = self.target
        return {
            "nclasses": self.classes,
            "input_shape": _axes(self.source),
            "target_shape": [] if target is None else _axes(target),
            "target_mean": [] if target is None else list(target.mean),
            "target_std": [] if target is None else list(target.std),
            "categories": list(self.source.categories),
            "vocabulary_size": self.source.classes,
        }

    def zeros(self) -> torch.Tensor:
        """Return two samples of zeros as the network takes them."""
        return self._zeros(self.source)

    # ---- what it gives

    def results(
        self, x: torch.Tensor, y: torch.Tensor | None, *, is_training: bool, step: int = 0, second: Any = None
    ) -> Results:
        """Return outputs, losses and numbers of a batch.

        Args:
            x: the samples.
            y: their labels; None where it learns from its input alone.
            is_training: whether it is a step of the training.
            step: number of finished steps.
            second: second labels and the share of the first ones, where samples are mixed; None elsewhere.

        Raises:
            NetworkCodeError: where the user's code fails, or gives what cannot be.
        """
        weights = self._weights_on(x.device)
        with self._users_errors, digits.using_class_weights(weights), noting_weights() as noted:
            if isinstance(self.module, Tower):
                tower = self.module
                return self._of_tower(tower, x, y, noted, is_training=is_training, step=step, second=second)
            return self._of_output(self._hooked(self.module(x)), y, noted, second, is_training=is_training)

    def results_of(self, output: torch.Tensor, x: torch.Tensor, y: torch.Tensor | None) -> Results:
        """Return outputs, losses and numbers of a batch whose output is known.

        Args:
            output: what the network gives of it.
            x: the samples.
            y: their labels.

        Raises:
            NetworkCodeError: where the user's code fails, or gives what cannot be.
        """
        weights = self._weights_on(x.device)
        with users_errors(self.path), digits.using_class_weights(weights), noting_weights() as noted:
            output = self._hooked(output)
            if not isinstance(self.module, Tower):
                return self._of_output(output, y, noted, None)
            return self._of_view(self.module.view(x, y, is_training=False), output, noted)

    def _of_output(
        self, output: Any, y: torch.Tensor | None, noted: list[Weight], second: Any, *, is_training: bool = False
    ) -> Results:
        outputs = self._checked(output)
        losses = self._losses_of(self._plain_loss(output, y), noted)
        if second is not None:
            noted.clear()
            losses = _mixed(losses, self._losses_of(self._plain_loss(output, second[0]), noted), second[1])
        if is_training and self._has_usual_accuracy and y is not None:
            return Results(outputs, losses, is_right=output.argmax(1) == y)
        return Results(outputs, losses, self._plain_scalars(output, y))

    def predict(self, x: torch.Tensor, given: Mapping[str, torch.Tensor] | None = None) -> list[torch.Tensor]:
        """Return the outputs of inference.

        Args:
            x: the samples.
            given: what inference is given beside them.
        """
        with users_errors(self.path):
            if isinstance(self.module, Tower):
                view = self.module.view(x, None, is_inference=True, _given=dict(given or {}))
                return self._checked(self._hooked(view.inference))
            return self._checked(self._hooked(self.module(x)))

    def inference_inputs(self) -> dict[str, ArraySpec]:
        """Return what inference may be given beside the samples: name → one row of it."""
        if not isinstance(self.module, Tower):
            return {}
        x = self._zeros(self.source)
        with users_errors(self.path), torch.no_grad(), torch.random.fork_rng():
            view = self.module.view(x, None, is_inference=True)
            _ = view.inference
        asked: Mapping[str, torch.Tensor] = view.__dict__["_asked"]
        return {
            name: ArraySpec(tuple(each.shape[1:]), str(each.dtype).removeprefix("torch."))
            for name, each in asked.items()
        }

    # ---- inside

    def _made(self, kind: type[nn.Module]) -> nn.Module:
        facts = self.facts()
        input_shape, classes = facts.pop("input_shape"), facts.pop("nclasses")
        for name, usual in (("target_mean", 0.0), ("target_std", 1.0)):
            facts[name] = as_tensor(facts[name] or [usual])
        facts["categories"] = tuple(facts["categories"])
        if issubclass(kind, Tower):
            tower = kind(input_shape, classes)
            for name, value in facts.items():
                if isinstance(value, torch.Tensor):
                    del tower.__dict__[name]
                    tower.register_buffer(name, value, persistent=False)  # it moves to the device with the layers
                else:
                    setattr(tower, name, value)
            tower.build()
            return tower
        known = inspect.signature(kind).parameters
        takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values())
        chosen = {name: value for name, value in facts.items() if takes_all or name in known}
        return kind(classes, input_shape, **chosen)

    def _probe(self) -> None:
        """Run the network once, so that wrong code fails here, sizes of lazy layers are known, and names too."""
        was_training = self.module.training
        self.module.eval()
        judge = _Judge(self.classes)
        if not any(True for _ in self.module.parameters()):
            raise NetworkCodeError(
                f"`UserModel` in {self.path} has no layers, so there is nothing to train.",
                advice="Make them in `build` (Tower) or `__init__` (nn.Module): `self.conv1 = nn.Conv2d(...)`.",
                details={"file": self.path},
            )
        try:
            if any(isinstance(each, LazyModuleMixin) for each in self.module.modules()):
                with torch.no_grad():
                    self.predict(self._zeros(self.source))
            self.keep_channels_last()  # as it is trained: the weights decide the order of a layer's output, too
            with torch.random.fork_rng(), torch.no_grad():
                torch.manual_seed(_PROBE_SEED)
                x, y = self._zeros(self.source), self._labels_of_zeros()
                with judge if self._learns_class_numbers() else nullcontext():
                    results = self.results(x, y, is_training=False)
                if len(results.losses) > 1 and any(each.weight is not None for each in results.losses):
                    self._terms = self._terms_of_losses(x, y)
                    results = self.results(x, y, is_training=False)
        finally:
            self.module.train(was_training)
            _make_contiguous(self.module)
        self.scalar_names = list(results.scalars)
        has_own = isinstance(self.module, Tower) or hasattr(self.module, "scalars")
        self._has_usual_accuracy = self.scalar_names == ["accuracy"] and not has_own
        self.output_shapes = [tuple(each.shape[1:]) for each in results.outputs]
        self.parts = [each.variables for each in results.losses]
        self.weight_scales = [_scale(each.weight, len(x)) for each in results.losses]
        self.has_shown_summaries = bool(results.summaries)
        first = results.outputs[0]
        has_width = first.ndim == 2 and first.shape[1] == self.classes
        self.gives_class_scores = self._learns_class_numbers() and has_width and judge.has_judged

    def _terms_of_losses(self, x: torch.Tensor, y: torch.Tensor | None) -> list[Sequence[int]]:
        """Return the weighted terms of each loss of a list: those whose divisors it has a gradient of."""
        with torch.enable_grad(), divisors_with_gradients() as divisors:
            losses = self.results(x, y, is_training=False).losses
            found: list[Sequence[int]] = []
            for loss in losses:
                gradients = torch.autograd.grad(loss.value, divisors, retain_graph=True, allow_unused=True)
                found.append([place for place, gradient in enumerate(gradients) if gradient is not None])
            return found

    def _learns_class_numbers(self) -> bool:
        return self.target is not None and self.target.is_class_number and self.target.classes is not None

    def _zeros(self, spec: ArraySpec) -> torch.Tensor:
        return self.laid_out(self._on_device(np.zeros((2, *spec.shape), spec.dtype), spec))

    def _labels_of_zeros(self) -> torch.Tensor | None:
        return None if self.target is None else self._zeros(self.target)

    def _on_device(self, array: np.ndarray | torch.Tensor, spec: ArraySpec) -> torch.Tensor:
        values = array if isinstance(array, torch.Tensor) else np.asarray(array)
        if tuple(values.shape[1:]) != spec.shape:
            raise ConfigurationError(
                f"A sample of this network has the shape {spec.shape}.",
                received=f"a batch of shape {tuple(values.shape)}",
                advice="Give it data of the size it was made for.",
            )
        if isinstance(values, np.ndarray):
            values = torch.from_numpy(values if values.flags.c_contiguous else np.ascontiguousarray(values))
        kind = _torch_type(spec.dtype)
        # First to the device, then to the type: uint8 images are a quarter of the bytes.
        tensor = (values if values.device == self.device else values.to(self.device, non_blocking=True)).to(kind)
        if not spec.is_image:
            return tensor
        # A mask is an image whose one channel holds class numbers.
        return tensor[..., 0] if kind is torch.int64 else channels_first(tensor)

    def _weights_on(self, device: torch.device) -> torch.Tensor | None:
        if self._class_weights is not None and self._class_weights.device != device:
            self._class_weights = self._class_weights.to(device)
        return self._class_weights

    def _hooked(self, output: Any) -> Any:
        hook = getattr(self.module, "fineTuneHook", None) if self._pretrained else None
        return output if hook is None else hook(output)

    def _of_tower(
        self,
        tower: Tower,
        x: torch.Tensor,
        y: torch.Tensor | None,
        noted: list[Weight],
        *,
        is_training: bool,
        step: int,
        second: Any,
    ) -> Results:
        view: Any = tower.view(x, y, is_training=is_training, step=step)
        output = self._hooked(view.inference)
        results = self._of_view(view, output, noted)
        if second is not None:
            noted.clear()
            twin: Any = tower.view(x, second[0], is_training=is_training, step=step)
            twin.__dict__["_model_properties"]["inference"] = output
            results.losses = _mixed(results.losses, self._losses_of(twin.loss, noted), second[1])
        return results

    def _of_view(self, view: Any, output: Any, noted: Sequence[Weight]) -> Results:
        """Return what a tower makes of a batch whose output is known."""
        view.__dict__["_model_properties"]["inference"] = output
        outputs, losses = self._checked(output), self._losses_of(view.loss, noted)
        scalars = {each.tag: each.value for each in view.summaries if each.kind == "scalar"}
        return Results(outputs, losses, scalars, [each for each in view.summaries if each.kind != "scalar"])

    def _plain_loss(self, output: Any, y: torch.Tensor | None) -> Any:
        own = getattr(self.module, "loss", None)
        if own is not None:
            return own(output, y)
        return _usual_loss(output, y, self.target, self.path)

    def _plain_scalars(self, output: Any, y: torch.Tensor | None) -> dict[str, torch.Tensor]:
        own = getattr(self.module, "scalars", None)
        if own is not None:
            return dict(own(output, y))
        return _usual_scalars(output, y, self.target)

    def _checked(self, output: Any) -> list[torch.Tensor]:
        outputs = list(output) if isinstance(output, list | tuple) else [output]
        if not outputs or not all(isinstance(each, torch.Tensor) for each in outputs):
            raise NetworkCodeError(
                "`inference` and `forward` return a tensor, or a list of tensors.",
                received=type(output).__name__,
                advice="Return the output of the last layer.",
                details={"file": self.path},
            )
        return outputs

    def _losses_of(self, loss: Any, noted: Sequence[Weight]) -> list[Loss]:
        """Return the losses that a user's code gave.

        Args:
            loss: a scalar tensor, or a list.
            noted: weights of the terms that it was made of. A term's weight is that of the whole loss: what it adds
                besides, as a regularization, is the same in each part of a batch and so in their weighted mean.
        """
        parts = loss if isinstance(loss, list | tuple) else [{"loss": loss}]
        found: list[Loss] = []
        for part in parts:
            value = part.get("loss") if isinstance(part, dict) else part
            if not isinstance(part, dict) or not isinstance(value, torch.Tensor) or value.numel() != 1:
                shape = f" of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else ""
                raise NetworkCodeError(
                    "`loss` is a scalar tensor, or a list of {'loss': scalar tensor, 'vars': [parameters]}.",
                    received=f"{type(value).__name__}{shape}",
                    advice="Reduce it with `.mean()`, and return it.",
                    details={"file": self.path},
                )
            variables = part.get("vars")
            found.append(
                Loss(value if value.ndim == 0 else value.reshape(()), None if variables is None else list(variables))
            )
        if not noted:
            return found
        everything = range(len(noted))
        terms = self._terms if len(self._terms) == len(found) else [everything] * len(found)
        chosen = [[noted[place] for place in places if place < len(noted)] for places in terms]
        return [
            replace(each, weight=_mean_weight(weights)) if weights else each
            for each, weights in zip(found, chosen, strict=True)
        ]


def make_network(request: ProgramRequest) -> Network:
    """Return the network of a request, its layers initialized by its seed, on the CPU.

    Raises:
        UnknownNameError: where it names no standard network.
        ConfigurationError: where its file cannot be read.
        NetworkCodeError: where the user's network fails.
    """
    text, path = source_of(request)
    torch.manual_seed(request.seed)
    return Network(
        load_network(text, path),
        path,
        *single_arrays(request),
        pretrained=request.pretrained is not None,
        class_weights=request.class_weights,
    )


def source_of(request: ProgramRequest) -> tuple[str, str]:
    """Return the text of a request's network file, and its name.

    Raises:
        UnknownNameError: where it names no standard network.
        ConfigurationError: where its file cannot be read.
    """
    if request.network_text is not None:
        return request.network_text, request.network
    path = Path(request.network)
    if not path.suffix:
        path = network_path(request.network, "torch")
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except OSError as error:
        raise ConfigurationError(
            "`network` must be the name of a standard network or a readable file.",
            received=f"{request.network} ({error.strerror})",
            advice="Check the path.",
        ) from error


def _make_contiguous(module: nn.Module) -> None:
    """Give all weights the usual order in memory; `contiguous` would leave kernels of one channel as they are."""
    for each in (*module.parameters(), *module.buffers()):
        if not is_lazy(each) and each.ndim == 4:
            each.data = each.data.clone(memory_format=torch.contiguous_format)


def _axes(spec: ArraySpec) -> list[int]:
    """Return the shape of one sample as PyTorch has it: the channels of an image first."""
    return [spec.shape[2], spec.shape[0], spec.shape[1]] if spec.is_image else list(spec.shape)


@functools.cache
def _torch_type(dtype: str) -> torch.dtype:
    """Return the type that a network computes with: whole numbers are 64 bits wide, as losses and tables want them."""
    return torch.int64 if _is_integer(dtype) else getattr(torch, np.dtype(dtype).name)


@functools.cache
def _is_integer(dtype: str) -> bool:
    return np.dtype(dtype).kind in "iu"


def _mixed(first: Sequence[Loss], second: Sequence[Loss], share: torch.Tensor) -> list[Loss]:
    part = share.reshape(-1)[0]
    return [
        Loss(part * one.value + (1 - part) * other.value, one.variables, _mixed_weight(one.weight, other.weight, part))
        for one, other in zip(first, second, strict=True)
    ]


def _mixed_weight(first: Weight | None, second: Weight | None, part: torch.Tensor) -> Weight | None:
    if first is None or second is None:
        return None
    return Weight(
        part * first.total + (1 - part) * second.total,
        part * first.divisor + (1 - part) * second.divisor,
        first.at_least,
    )


def _mean_weight(weights: Sequence[Weight]) -> Weight:
    """Return the weight of a loss with several weighted terms; they are equal if the terms have the same labels."""
    if len(weights) == 1:
        return weights[0]
    total = torch.stack([each.total for each in weights]).mean()
    divisor = torch.stack([each.divisor for each in weights]).mean()
    return Weight(total, divisor, max(each.at_least for each in weights))


def _scale(weight: Weight | None, rows: int) -> WeightScale | None:
    if weight is None:
        return None
    of_row = float(weight.divisor) / rows
    return WeightScale(of_row if of_row > _SMALLEST_SCALE else 1.0, weight.at_least)


def _usual_loss(output: Any, y: torch.Tensor | None, target: ArraySpec | None, path: str) -> torch.Tensor:
    """Return the loss that follows from what is to be learned."""
    if isinstance(output, list | tuple):
        if len(output) == 2 and target is not None and target.is_class_number:
            return digits.contrastive_loss(output[0], output[1], _needed(y))
        raise NetworkCodeError(
            f"The network has {len(output)} outputs, and `UserModel` has no method `loss` that says what is minimized.",
            advice="Write `def loss(self, output, y):`.",
            details={"file": path},
        )
    if target is None or y is None:
        raise NetworkCodeError(
            "The data has no target, and `UserModel` has no method `loss` that says what is minimized.",
            advice="Write `def loss(self, output, y):`.",
            details={"file": path},
        )
    if target.has_objects:
        raise NetworkCodeError(
            "`UserModel` of a detector has no method `loss` that says what is minimized.",
            advice="Write `def loss(self, output, y):`, or take `digits.detection_loss` in a `Tower`.",
            details={"file": path},
        )
    integers = _is_integer(target.dtype)
    _check_form(output, y, target, path)
    if integers and target.is_image:
        return digits.segmentation_loss(output, y)
    if integers:
        return digits.classification_loss(output, y)
    if target.classes is not None and target.shape == (target.classes,):
        return functional.binary_cross_entropy_with_logits(output, y)
    if target.is_image:
        return digits.mse_loss(output, y / 255.0)
    return digits.mse_loss(output, y.reshape(output.shape))


def _check_form(output: torch.Tensor, y: torch.Tensor, target: ArraySpec, path: str) -> None:
    """Refuse an output that is not of the form that the usual loss takes."""
    count, classes, integers = y.shape[0], target.classes, _is_integer(target.dtype)
    wanted: tuple[Any, ...] = tuple(y.shape)
    if integers:
        wanted = (count, classes if classes is not None else output.shape[-1], *y.shape[1:])
    fits = tuple(output.shape) == wanted
    if not integers and not target.is_image:  # rows of numbers, whatever their axes
        fits = output.numel() == y.numel() and len(output) == count
    if not fits:
        raise NetworkCodeError(
            f"For this target, the output of a batch of {count} has the shape {wanted}.",
            received=f"shape {tuple(output.shape)} in {path}",
            advice="Give the last layer that many outputs, or write `def loss(self, output, y):`.",
            details={"file": path},
        )


def _usual_scalars(output: Any, y: torch.Tensor | None, target: ArraySpec | None) -> dict[str, torch.Tensor]:
    """Return the curves that follow from what is to be learned."""
    if target is None or y is None or target.has_objects or not isinstance(output, torch.Tensor):
        return {}
    integers = _is_integer(target.dtype)
    if integers and target.is_image:
        return {"pixel_accuracy": digits.pixel_accuracy(output, y)}
    if integers:
        return {"accuracy": digits.classification_accuracy(output, y)} if output.ndim == 2 else {}
    if target.classes is not None and target.shape == (target.classes,):
        return {"label_accuracy": ((output > 0) == (y > 0.5)).float().mean()}
    if target.is_image:
        return {}
    return {"mean_absolute_error": (output - y.reshape(output.shape)).abs().mean()}


def _needed(y: torch.Tensor | None) -> torch.Tensor:
    if y is None:
        raise UnknownNameError("target of this data", "y", [])
    return y


_JUDGING: Final = frozenset(
    {"argmax", "cross_entropy", "log_softmax", "max", "multi_margin_loss", "nll_loss", "softmax", "sort", "topk"}
)
"""Functions that take one score a class."""


class _Judge(TorchFunctionMode):
    """Sees whether a loss takes something for one score a class.

    An embedding or measured values have a width too, and it may well be the number of classes.
    """

    def __init__(self, classes: int | None) -> None:
        super().__init__()
        self._classes = classes
        self.has_judged = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in _JUDGING and args and isinstance(args[0], torch.Tensor):
            self.has_judged |= args[0].ndim == 2 and args[0].shape[-1] == self._classes
        return func(*args, **(kwargs or {}))
