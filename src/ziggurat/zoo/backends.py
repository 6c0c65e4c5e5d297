"""Backends by the networks that they know and by what is installed, told without loading a framework."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

from ziggurat.entities.backend_info import backend_info, backend_infos
from ziggurat.errors import ConfigurationError, MissingDependencyError, UnknownNameError, ZigguratError
from ziggurat.specs import FileNetwork, TrainSpec

__all__ = ["AUTO", "backend_for", "check_backend", "why_not_usable", "with_backend"]

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


def backend_for(network: str = "") -> str:
    """Return the first installed backend that knows a network.

    Args:
        network: name of a standard network; empty for a file, which needs a framework.

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
    return spec.model_copy(update={"backend": backend_for("" if isinstance(network, FileNetwork) else network.name)})


def _is_there(module: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return find_spec(module) is not None
