"""Values that a shell completes: networks, frameworks, data, and the jobs and datasets of the studio that runs.

A shell asks at each press of a key, so nothing here starts a process, waits long, or shows an error: what cannot be
asked completes to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from ziggurat.cli.application import studio_module
from ziggurat.entities.backend_info import backend_infos
from ziggurat.errors import ZigguratError
from ziggurat.settings import load_settings
from ziggurat.workspace.server_process import running_server

__all__ = ["complete_field", "complete_job", "complete_network"]

_Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_LISTED: Final = 200
_WAIT_S: Final = 1.0
_PLAIN: Final = re.compile(r"[\w.@%+:,/-]+")
"""Texts that no shell cuts into words or reads as more than a text."""


def complete_field(path: str, choices: Sequence[str]) -> _Complete | None:
    """Return what completes the flag of a spec's field; None where any text may stand there."""
    if path in _FIELDS:
        return _FIELDS[path]
    return _among(lambda: choices) if choices else None


def complete_job(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return ids and names of the newest jobs that begin with a text."""
    return _matching(_jobs(context), incomplete)


def complete_network(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return names of networks, or the files of a place that is typed."""
    found = _among(_networks)(context, parameter, incomplete)
    return found or [CompletionItem(incomplete, type="file")]


def _among(known: Callable[[], Iterable[str]]) -> _Complete:
    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(ZigguratError):
            return [CompletionItem(each) for each in sorted(known()) if each.startswith(incomplete)]
        return []

    return complete


def _networks() -> set[str]:
    return {name for info in backend_infos().values() for name in info.network_names}


def _data(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The digits, datasets of the studio, or the folders of a place that is typed."""
    found = [CompletionItem("digits")] if "digits".startswith(incomplete) else []
    found += _matching(_jobs(context, kind="dataset", state="done"), incomplete)
    return found or [CompletionItem(incomplete, type="file")]


_FIELDS: Final[Mapping[str, _Complete]] = {
    "backend": _among(lambda: ["auto", *backend_infos()]),
    "network": complete_network,
    "data": _data,
}


def _matching(jobs: Iterable[Mapping[str, Any]], incomplete: str) -> list[CompletionItem]:
    """Return names that are one word, and ids with the name beside them where it is not."""
    found = dict[str, str]()
    for job in jobs:
        name = job["name"]
        is_word = _PLAIN.fullmatch(name) is not None
        if is_word and name.startswith(incomplete):
            found.setdefault(name, f"{job['kind']}, {job['state']}")
        elif job["id"].startswith(incomplete) and (incomplete or not is_word):
            found[job["id"]] = name
    return [CompletionItem(value, help=text) for value, text in found.items()]


def _jobs(context: click.Context, **those: str) -> list[Mapping[str, Any]]:
    """Return the newest jobs of the studio that is asked in this place; none where none can be asked."""
    with suppress(ZigguratError, OSError, ImportError):
        settings = load_settings(flags={"workspace": _workspace(context)})
        state = running_server(settings.workspace)
        asked_here = settings.origins.get("workspace") == "--workspace"
        address = "" if asked_here else settings.server
        address = address or (state.address if state is not None and state.is_here else "")
        if not address:
            return []
        with studio_module("ziggurat.client").Client(address, settings.token_for(address), timeout_s=_WAIT_S) as client:
            return list(islice(client.jobs(limit=_LISTED, **those), _LISTED))
    return []


def _workspace(context: click.Context) -> Path | None:
    given = context.find_root().params.get("workspace")
    return Path(given) if given else None
