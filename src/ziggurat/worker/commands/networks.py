"""Description of an untrained network, and an eager run on one real batch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ziggurat.engine.backend import ArraySpec, ProgramRequest
from ziggurat.engine.capabilities import SupportsDebug, SupportsDescribe, SupportsGraph
from ziggurat.engine.monitors.tensorboard import write_graph
from ziggurat.entities.backend_info import DEFAULT_BACKEND, StandardNetwork, backend_info
from ziggurat.errors import ConfigurationError, NetworkCodeError
from ziggurat.tasks import tasks
from ziggurat.worker.commands.trained import provider_of
from ziggurat.worker.context import new_context
from ziggurat.worker.pipeline import DataOptions, prepare_data
from ziggurat.worker.source import open_source
from ziggurat.zoo import network_path

__all__ = ["debug", "describe"]

_USUAL_SHAPE: Final = (28, 28, 1)
_USUAL_CLASSES: Final = 10
_USUAL_INPUTS: Final[Mapping[str, ArraySpec]] = {
    "image": ArraySpec(_USUAL_SHAPE),
    "image-pair": ArraySpec((28, 28, 2)),
    "table": ArraySpec((13,)),
    "text": ArraySpec((64,), "int32", classes=10_000),
    "array": ArraySpec(_USUAL_SHAPE),
}
"""Form of input → what a network is described with that was made for no shape of its own."""

_OWN_NETWORK: Final = StandardNetwork("", "")
"""A user's file: images in, class scores out."""


def describe(request: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a network.

    Args:
        request: ``network`` (a file, or the name of a standard network); ``backend`` (default ``tensorflow``);
            ``input_shape`` (default: what the standard network is made for, else 28 x 28 x 1, a row of 13 numbers or a
            text of 64 tokens); ``classes`` (default 10); ``tensorboard`` (a folder for the graph that TensorBoard
            shows; none where it is left out).

    Returns:
        ``network``, ``input_shape``, ``classes``, and what ``SupportsDescribe.describe`` returns. With ``tensorboard``,
        that too: ``file`` (None where none was written) and ``problem`` (why).
    """
    backend = request.get("backend") or DEFAULT_BACKEND
    asked = _network(request["network"], backend, request)
    provider = provider_of(backend, SupportsDescribe, "describe networks")
    if folder := request.get("tensorboard"):
        found = _described_for_tensorboard(provider, asked, backend, Path(folder))
    else:
        found = provider.describe(asked)
    return {
        "network": request["network"],
        "input_shape": list(asked.inputs["x"].shape),
        "classes": next((target.classes for target in asked.targets.values()), None),
        **found,
    }


def _described_for_tensorboard(
    provider: SupportsDescribe, asked: ProgramRequest, backend: str, folder: Path
) -> dict[str, Any]:
    """Describe a network and write its graph. What is said of it holds, whether the graph could be written or not."""
    if not isinstance(provider, SupportsGraph):
        problem = f"The backend `{backend}` has no graph for TensorBoard."
        return {**provider.describe(asked), "tensorboard": {"file": None, "problem": problem}}
    found = provider.describe_with_graph(asked)
    file, problem = None, found.problem
    if found.graph:
        try:
            file = str(write_graph(folder, found.graph, time.time()))
        except OSError as error:
            problem = f"The graph for TensorBoard cannot be written into {folder}: {error.strerror or error}."
    return {**found.description, "tensorboard": {"file": file, "problem": problem}}


def debug(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a network eagerly on one real batch, in training mode.

    Args:
        request: ``network`` and ``backend`` as for ``describe``; ``data`` (default ``digits``); ``batch_size`` (default
            16); ``seed`` (default 0).

    Returns:
        ``network``, ``batch`` (shapes of x and y), and what ``SupportsDebug.debug`` returns.
    """
    backend = request.get("backend") or DEFAULT_BACKEND
    source = open_source(request.get("data") or "digits", request.get("data_options") or {}, request.get("seed") or 0)
    options = DataOptions(batch_size=request.get("batch_size") or 16, seed=request.get("seed") or 0)
    context = new_context(source, options)
    data = prepare_data(source, options, context)
    target = context.task.target(context)
    asked = replace(
        _network(request["network"], backend, {}),
        inputs={"x": context.task.input(context)},
        targets={} if target is None else {"y": target},
    )
    batch = next(iter(data.train))
    found = provider_of(backend, SupportsDebug, "run networks eagerly").debug(asked, batch)
    return {"network": request["network"], "batch": [list(part.shape) for part in batch], **found}


def _network(name: str, backend: str, given: Mapping[str, Any]) -> ProgramRequest:
    """Return a request for a network that a person named: a file where it ends in .py or holds a slash."""
    shape, classes = given.get("input_shape"), given.get("classes")
    if not (name.endswith(".py") or "/" in name):
        known = backend_info(backend).network(name)
        file = network_path(name, backend)
        assert known is not None, "`network_path` knows no other names"
        return _request(str(file), file.read_text(encoding="utf-8"), shape, classes, known)
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkCodeError(
            "The network file must be readable Python text.",
            received=f"{path}: {error}",
            advice="Check the path; a relative one starts at the current folder.",
            details={"file": str(path)},
        ) from None
    return _request(name, text, shape, classes)


def _request(
    path: str, text: str, shape: Any, classes: int | None, network: StandardNetwork = _OWN_NETWORK
) -> ProgramRequest:
    usual = _USUAL_INPUTS[network.input]
    chosen = tuple(shape or network.input_shape or usual.shape)
    if len(chosen) != len(usual.shape) or not all(isinstance(n, int) and n > 0 for n in chosen):
        is_image = len(usual.shape) == len(_USUAL_SHAPE)
        raise ConfigurationError(
            "An input shape has three positive whole numbers: height, width and channels."
            if is_image
            else "The input shape of a table or a text is one positive whole number.",
            received=chosen,
            advice=f"Write it as in {'28x28x1' if is_image else '64'}.",
        )
    learned = tasks().get(network.task)
    target = None if learned is None else learned.usual_target(chosen, classes or _USUAL_CLASSES)
    return ProgramRequest(
        network=path,
        network_text=text,
        inputs={"x": replace(usual, shape=chosen)},
        targets={} if target is None else {"y": target},
    )
