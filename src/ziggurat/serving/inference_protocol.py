"""Open Inference Protocol (version 2, REST): tensors of requests, of answers, and the metadata of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ziggurat.serving.bodies import MOST_SAMPLES
from ziggurat.serving.model import InputTensor, ServedModel
from ziggurat.serving.request_error import RequestError

__all__ = ["answer_tensors", "metadata", "request_outputs", "request_tensor"]

_DATATYPES: Final = {
    **{
        f"{name}{bits}": f"{kind}{bits}"
        for name, kind in (("INT", "int"), ("UINT", "uint"))
        for bits in (8, 16, 32, 64)
    },
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BOOL": "bool",
}
_NAMES: Final = {dtype: name for name, dtype in _DATATYPES.items()}
_BY_DTYPE: Final = {np.dtype(dtype): name for name, dtype in _DATATYPES.items()}


def metadata(name: str, version: str, model: ServedModel) -> dict[str, Any]:
    """Return the metadata of a model; -1 stands for the number of samples."""
    return {
        "name": name,
        "versions": [version],
        "platform": "onnxruntime_onnx",
        "inputs": [
            {
                "name": model.source.name,
                "datatype": _NAMES[model.source.dtype],
                "shape": _shape(model.source.shape),
            }
        ],
        "outputs": [
            {"name": output, "datatype": "FP32", "shape": _shape(shape or [None])}
            for output, shape in model.outputs.items()
        ],
    }


def request_tensor(content: Mapping[str, Any], source: InputTensor) -> np.ndarray:
    """Return the batch of an inference request.

    Args:
        content: of the request.
        source: what the model takes.

    Raises:
        RequestError: 422 if it is none for this model.
    """
    inputs = content.get("inputs")
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise RequestError(422, f"`inputs` must have one tensor, `{source.name}`.")
    tensor = inputs[0]
    datatype = _NAMES[source.dtype]
    if tensor.get("name") != source.name:
        raise RequestError(422, f"The model has one input, `{source.name}`; received {_shown(tensor.get('name'))}.")
    if tensor.get("datatype") != datatype:
        raise RequestError(422, f"`{source.name}` is {datatype}; received {_shown(tensor.get('datatype'))}.")
    shape = _checked_shape(tensor.get("shape"), source)
    return _numbers(tensor.get("data"), shape, source)


def request_outputs(content: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Return the names of the outputs that a request asks for, by default all.

    Raises:
        RequestError: 422 if one is unknown.
    """
    asked = content.get("outputs")
    if asked is None or asked == []:
        return list(known)
    names: list[str] = []
    for each in asked if isinstance(asked, list) else [asked]:
        name = each.get("name") if isinstance(each, dict) else each
        if not isinstance(each, dict) or not isinstance(name, str) or name not in known:
            raise RequestError(422, f"The outputs are {', '.join(known)}; received {_shown(name)}.")
        names.append(name)
    return names


def answer_tensors(outputs: Mapping[str, np.ndarray], names: list[str]) -> list[dict[str, Any]]:
    """Return outputs as tensors; their data is flat, in row-major order."""
    found = []
    for name in names:
        values = np.asarray(outputs[name])
        datatype = _BY_DTYPE.get(values.dtype, "FP64")
        found.append({"name": name, "datatype": datatype, "shape": list(values.shape), "data": values.ravel().tolist()})
    return found


def _checked_shape(shape: Any, source: InputTensor) -> tuple[int, ...]:
    expected = _shape(source.shape)
    is_list = isinstance(shape, list) and all(isinstance(side, int) and not isinstance(side, bool) for side in shape)
    fits = is_list and len(shape) == len(expected) and all(want in (-1, side) for want, side in zip(expected, shape))
    if not fits:
        raise RequestError(422, f"`{source.name}` has the shape {expected}; received {_shown(shape)}.")
    if not 1 <= shape[0] <= MOST_SAMPLES or any(side < 1 for side in shape):
        raise RequestError(422, f"A request has 1 to {MOST_SAMPLES} samples; received {_shown(shape)}.")
    return tuple(shape)


def _numbers(data: Any, shape: tuple[int, ...], source: InputTensor) -> np.ndarray:
    try:
        values = np.asarray(data) if isinstance(data, list) else np.empty(0, object)
    except (ValueError, OverflowError, RecursionError):  # lists of different lengths
        values = np.empty(0, object)
    if values.size != math.prod(shape):
        raise RequestError(422, f"`data` must have {math.prod(shape)} numbers, for the shape {list(shape)}.")
    if values.dtype.kind not in "iuf":
        raise RequestError(422, "`data` must be numbers.")
    with np.errstate(all="ignore"):
        batch = values.astype(source.dtype)
        is_exact = values.dtype.kind == "f" or np.array_equal(batch.astype(np.float64), values.astype(np.float64))
    if not np.isfinite(batch).all() or (batch.dtype.kind in "iu" and not (is_exact and values.dtype.kind != "f")):
        raise RequestError(422, f"`data` must be finite numbers of the type {_NAMES[source.dtype]}.")
    return np.ascontiguousarray(batch.reshape(shape))


def _shape(shape: Any) -> list[int]:
    return [-1 if side is None else int(side) for side in shape]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
