"""Descriptions of backends: all that pages, commands and checks need to know, without importing a framework.

Each entry of the entry-point group ``ziggurat.backends`` stands for a ``BackendInfo``, whichever package brings it. The
backend itself, and what it does beside training, are named in it as ``module:attribute`` and loaded by workers only.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ziggurat.errors import ConfigurationError, PluginError, ZigguratError
from ziggurat.plugins import available, load

__all__ = [
    "DEFAULT_BACKEND",
    "INPUT_KINDS",
    "BackendInfo",
    "ExportFormat",
    "StandardNetwork",
    "backend_info",
    "backend_infos",
    "backend_title",
    "checkpoint_advice",
    "has_capability",
    "open_backend",
    "open_capability",
]

_LOG: Final = logging.getLogger(__name__)

DEFAULT_BACKEND: Final = "tensorflow"
"""Backend of a command or request that names none, where a spec would say ``auto``."""

INPUT_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "image": ("image-classification", "image-regression", "detection", "segmentation", "image-to-image"),
    "image-pair": ("image-pairs", "image-classification"),  # pairs are drawn from classes
    "table": ("table",),
    "text": ("text-classification",),
    "array": ("generic",),
}
"""Form of a network's input → kinds of datasets whose records have it."""


@dataclass(frozen=True)
class StandardNetwork:
    """A network that a backend offers by name.

    Args:
        name: name under which a spec asks for it.
        title: its name for people, with the year of its paper.
        task: name of the task that it learns, in the registry of tasks.
        input_shape: (H, W, C) of the images it was made for; others work where the layers leave something over. None
            for any, and where its input is no image.
        learning_rate: a rate to start from, with the optimizer of the recipe, else with momentum 0.9; None where there
            is no typical one.
        source: the paper.
        smallest_px: shortest side of an image that its layers leave something of.
        input: form of its input, in ``INPUT_KINDS``.
        other_tasks: what it learns as well, by the target that it is given.
        recipe: further fields of a spec that suit it, such as ``{"optimizer.name": "adam"}``.
        backbone: name of the standard network whose layers it begins with: pretrained weights of that one fit it too.
            Empty for none.
    """

    name: str
    title: str
    task: str = "classification"
    input_shape: tuple[int, int, int] | None = None
    learning_rate: float | None = None
    source: str = ""
    smallest_px: int = 1
    input: str = "image"
    other_tasks: tuple[str, ...] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict, hash=False)
    backbone: str = ""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of all tasks that it learns, its own first."""
        return (self.task, *self.other_tasks)


@dataclass(frozen=True)
class ExportFormat:
    """A format that a backend writes trained models in.

    Args:
        name: by which it is asked for.
        title: what people call it.
        use: what it is good for, one sentence.
        holds_preprocessing: whether a model can preprocess its inputs by itself; not where it is weights alone.
    """

    name: str
    title: str
    use: str
    holds_preprocessing: bool = True


@dataclass(frozen=True, kw_only=True)
class BackendInfo:
    """What is known of a backend before it is loaded. Its name is that of its entry point.

    Args:
        title: name of the framework for people, such as ``TensorFlow``.
        backend: the ``ziggurat.engine.backend.Backend``, as ``module:attribute``; a class, or an object.
        summary: what it is, one sentence; empty for nothing.
        unavailable: why this version cannot use it, as full sentences; empty where it can.
        rank: place in lists, and in the search of ``auto`` for a backend that knows a network; smaller comes first.
        accelerators: kinds of devices beside the CPU that it computes on, such as ``gpu``.
        networks: its standard networks.
        zoo: folder of their files, ``NAME.py`` each; None where they have none.
        takes_uint8: whether training batches may have uint8 images, of which its programs make float32.
        trains_on_nodes: whether processes of several nodes train one network together.
        takes_network_files: whether it trains networks of users' own files.
        network_template: text of a network file to begin with.
        file_names: names that only its network files use, such as ``tf``: how the framework of a file is told.
        capabilities: name of a protocol in ``ziggurat.engine.capabilities`` → what implements it, as
            ``module:attribute`` of a class or function that is called without arguments. For what a trained network
            can do, that is what opens it.
        export_formats: what ``SupportsExport`` writes.
        checkpoint_suffix: what follows the path of one of the framework's own checkpoints in the name of its file.
        weight_suffixes: how files of weights of the framework end that are checkpoints by themselves, as ``.pth``.
        model_suffixes: how the names of model files end that ``SupportsForeign`` opens; the default backend opens what
            no name tells.
        environment: variables that are set before it is loaded, unless they are set already.
        start_bytes: memory of a process that has imported it, on Linux; 0 if unknown. A test batch measures it.
        worker_variables: patterns of further variables of the studio that its workers get.
        requires: package to import → package to install; the first that is missing is named.
        extra: extra of Ziggurat that installs all of them; empty where none does.
    """

    title: str
    backend: str = ""
    summary: str = ""
    unavailable: str = ""
    rank: int = 100
    accelerators: tuple[str, ...] = ()
    networks: tuple[StandardNetwork, ...] = ()
    zoo: Path | None = None
    takes_uint8: bool = False
    trains_on_nodes: bool = False
    takes_network_files: bool = False
    network_template: str = field(default="", repr=False)
    file_names: tuple[str, ...] = ()
    capabilities: Mapping[str, str] = field(default_factory=dict)
    export_formats: tuple[ExportFormat, ...] = ()
    checkpoint_suffix: str = ""
    weight_suffixes: tuple[str, ...] = ()
    model_suffixes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    start_bytes: int = 0
    worker_variables: tuple[str, ...] = ()
    requires: Mapping[str, str] = field(default_factory=dict)
    extra: str = ""

    @property
    def network_names(self) -> tuple[str, ...]:
        """Names of its standard networks."""
        return tuple(network.name for network in self.networks)

    def network(self, name: str) -> StandardNetwork | None:
        """Return its standard network of a name; None where it has none."""
        return next((network for network in self.networks if network.name == name), None)

    def has_checkpoint(self, path: Path) -> bool:
        """Return whether a path is that of a checkpoint of the framework, as ``SupportsCheckpoints`` reads it."""
        if path.suffix in self.weight_suffixes:
            return path.is_file()
        return bool(self.checkpoint_suffix) and path.with_name(path.name + self.checkpoint_suffix).is_file()

    def set_environment(self, variables: MutableMapping[str, str]) -> None:
        """Set the variables that the framework reads when it starts, but those that are set already."""
        for name, value in self.environment.items():
            variables.setdefault(name, value)


def backend_info(name: str) -> BackendInfo:
    """Return what is known of a backend.

    Raises:
        UnknownNameError: where no backend of that name is installed.
        PluginError: where its entry does not load, or is no ``BackendInfo``.
    """
    found = load("backends", name)
    if not isinstance(found, BackendInfo):
        raise PluginError(
            f"The entry point `{name}` of `ziggurat.backends` must stand for a `BackendInfo`.",
            received=f"{found!r:.200}",
            advice="Name the backend in the `backend` of a `ziggurat.entities.backend_info.BackendInfo`.",
        )
    return found


@functools.cache
def backend_infos() -> Mapping[str, BackendInfo]:
    """Return name → information of all installed backends, by rank; one that does not load is left out.

    ``ziggurat doctor`` lists that one too, and says why.
    """
    found: dict[str, BackendInfo] = {}
    for name in dict.fromkeys(plugin.name for plugin in available("backends")):
        try:
            found[name] = backend_info(name)
        except ZigguratError as error:
            _LOG.warning("the backend %s is left out: %s", name, error)
    return MappingProxyType(dict(sorted(found.items(), key=lambda each: (each[1].rank, each[0]))))


def backend_title(name: str) -> str:
    """Return what people call the framework of a backend; the name itself where no such backend is installed."""
    info = backend_infos().get(name)
    return name if info is None else info.title


def checkpoint_advice() -> str:
    """Return how the path of a framework's own checkpoint is written, for errors."""
    known = [
        f"{info.title}'s is the path without `{info.checkpoint_suffix}`"
        for info in backend_infos().values()
        if info.checkpoint_suffix
    ]
    known += [
        f"{info.title}'s ends in {', '.join(info.weight_suffixes)}"
        for info in backend_infos().values()
        if info.weight_suffixes
    ]
    return f"{'; '.join(['Check the path', *known])}."


