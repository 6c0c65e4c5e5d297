"""Inspection of imported models, and prediction once input and outputs are chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.images import read_file
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.engine.capabilities import ForeignNetwork, SupportsForeign, TensorDescription
from ziggurat.entities.backend_info import DEFAULT_BACKEND, backend_infos
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError
from ziggurat.worker.commands.trained import provider_of

__all__ = ["image_for", "inspect_model", "predict_with_model"]

_BATCH_AND_IMAGE = 4


def inspect_model(request: Mapping[str, Any]) -> dict[str, Any]:
    """List what can be fed to a model and asked of it.

    Args:
        request: ``model`` (path); ``backend`` (default: the one that opens such files, else ``tensorflow``).

    Returns:
        ``model``, ``kind``, ``inputs`` and ``outputs`` (name, kind, dtype, shape, readers; likely outputs first), and
        ``signatures`` (name → inputs and outputs, key → name).
    """
    with _opened(request) as model:
        return {
            "model": request["model"],
            "kind": model.kind,
            "inputs": [asdict(each) for each in model.inputs()],
            "outputs": [asdict(each) for each in model.outputs()],
            "signatures": {
                name: {"inputs": dict(inputs), "outputs": dict(outputs)}
                for name, (inputs, outputs) in model.signatures.items()
            },
        }


def predict_with_model(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a model on images or arrays.

    Args:
        request: ``model`` and ``backend`` as for ``inspect_model``; ``input`` (may be left out where there is one);
            ``outputs`` (names; may be left out where one is likely); ``files`` (images, or ``.npy`` arrays with or
            without the batch's axis); ``scale`` (factor of an image's values from 0 to 255, default 1); ``feeds``
            (input → number, for the others).

    Returns:
        ``model``, ``input``, ``outputs``; ``predictions``: ``file`` and ``outputs`` (name → shape and values), in the
        order of the files; ``failures``: ``file`` and the error's JSON shape, for files that cannot be read.
    """
    with _opened(request) as model:
        source = _input(model, request.get("input"))
        names = list(request.get("outputs") or [_likely_output(model)])
        others = {name: np.asarray(value) for name, value in (request.get("feeds") or {}).items()}
        predictions, failures = [], []
        for file in request["files"]:
            try:
                value = _value(file, source, float(request.get("scale") or 1.0))
            except DataError as error:
                failures.append({"file": file, **error.as_dict()})
                continue
            found = model.predict({source.name: value, **others}, names)
            described = {name: {"shape": each.shape, "values": each.tolist()} for name, each in found.items()}
            predictions.append({"file": file, "outputs": described})
    return {
        "model": request["model"],
        "input": source.name,
        "outputs": names,
        "predictions": predictions,
        "failures": failures,
    }


def image_for(data: bytes, shape: Sequence[int | None] | None, key: str) -> np.ndarray:
    """Return an image in the shape that a model takes, with the batch's axis: float32, 0 to 255.

    Args:
        data: the content of an image file.
        shape: of the input: (N, H, W, C), (N, C, H, W) with 1 or 3 channels, or (N, pixels) of a square gray or RGB
            image, or of a gray one of the image's own size.
        key: what names the image in an error.

    Raises:
        DatapointError: where the bytes are no image.
        ConfigurationError: where the shape is no image's.
    """
    sides = list(shape or [])
    if len(sides) == _BATCH_AND_IMAGE and sides[3] in (1, 3):
        return _scaled(data, sides[1], sides[2], sides[3], key)
    if len(sides) == _BATCH_AND_IMAGE and sides[1] in (1, 3):
        return _scaled(data, sides[2], sides[3], sides[1], key).transpose(0, 3, 1, 2)
    if len(sides) == 2 and sides[1]:
        grey = decode_image(data, channels=1, key=key)
        if grey.size == sides[1]:
            return grey.reshape(1, -1).astype(np.float32)
        for channels in (1, 3):
            side = math.isqrt(sides[1] // channels)
            if side * side * channels == sides[1]:
                return _scaled(data, side, side, channels, key).reshape(1, -1)
    raise ConfigurationError(
        "An image is fed to an input whose shape is an image's.",
        received=f"shape {shape}",
        advice="Save what the model takes with `numpy.save`, and give the .npy file.",
    )


def _scaled(data: bytes, height: int | None, width: int | None, channels: Any, key: str) -> np.ndarray:
    image = decode_image(data, channels=channels, key=key)
    size = (height or image.shape[0], width or image.shape[1])
    return Preprocessing(size=size, channels=channels).fit(image)[None].astype(np.float32)


@contextmanager
def _opened(request: Mapping[str, Any]) -> Iterator[ForeignNetwork]:
    path = Path(request["model"])
    provider = provider_of(request.get("backend") or _backend_of(path), SupportsForeign, "open models of others")
    model = provider.open_foreign(path)
    try:
        yield model
    finally:
        model.close()


def _backend_of(path: Path) -> str:
    """Return the backend that opens a model of another program: told by the name of its file."""
    infos = backend_infos()
    return next((name for name, info in infos.items() if path.suffix.lower() in info.model_suffixes), DEFAULT_BACKEND)


def _input(model: ForeignNetwork, name: str | None) -> TensorDescription:
    inputs = {each.name: each for each in model.inputs()}
    if name is None:
        if len(inputs) != 1:
            raise ConfigurationError(
                "The input must be named where a model has not exactly one.",
                received=", ".join(inputs) or "none",
                advice="Choose one with --input.",
            )
        return next(iter(inputs.values()))
    if name not in inputs:
        raise UnknownNameError("input of this model", name, inputs)
    return inputs[name]


def _likely_output(model: ForeignNetwork) -> str:
    outputs = model.outputs()
    likely = [each.name for each in outputs if not each.readers]
    if len(likely) != 1:
        raise ConfigurationError(
            "The output must be named where it is not clear which one is meant.",
            received=", ".join(likely or [each.name for each in outputs][:20]) or "none",
            advice="Choose one with --output.",
        )
    return likely[0]


def _value(file: str, source: TensorDescription, scale: float) -> np.ndarray:
    if not file.endswith(".npy"):
        return image_for(read_file(file), source.shape, file) * np.float32(scale)
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"The file {file} must hold an array that `numpy.save` wrote.",
            received=str(error),
            advice="Write it with: numpy.save(path, array).",
        ) from error
    whole = array[None] if source.shape is not None and array.ndim == len(source.shape) - 1 else array
    return whole.astype(source.dtype)
