"""Networks that are not trained yet: list the standard ones, describe one, or run it on one batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ziggurat.entities.backend_info import DEFAULT_BACKEND, backend_info
from ziggurat.entities.leftovers import temporary_folder
from ziggurat.errors import NetworkCodeError, UsageError
from ziggurat.workspace.passwords import TooBusyError
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.measurements import Measurements, network_key
from ziggurat.workspace.tasks import Tasks
from ziggurat.zoo import network_path
from ziggurat.zoo.network_task import kinds_of

__all__ = ["NETWORKS_AT_ONCE", "Networks", "network_text", "turn"]

NETWORKS_AT_ONCE: Final = 2
"""Networks that are built at a time: each takes seconds and a lot of memory."""

_LIMIT_S: Final = 120.0
"""How long a person's network may take to be described or debugged."""

_WAIT_S: Final = 30.0


class Networks:
    """Networks that are built to be looked at. Any thread may call any method.

    Args:
        jobs: of every kind.
        tasks: short processes around a training.
        kept: stores the results.
    """

    def __init__(self, jobs: Jobs, tasks: Tasks, kept: Measurements) -> None:
        self._jobs = jobs
        self._tasks = tasks
        self._kept = kept
        self._free = threading.BoundedSemaphore(NETWORKS_AT_ONCE)

    def describe(
        self, network: str = "", *, text: str = "", time_limit_s: float = _LIMIT_S, **options: Any
    ) -> dict[str, Any]:
        """Describe a standard network, or the text of a network file: layers, shapes, parameters, cost.

        Args:
            network: name of a standard network; unused where there is a text.
            text: of a network file.
            time_limit_s: how long it may take.
            options: see ``ziggurat.workspace.tasks.Tasks.describe``; those that are None are left out.
        """
        backend, key = options.get("backend") or DEFAULT_BACKEND, network_key(network, text or None)
        with turn(self._free, _WAIT_S), _place_of(network, text) as place:
            try:
                found = self._tasks.describe(place, time_limit_s=time_limit_s, **_given(options))
            except NetworkCodeError as error:
                if options.get("input_shape"):  # the network may fit another input
                    self._kept.note_failure(backend, key, options["input_shape"], options.get("classes"), str(error))
                raise
        self._kept.note_description(backend, key, found)
        return {**found, "network": network}

    def debug(
        self,
        network: str = "",
        *,
        text: str = "",
        dataset: str = "",
        time_limit_s: float = _LIMIT_S,
        **options: Any,
    ) -> dict[str, Any]:
        """Run a standard network, or the text of a network file, eagerly on one real batch.

        Args:
            network: name of a standard network; unused where there is a text.
            text: of a network file.
            dataset: id of a dataset that is done; empty for handwritten digits.
            time_limit_s: how long it may take.
            options: see ``ziggurat.workspace.tasks.Tasks.debug``; those that are None are left out.
        """
        chosen = {**_given(options), "data": self._jobs.of_kind(dataset, "dataset").folder if dataset else "digits"}
        with turn(self._free, _WAIT_S), _place_of(network, text) as place:
            found = self._tasks.debug(place, time_limit_s=time_limit_s, **chosen)
        return {**found, "network": network}


@contextmanager
def turn(free: threading.BoundedSemaphore, wait_s: float) -> Iterator[None]:
    """Take a turn for as long as the block runs.

    Args:
        free: of ``NETWORKS_AT_ONCE`` turns.
        wait_s: how long one waits for a turn.

    Raises:
        TooBusyError: where none became free in time.
    """
    if not free.acquire(timeout=wait_s):
        raise TooBusyError(
            f"At most {NETWORKS_AT_ONCE} networks are looked at at a time.",
            advice="Try again in a moment.",
            details={"retry_after_s": 10},
        )
    try:
        yield
    finally:
        free.release()


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def _place_of(network: str, text: str) -> Iterator[str]:
    """Give the text of a network file a place for as long as a task looks at it; a name stays what it is."""
    if text:
        with temporary_folder("network") as folder:
            path = Path(folder) / "network.py"
            path.write_text(text, encoding="utf-8")
            yield str(path)
        return
    if not network or "/" in network or network.endswith(".py"):
        raise UsageError(
            "A network is the name of a standard one, or the text of a file.",
            received=f"`{network}`",
            advice="Send the file's text.",
        )
    yield network


def standard_networks(backend: str) -> list[dict[str, Any]]:
    """Return the standard networks of a backend, as JSON values.

    Raises:
        UnknownNameError: where no backend of that name is installed.
    """
    return [{**asdict(network), "kinds": kinds_of(network)} for network in backend_info(backend).networks]


def network_text(name: str, backend: str) -> str:
    """Return the source of a standard network.

    Raises:
        UnknownNameError: where there is none of that name.
    """
    return network_path(name, backend).read_text(encoding="utf-8")
