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
from ziggurat.entities.backend_info import StandardNetwork, backend_info
from ziggurat.errors import ConfigurationError, NetworkCodeError
from ziggurat.specs import FileNetwork
from ziggurat.tasks import task, tasks
from ziggurat.worker.commands.trained import provider_of
from ziggurat.worker.context import new_context, task_of
from ziggurat.worker.pipeline import DataOptions, prepare_data
from ziggurat.worker.source import open_source
from ziggurat.zoo import network_path
from ziggurat.zoo.backends import backend_for, file_backend
from ziggurat.zoo.network_task import declared_task

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
"""A user's file that declares nothing: images in, class scores out."""

_OWN_INPUTS: Final[Mapping[str, str]] = {"vocabulary_size": "text", "categories": "table"}
"""Attribute of a tower that only networks for such an input ask for, in a user's file → form of its input."""


def describe(request: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a network.

    Args:
        request: ``network`` (a file, or the name of a standard network); ``backend`` (default: told by the file, or
            the first that has the standard network);
            ``input_shape`` (default: what the standard network is made for, else 28 x 28 x 1, a row of 13 numbers or a
            text of 64 tokens; a file gets images, or with one number rows of a table, or texts where it asks for
            ``vocabulary_size``); ``task`` (default: that of the standard network, or the one that the file declares,
            else classification); ``classes`` (default 10); ``tensorboard`` (a folder for the graph that TensorBoard
            shows; none where it is left out).

    Returns:
        ``network``, ``task``, ``input_shape``, ``classes``, and what ``SupportsDescribe.describe`` returns. With
        ``tensorboard``, that too: ``file`` (None where none was written) and ``problem`` (why).
    """
    backend = request.get("backend") or _backend_of(request["network"])
    asked, learned = _network(request["network"], backend, request)
    provider = provider_of(backend, SupportsDescribe, "describe networks")
    if folder := request.get("tensorboard"):
        found = _described_for_tensorboard(provider, asked, backend, Path(folder))
    else:
        found = provider.describe(asked)
    return {
        "network": request["network"],
        "task": learned,
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
    backend = request.get("backend") or _backend_of(request["network"])
    source = open_source(request.get("data") or "digits", request.get("data_options") or {}, request.get("seed") or 0)
    options = DataOptions(batch_size=request.get("batch_size") or 16, seed=request.get("seed") or 0)
    network, name = _network(request["network"], backend, {})
    declares = not tasks()[name].accepts(source.schema)
    context = new_context(source, options, task_of(source, name if declares else ""))
    data = prepare_data(source, options, context)
    target = context.task.target(context)
    asked = replace(
        network,
        inputs={"x": context.task.input(context)},
        targets={} if target is None else {"y": target},
    )
    batch = next(iter(data.train))
    found = provider_of(backend, SupportsDebug, "run networks eagerly").debug(asked, batch)
    return {"network": request["network"], "batch": [list(part.shape) for part in batch], **found}


def _network(name: str, backend: str, given: Mapping[str, Any]) -> tuple[ProgramRequest, str]:
    """Return a request for a network that a person named, and what it learns; a file ends in .py or holds a slash."""
    if not _is_file(name):
        known = backend_info(backend).network(name)
        file = network_path(name, backend)
        assert known is not None, "`network_path` knows no other names"
        return _request(str(file), file.read_text(encoding="utf-8"), given, known)
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkCodeError(
            f"The network file {path} cannot be read as Python text: {str(error).rstrip('.')}.",
            advice="Check the path; a relative one starts at the current folder.",
            details={"file": str(path)},
        ) from None
    return _request(name, text, given, _own_network(text, given))


def _is_file(name: str) -> bool:
    return name.endswith(".py") or "/" in name


def _backend_of(name: str) -> str:
    """Return the backend of a network that a person named."""
    return file_backend(FileNetwork(path=name)) if _is_file(name) else backend_for(name)


def _own_network(text: str, given: Mapping[str, Any]) -> StandardNetwork:
    """Return what is known of a user's file: what it learns, and the form of its input."""
    learned, shape = given.get("task") or declared_task(text) or _OWN_NETWORK.task, given.get("input_shape")
    asked_for = next((form for name, form in _OWN_INPUTS.items() if f".{name}" in text), "")
    if shape and len(shape) == 1:
        form = asked_for or "table"
    elif shape or not asked_for:
        form = task(learned).image_form
    else:
        form = asked_for
    return replace(_OWN_NETWORK, task=learned, input=form)


def _request(path: str, text: str, given: Mapping[str, Any], network: StandardNetwork) -> tuple[ProgramRequest, str]:
    usual = _USUAL_INPUTS[network.input]
    chosen = tuple(given.get("input_shape") or network.input_shape or usual.shape)
    if len(chosen) != len(usual.shape) or not all(isinstance(n, int) and n > 0 for n in chosen):
        is_image = len(usual.shape) == len(_USUAL_SHAPE)
        raise ConfigurationError(
            "An input shape has three positive whole numbers: height, width and channels."
            if is_image
            else "The input shape of a table or a text is one positive whole number.",
            received=chosen,
            advice=f"Write it as in {'28x28x1' if is_image else '64'}.",
        )
    learned = task(given.get("task") or network.task)
    target = learned.usual_target(chosen, given.get("classes") or _USUAL_CLASSES)
    request = ProgramRequest(
        network=path,
        network_text=text,
        inputs={"x": replace(usual, shape=chosen)},
        targets={} if target is None else {"y": target},
    )
    return request, learned.name
