"""Owns finding what a backend offers beside training, so that only the frameworks that are needed are imported."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, TypeVar

from ziggurat.engine.tasks import Debugs
from ziggurat.errors import ConfigurationError, ZigguratError
from ziggurat.worker.build import load_backend

__all__ = ["PROVIDERS", "ProviderEntry", "offer_of", "provider_of"]

Offer = TypeVar("Offer")


@dataclass(frozen=True)
class ProviderEntry:
    """Where a backend's offers stand.

    Args:
        tasks: class of all of them but debugging, as ``module:attribute``.
        debugging: class that debugs; a process uses it alone.
        before_debugging: function to call before that is imported.
        environment: variables that quieten the framework, unless a person has set them.
    """

    tasks: str
    debugging: str = ""
    before_debugging: str = ""
    environment: dict[str, str] = field(default_factory=dict)


PROVIDERS: Final = {
    "tensorflow": ProviderEntry(
        tasks="ziggurat.backends.tensorflow.export.provider:TensorFlowTasks",
        debugging="ziggurat.backends.tensorflow.export.eager:TensorFlowDebugging",
        before_debugging="ziggurat.backends.tensorflow.mode:choose_eager",
        environment={"TF_CPP_MIN_LOG_LEVEL": "3"},
    ),
}
"""Backend → its offers. Any other backend is asked itself: it may have the methods of ``ziggurat.engine.tasks``."""


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
    found = offer_of(backend, offer)
    if found is None:
        others = [name for name in PROVIDERS if name != backend]
        raise ConfigurationError(
            f"The backend `{backend}` does not {what}.",
            advice=f"Backends that do: {', '.join(others)}." if others else "",
        )
    return found


def offer_of(backend: str, offer: type[Offer]) -> Offer | None:
    """Return the object of a backend that offers something, or None where it does not.

    Args:
        backend: its name.
        offer: the protocol.

    Raises:
        UnknownNameError: where there is no such backend.
        MissingDependencyError: where its framework is not installed.
    """
    with _quiet_start():
        found = _found(backend, offer)
    return found if isinstance(found, offer) else None


def _found(backend: str, offer: type[Any]) -> Any:
    entry = PROVIDERS.get(backend)
    if entry is None:
        return load_backend(backend)
    for name, value in entry.environment.items():
        os.environ.setdefault(name, value)
    if offer is not Debugs:
        return _attribute(entry.tasks)()
    if not entry.debugging:
        return None
    if entry.before_debugging:
        _attribute(entry.before_debugging)()
    return _attribute(entry.debugging)()


def _attribute(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Hold back what native code writes while a framework starts; it is shown where the start fails."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as noise:
        os.dup2(noise.fileno(), 2)
        try:
            yield
        except ZigguratError:
            raise
        except BaseException:
            sys.stderr.flush()
            noise.seek(0)
            os.write(kept, noise.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
