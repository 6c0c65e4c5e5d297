"""Lookup of backend capabilities beside training; imports only the frameworks that are needed."""

from __future__ import annotations

from typing import TypeVar

from ziggurat.entities.backend_info import backend_infos, open_capability
from ziggurat.errors import ConfigurationError, PluginError

__all__ = ["capability", "provider_of"]

Offer = TypeVar("Offer")


def provider_of(backend: str, offer: type[Offer], what: str) -> Offer:
    """Return the object of a backend that offers something.

    Args:
        backend: its name.
        offer: the protocol, of ``ziggurat.engine.capabilities``.
        what: it in words, to end the sentence "The backend … does not …".

    Raises:
        UnknownNameError: where there is no such backend.
        MissingDependencyError: where its framework is not installed.
        ConfigurationError: where it does not offer that.
    """
    found = capability(backend, offer)
    if found is None:
        others = [name for name, info in backend_infos().items() if offer.__name__ in info.capabilities]
        raise ConfigurationError(
            f"The backend `{backend}` does not {what}.",
            advice=f"Backends that do: {', '.join(others)}." if others else "",
        )
    return found


def capability(backend: str, offer: type[Offer]) -> Offer | None:
    """Return the object of a backend that offers something, or None where it does not.

    Args:
        backend: its name.
        offer: the protocol, of ``ziggurat.engine.capabilities``.

    Raises:
        UnknownNameError: where there is no such backend.
        MissingDependencyError: where its framework is not installed.
        PluginError: where the backend names something that does not implement the protocol.
    """
    found = open_capability(backend, offer.__name__)
    if found is not None and not isinstance(found, offer):
        raise PluginError(
            f"What the backend `{backend}` names as its `{offer.__name__}` must implement that protocol.",
            received=type(found).__name__,
            advice="Update the package that brings the backend.",
        )
    return found
