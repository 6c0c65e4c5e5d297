"""Lookup of backend capabilities beside training; imports only the frameworks that are needed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeVar

from ziggurat.engine.capabilities import SupportsDebug
from ziggurat.errors import ConfigurationError
from ziggurat.worker.build import load_backend

__all__ = ["PROVIDERS", "ProviderEntry", "capability", "provider_of"]

Offer = TypeVar("Offer")


@dataclass(frozen=True)
class ProviderEntry:
    """Where a backend's offers stand.

    Args:
        tasks: class of all of them but debugging, as ``module:attribute``.
        debugging: class that debugs; a process uses it alone.
        before_debugging: function to call before that is imported.
    """

    tasks: str
    debugging: str = ""
    before_debugging: str = ""


PROVIDERS: Final = {
    "tensorflow": ProviderEntry(
        tasks="ziggurat.backends.tensorflow.export.provider:TensorFlowTasks",
        debugging="ziggurat.backends.tensorflow.export.eager:TensorFlowDebugging",
        before_debugging="ziggurat.backends.tensorflow.mode:choose_eager",
    ),
}
"""Backend → its capabilities. Any other backend is asked itself: it may implement ``ziggurat.engine.capabilities``."""


def provider_of(backend: str, offer: type[Offer], what: str) -> Offer:
    """Return the object of a backend that offers something.

    Args:
        backend: its name.
        offer: the protocol.
        what: it in words, to end the sentence "The backend … does not …".

    Raises:
        UnknownNameError: where there is no such backend.
        MissingDependencyError: where its framework is not installed.
        ConfigurationError: where it does not offer that.
    """
    found = capability(backend, offer)
    if found is None:
        others = [name for name in PROVIDERS if name != backend]
        raise ConfigurationError(
            f"The backend `{backend}` does not {what}.",
            advice=f"Backends that do: {', '.join(others)}." if others else "",
        )
    return found


def capability(backend: str, offer: type[Offer]) -> Offer | None:
    """Return the object of a backend that offers something, or None where it does not.

    Args:
        backend: its name.
        offer: the protocol.

    Raises:
        UnknownNameError: where there is no such backend.
        MissingDependencyError: where its framework is not installed.
    """
    found = _found(backend, offer)
    return found if isinstance(found, offer) else None


def _found(backend: str, offer: type[Any]) -> Any:
    entry = PROVIDERS.get(backend)
    if entry is None:
        return load_backend(backend)
    if offer is not SupportsDebug:
        return _attribute(entry.tasks)()
    if not entry.debugging:
        return None
    if entry.before_debugging:
        _attribute(entry.before_debugging)()
    return _attribute(entry.debugging)()


def _attribute(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