def has_capability(name: str, capability: str) -> bool:
    """Return whether a backend is installed and has a capability.

    Args:
        name: of the backend.
        capability: name of a protocol in ``ziggurat.engine.capabilities``.
    """
    info = backend_infos().get(name)
    return info is not None and capability in info.capabilities


def open_backend(name: str) -> Any:
    """Return the backend itself. This imports its framework, so it is for processes that hold one.

    Raises:
        UnknownNameError: where no backend of that name is installed.
        MissingDependencyError: where its framework is not installed.
        ConfigurationError: where this version cannot use it.
        PluginError: where it does not load.
    """
    info = backend_info(name)
    if info.unavailable:
        raise ConfigurationError(
            f"The backend `{name}` is not available.", advice=f"{info.unavailable} Use another backend."
        )
    found = _loaded(name, info, info.backend)
    return found() if isinstance(found, type) else found


def open_capability(name: str, capability: str) -> Any:
    """Return what a backend does beside training; None where it does not. This imports its framework.

    Args:
        name: of the backend.
        capability: name of a protocol in ``ziggurat.engine.capabilities``.

    Raises:
        ZigguratError: as ``open_backend``.
    """
    info = backend_info(name)
    target = info.capabilities.get(capability)
    return None if target is None else _loaded(name, info, target)()


def _loaded(name: str, info: BackendInfo, target: str) -> Any:
    info.set_environment(os.environ)
    return load("backends", name, target=target)
