"""Backends by the networks that they know and by what is installed, told without loading a framework."""

from __future__ import annotations

import ast
import functools
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ziggurat.entities.backend_info import backend_info, backend_infos
from ziggurat.errors import ConfigurationError, MissingDependencyError, UnknownNameError, ZigguratError
from ziggurat.specs import FileNetwork, TrainSpec

__all__ = ["AUTO", "backend_for", "check_backend", "file_backend", "why_not_usable", "with_backend"]

AUTO: Final = "auto"
"""Stands in a spec for the first installed backend that knows the network."""


def why_not_usable(backend: str) -> ZigguratError | None:
    """Return why a backend cannot be used, and what to do; None where this version has it and its packages are there.

    Raises:
        UnknownNameError: where no backend of that name is installed.
    """
    info = backend_info(backend)
    if info.unavailable:
        return ConfigurationError(f"The backend `{backend}` is not available.", advice=info.unavailable)
    missing = next((package for module, package in info.requires.items() if not _is_there(module)), "")
    return MissingDependencyError(missing, extra=info.extra, purpose=info.title) if missing else None


def check_backend(backend: str, network: str = "") -> None:
    """Refuse a backend that is not there, or does not know the network.

    Args:
        backend: its name.
        network: name of a standard network; empty for a file.

    Raises:
        UnknownNameError: if the backend is not registered, or it has no network of the name.
        ConfigurationError: where this version does not have it.
        MissingDependencyError: where its framework is not installed.
    """
    info = backend_info(backend)
    problem = why_not_usable(backend)
    if problem is not None:
        raise problem
    if network and network not in info.network_names:
        raise UnknownNameError(f"standard network of the backend {backend}", network, info.network_names)


def backend_for(network: str = "", *, on_nodes: bool = False) -> str:
    """Return the first installed backend that knows a network.

    Args:
        network: name of a standard network; empty for a file, which needs a framework.
        on_nodes: whether those that train on several nodes come first.

    Raises:
        UnknownNameError: where no backend has a network of the name.
        MissingDependencyError: where those that know it are not installed.
    """
    infos = {name: info for name, info in backend_infos().items() if not info.unavailable}
    knowing = [
        name for name, info in infos.items() if (network in info.network_names if network else info.takes_network_files)
    ]
    if not knowing:
        known = [each for info in infos.values() for each in info.network_names]
        raise UnknownNameError("standard network", network, known)
    if on_nodes:
        knowing.sort(key=lambda name: not infos[name].trains_on_nodes)
    problems = {name: why_not_usable(name) for name in knowing}
    for name, problem in problems.items():
        if problem is None:
            return name
    first = problems[knowing[0]]
    assert first is not None
    raise first


def with_backend(spec: TrainSpec) -> TrainSpec:
    """Return the spec with a backend in place of ``auto``; raises as ``backend_for``."""
    if spec.backend != AUTO:
        return spec
    network = spec.network
    if isinstance(network, FileNetwork):
        found = file_backend(network)
    else:
        found = backend_for(network.name, on_nodes=spec.nodes > 1)
    return spec.model_copy(update={"backend": found})


def file_backend(network: FileNetwork) -> str:
    """Return the backend that a network file is written for: the one most of whose own names it uses.

    Raises:
        MissingDependencyError: where nothing tells, and no framework is installed.
    """
    try:
        text = Path(network.path).read_text(encoding="utf-8") if network.text is None else network.text
    except (OSError, ValueError):  # other checks tell of it
        text = ""
    used = _names_in(text)
    counts = {
        name: len(used.intersection(info.file_names))
        for name, info in backend_infos().items()
        if info.takes_network_files and not info.unavailable
    }
    best = max(counts, key=lambda name: counts[name], default="")
    return best if counts.get(best) else backend_for()


@functools.lru_cache(maxsize=256)
def _names_in(text: str) -> frozenset[str]:
    """Return the names that a file uses, and the packages that it imports; nothing of one that cannot be parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    found: set[str] = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module:
            found.add(each.module.partition(".")[0])
    return frozenset(found)


def _is_there(module: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return find_spec(module) is not None
