"""Backends by the networks that they know and by what is installed, told without loading a framework."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from ziggurat.errors import MissingDependencyError, UnknownNameError
from ziggurat.plugins import available
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.zoo import STANDARD_NETWORKS, network_path

__all__ = [
    "AUTO",
    "NUMPY_NETWORKS",
    "backend_for",
    "check_backend",
    "known_networks",
    "why_not_installed",
    "with_backend",
]

AUTO: Final = "auto"
"""Stands in a spec for the first installed backend that knows the network."""

NUMPY_NETWORKS: Final = ("mlp", "linear")
"""Networks of the NumPy backend, which no other backend has."""


@dataclass(frozen=True)
class _Framework:
    name: str
    modules: tuple[str, ...]


_FRAMEWORKS: Final = {
    "tensorflow": _Framework("TensorFlow", ("tensorflow", "tf_keras", "tf_slim")),
    "torch": _Framework("PyTorch", ("torch",)),
}
"""Backend → framework that it needs; in the order in which they are chosen."""


def known_networks(backend: str) -> tuple[str, ...] | None:
    """Return the names of the networks that a backend knows; None where it is not one of Ziggurat's own."""
    if backend == "null":
        return NUMPY_NETWORKS
    if backend not in _FRAMEWORKS:
        return None
    return tuple(name for name in STANDARD_NETWORKS if _has_file(name, backend))


def why_not_installed(backend: str) -> MissingDependencyError | None:
    """Return what is missing for a backend, and how it is installed; None where its packages are there."""
    framework = _FRAMEWORKS.get(backend)
    missing = next((each for each in framework.modules if not _is_there(each)), "") if framework else ""
    if framework is None or not missing:
        return None
    return MissingDependencyError(missing.replace("_slim", "-slim"), extra=backend, purpose=framework.name)


def check_backend(backend: str, network: str = "") -> None:
    """Refuse a backend that is not there, or does not know the network.

    Args:
        backend: its name.
        network: name of a standard network; empty for a file.

    Raises:
        UnknownNameError: if the backend is not registered, or it has no network of the name.
        MissingDependencyError: where its framework is not installed.
    """
    registered = [plugin.name for plugin in available("backends")]
    if backend not in registered:
        raise UnknownNameError("backend", backend, registered)
    missing = why_not_installed(backend)
    if missing is not None:
        raise missing
    known = known_networks(backend)
    if network and known is not None and network not in known:
        raise UnknownNameError(f"standard network of the backend {backend}", network, known)


def backend_for(network: str = "") -> str:
    """Return the first installed backend that knows a network.

    Args:
        network: name of a standard network; empty for a file, which needs a framework.

    Raises:
        UnknownNameError: where no backend has a network of the name.
        MissingDependencyError: where those that know it are not installed.
    """
    registered = {plugin.name for plugin in available("backends")}
    candidates = [*_FRAMEWORKS, "null"] if network else list(_FRAMEWORKS)
    known = {backend: known_networks(backend) or () for backend in candidates if backend in registered}
    knowing = [backend for backend, networks in known.items() if not network or network in networks]
    if not knowing:
        raise UnknownNameError("standard network", network, [name for names in known.values() for name in names])
    missing = {backend: why_not_installed(backend) for backend in knowing}
    for backend, error in missing.items():
        if error is None:
            return backend
    first = missing[knowing[0]]
    assert first is not None
    raise first


def with_backend(spec: TrainSpec) -> TrainSpec:
    """Return the spec with a backend in place of ``auto``; raises as ``backend_for``."""
    if spec.backend != AUTO:
        return spec
    network = spec.network
    return spec.model_copy(update={"backend": backend_for("" if isinstance(network, FileNetwork) else network.name)})


def _has_file(name: str, framework: str) -> bool:
    try:
        network_path(name, framework)
    except UnknownNameError:
        return False
    return True


def _is_there(module: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return find_spec(module) is not None
