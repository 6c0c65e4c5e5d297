"""A network with the weights of a checkpoint: it evaluates and predicts, and shows its layers and gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ziggurat.backends.torch.devices import device_of
from ziggurat.backends.torch.gradients import class_scores, map_layers
from ziggurat.backends.torch.linear_head import head_inputs
from ziggurat.backends.torch.network import Network, channels_last, make_network
from ziggurat.backends.torch.recording import LayerRun, Recorder
from ziggurat.backends.torch.state import give_weights
from ziggurat.engine.backend import ArraySpec, ProgramRequest
from ziggurat.errors import ConfigurationError, TrainingError, UnknownNameError, UsageError

__all__ = ["TrainedTorch", "named_outputs", "plain", "trained_network"]

_PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}
_SEED = 0


class TrainedTorch:
    """Evaluates and predicts; holds no optimizer, and gradients only on request.

    Args:
        request: the network, its input shape, classes and class weights; whether it started from a pretrained model.
        arrays: name → array of a checkpoint.

    Attributes:
        network: the user's network, in evaluation mode.
        gives_class_scores: whether the first output holds class scores.

    Raises:
        CheckpointError: where the arrays are of another network.
        NetworkCodeError: where the user's network fails.
    """

    def __init__(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray]) -> None:
        self.network = trained_network(request, arrays)
        self._device = _device(request)
        self._precision = _PRECISIONS.get(request.precision)
        self.network.to(self._device)
        self.network.keep_channels_last()
        self.gives_class_scores = self.network.gives_class_scores
        self._maps: tuple[list[str], str] | None = None
        self._tuning = request.fine_tuning

    def evaluate(self, x: np.ndarray, y: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return cost, the user's scalars, and the outputs in validation."""
        with self._running():
            results = self.network.results(self.network.samples(x), self.network.labels(y), is_training=False)
            values: dict[str, Any] = {name: plain(each) for name, each in results.scalars.items()}
            values["cost"] = plain(sum((each.value for each in results.losses), torch.zeros((), device=self._device)))
            return {**self._named(results.outputs), **values}

    def inference_inputs(self) -> Mapping[str, ArraySpec]:
        """Return what ``predict`` may be given beside the samples, such as noise: name → one row of it."""
        return self.network.inference_inputs()

    def predict(self, x: np.ndarray, given: Mapping[str, np.ndarray] | None = None) -> Mapping[str, np.ndarray]:
        """Return the outputs of inference.

        Args:
            x: (N, …) samples.
            given: name in ``inference_inputs`` → (N, …); the network's own default where one is left out.

        Raises:
            UnknownNameError: where the network has no such input.
            ConfigurationError: where one is of another shape.
        """
        with self._running():
            return self._named(self.network.predict(self.network.samples(x), self._given(given or {})))

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return the inputs of the head, (N, D) float32.

        Raises:
            ConfigurationError: if the head is not one layer that is computed once, from one vector for each sample.
        """
        with self._running():
            samples = self.network.samples(x)
            return head_inputs(self.network.module, self._tuning, lambda: self.network.predict(samples), len(samples))

    def layer_outputs(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return what each layer gives of samples, in the order of the network; the outputs come last."""
        found: dict[str, np.ndarray] = {}
        samples = self.network.samples(x)

        def seen(layer: LayerRun, tensor: torch.Tensor) -> None:
            if tensor.ndim > 1 and tensor.is_floating_point() and len(tensor) == len(samples):
                found[layer.name] = plain(channels_last(tensor))  # a copy: a later layer may write over it

        with self._running(), Recorder(self.network.module, seen=seen):
            outputs = self.network.predict(samples)
        return {**found, **self._named(outputs)}

    def map_layers(self) -> tuple[list[str], str]:
        """Return the layers with maps in the order of the network, and the usual one; empty where there is none."""
        return self._layers_with_maps()

    def maps_and_gradients(self, x: np.ndarray, layer: str, class_number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's maps and the gradients of the score of a class by them, both (N, H, W, C) float32.

        Raises:
            UnknownNameError: where no layer of that name has maps.
            UsageError: where no gradient comes back to it.
        """
        layers, _ = self._layers_with_maps()
        if layer not in layers:
            raise UnknownNameError("layer with maps", layer, layers)
        with self._running(), torch.enable_grad():
            samples = self.network.samples(x).clone()
            if samples.is_floating_point():
                samples.requires_grad_(True)  # so that layers of which nothing is trained have gradients, too
            with Recorder(self.network.module, keep=True) as recorder:
                output = self.network.predict(samples)[0]
            places = {each.name: each.place for each in recorder.layers}
            maps = recorder.operations[places[layer]].tensor
            scores = class_scores(recorder, output)
            if maps is None or not maps.requires_grad or not scores.requires_grad:
                raise _no_gradient(layer)
            # Samples do not touch each other here, so the gradient of the sum is that of each sample's own score.
            (gradient,) = torch.autograd.grad(scores[:, class_number].sum(), maps, allow_unused=True)
        if gradient is None:
            raise _no_gradient(layer)
        return plain(channels_last(maps).float()), plain(channels_last(gradient).float())

    def close(self) -> None:
        """Let memory of a GPU go; closing twice does nothing."""
        if self._device.type == "cuda":
            self.network.to(torch.device("cpu"))
            torch.cuda.empty_cache()

    # ---- inside

    def _layers_with_maps(self) -> tuple[list[str], str]:
        """Return what ``map_layers`` finds in a run on zeros, once."""
        if self._maps is None:
            self._maps = ([], "")
            if self.gives_class_scores:
                samples = self.network.zeros()
                with self._running(), Recorder(self.network.module) as recorder:
                    output = self.network.predict(samples)[0]
                self._maps = map_layers(recorder, output)
        return self._maps

    def _named(self, outputs: list[torch.Tensor]) -> dict[str, np.ndarray]:
        return {
            name: plain(each) for name, each in named_outputs(outputs, scores=self.network.gives_class_scores).items()
        }

    def _given(self, given: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
        known = self.inference_inputs() if given else {}
        found: dict[str, torch.Tensor] = {}
        for name, array in given.items():
            if name not in known:
                raise UnknownNameError("input of this network beside the samples", name, known)
            values = np.asarray(array, known[name].dtype)
            if values.shape[1:] != known[name].shape:
                raise ConfigurationError(
                    f"The input `{name}` of this network has rows of shape {known[name].shape}.",
                    received=f"an array of shape {values.shape}",
                    advice="Give it one row for each sample.",
                )
            found[name] = torch.from_numpy(values).to(self._device)
        return found

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Run the network without gradients and with the same random numbers each time."""
        devices = [self._device] if self._device.type == "cuda" else []
        autocast = torch.autocast(
            self._device.type, self._precision or torch.bfloat16, enabled=self._precision is not None
        )
        with torch.random.fork_rng(devices), torch.no_grad(), autocast:
            torch.manual_seed(_SEED)
            try:
                yield
            except torch.OutOfMemoryError as error:
                raise TrainingError(
                    f"A batch does not fit into the memory of {self._device}: "
                    f"{str(error).splitlines()[0].rstrip('.')}.",
                    advice="Make the batch smaller.",
                ) from error


def trained_network(request: ProgramRequest, arrays: Mapping[str, np.ndarray]) -> Network:
    """Return the network of a request with the weights of a checkpoint, in evaluation mode, on the CPU.

    Raises:
        CheckpointError: where the arrays are of another network.
        NetworkCodeError: where the user's network fails.
    """
    network = make_network(request)
    give_weights(network.module, arrays)
    network.module.eval()
    return network


def named_outputs(outputs: list[torch.Tensor], *, scores: bool) -> dict[str, torch.Tensor]:
    """Return name → output: ``output``, ``output_1``, …, and ``probabilities`` of a classifier; images (N, H, W, C).

    Args:
        outputs: of a network.
        scores: whether the first one holds class scores.
    """
    found = {f"output_{number}" if number else "output": channels_last(each) for number, each in enumerate(outputs)}
    if scores:
        found["probabilities"] = outputs[0].float().softmax(1)
    return found


def plain(tensor: torch.Tensor) -> Any:
    """Return a tensor as a NumPy array of its own memory, or as a number."""
    values = tensor.detach()
    array = (values.float() if values.dtype in (torch.bfloat16, torch.float16) else values).cpu().numpy()
    return array[()] if array.ndim == 0 else np.array(array)


def _device(request: ProgramRequest) -> torch.device:
    """Return where a trained network computes: the first device of its training, where this machine has it."""
    try:
        return device_of(replace(request, devices=request.devices[:1]))
    except ConfigurationError:  # it was trained on another machine
        return torch.device("cpu")


def _no_gradient(layer: str) -> UsageError:
    return UsageError(
        f"Grad-CAM needs a gradient from the score of a class back to the layer `{layer}`.",
        received="none",
        advice="Choose a layer nearer to the end of the network.",
    )
