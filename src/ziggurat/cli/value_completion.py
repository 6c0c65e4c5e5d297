"""Values that a shell completes: names of what the workspace and its studio have, columns of the filter, and choices.

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
from ziggurat.cli.word_completion import Complete, complete_among, given_workspace, workspace_of
from ziggurat.entities.backend_info import backend_infos
from ziggurat.errors import ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.plugins import available
from ziggurat.settings import load_settings
from ziggurat.workspace.folder_names import folder_names
from ziggurat.workspace.server_process import running_server

__all__ = [
    "complete_checkpoint",
    "complete_condition",
    "complete_curve",
    "complete_data",
    "complete_deleted",
    "complete_field",
    "complete_folder",
    "complete_format",
    "complete_framework",
    "complete_job",
    "complete_network",
    "complete_of_jobs",
    "complete_sort",
    "complete_upload",
]


_LISTED: Final = 200
_WAIT_S: Final = 1.0
_PLAIN: Final = re.compile(r"[\w.@%+:,/-]+")
"""Texts that no shell cuts into words or reads as more than a text."""


def complete_field(path: str, choices: Sequence[str]) -> Complete | None:
    """Return what completes the flag of a spec's field; None where any text may stand there."""
    if path in _FIELDS:
        return _FIELDS[path]
    return complete_among(lambda: choices) if choices else None


def complete_deleted(context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return ids and names of what is in the trash that begin with a text."""
    return _matching(_asked(context, lambda client: client.trash()), incomplete)


def complete_upload(context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return ids of the uploads that begin with a text, with their names beside them."""
    uploads = _asked(context, lambda client: client.datasets.uploads())
    return [CompletionItem(each["id"], help=each["name"]) for each in uploads if each["id"].startswith(incomplete)]


def complete_job(context: click.Context, incomplete: str, kind: str = "") -> list[CompletionItem]:
    """Return ids and names of the newest jobs, of one kind or of all, that begin with a text."""
    return _matching(_jobs(context, kind=kind) if kind else _jobs(context), incomplete)


def complete_network(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return names of networks, or the files of a place that is typed."""
    found = complete_among(_networks)(context, parameter, incomplete)
    return found or [CompletionItem(incomplete, type="file")]


def _networks() -> set[str]:
    return {name for info in backend_infos().values() for name in info.network_names}


def complete_data(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the digits, and the datasets of the workspace and the studio; or the files of a place that is typed."""
    found = [CompletionItem("digits")] if "digits".startswith(incomplete) else []
    found += _matching(_jobs(context, kind="dataset", state="done"), incomplete)
    known = {each.value for each in found}
    found += [each for each in _folders(context, incomplete, "dataset") if each.value not in known]
    return found or [CompletionItem(incomplete, type="file")]


def complete_folder(context: click.Context, incomplete: str, kind: str = "") -> list[CompletionItem]:
    """Return names and ids of jobs of the workspace that begin with a text, or the files of a place that is typed."""
    return _folders(context, incomplete, kind) or [CompletionItem(incomplete, type="file")]


def complete_framework(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of the frameworks."""
    return _FIELDS["backend"](context, parameter, incomplete)


def complete_format(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of the formats of datasets."""
    return complete_among(lambda: [each.name for each in available("importers")])(context, parameter, incomplete)


def complete_of_jobs(field: str) -> Complete:
    """Return what completes the values that a field of the newest jobs has, such as ``project``."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        values = {text for job in _jobs(context) for text in _texts(job.get(field)) if text.startswith(incomplete)}
        return [CompletionItem(each) for each in sorted(values) if _PLAIN.fullmatch(each)]

    return complete


def complete_condition(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the columns that the filter takes, as the beginning of a condition; behind a sign, the values of jobs."""
    name, sign, begun = incomplete.partition("=")
    if not sign:
        return [CompletionItem(f"{each}=") for each in _columns(context) if each.startswith(incomplete)]
    values = {text for job in _jobs(context) for text in _texts(_flat(job).get(name)) if text.startswith(begun)}
    return [CompletionItem(f"{name}={each}") for each in sorted(values) if _PLAIN.fullmatch(each)]


def complete_sort(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the columns by which jobs are sorted; with ``-``, large values first."""
    sign = "-" if incomplete.startswith("-") else ""
    return [CompletionItem(sign + each) for each in _columns(context) if (sign + each).startswith(incomplete)]


def complete_curve(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the metrics of the job that stands before."""
    given = context.params.get("job_id")
    jobs = [job for job in _jobs(context) if given in (job["id"], job["name"])]
    return [CompletionItem(tag) for job in jobs for tag in job["scalars"] if tag.startswith(incomplete)]


def complete_checkpoint(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return names of checkpoints: those of every job, and the folders of the one that stands before."""
    names = ["best", "latest"]
    folder = context.params.get("folder")
    if isinstance(folder, Path):
        with suppress(OSError):
            names += sorted(each.name for each in JobFolder(folder).checkpoints.iterdir() if each.is_dir())
    return [CompletionItem(each) for each in names if each.startswith(incomplete)]


_FIELDS: Final[Mapping[str, Complete]] = {
    "backend": complete_among(lambda: ["auto", *backend_infos()]),
    "network": complete_network,
    "data": complete_data,
}


_COLUMNS: Final = (
    *("name", "id", "kind", "state", "outcome", "project", "dataset", "owner", "framework", "network", "group"),
    *("priority", "created", "started", "ended", "elapsed", "attempt", "epoch", "global_step", "steps_per_s"),
)


def _columns(context: click.Context) -> list[str]:
    """Return the fields of every job, and the settings and metrics of the newest ones."""
    return list(dict.fromkeys((*_COLUMNS, *(name for job in _jobs(context) for name in sorted(_flat(job, own=False))))))


def _flat(job: Mapping[str, Any], *, own: bool = True) -> dict[str, Any]:
    """Return column → value of a job: its own fields, its settings, and its metrics."""
    found: dict[str, Any] = {name: job.get(name) for name in _COLUMNS} if own else {}

    def add(value: Any, path: str) -> None:
        if isinstance(value, Mapping):
            for name, part in value.items():
                add(part, f"{path}.{name}" if path else str(name))
        elif value not in (None, "", []):
            found.setdefault(path, value)

    add({name: value for name, value in job["spec"].items() if name not in ("kind", "version")}, "")
    return {**dict.fromkeys(job["scalars"]), **found}


def _texts(value: Any) -> list[str]:
    """Return a value as texts; none for what is no text and no number."""
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [str(value)] if isinstance(value, str | int | float) and value != "" else []


def _folders(context: click.Context, incomplete: str, kind: str) -> list[CompletionItem]:
    """Return names of folders of the workspace that are one word, and ids with the name beside them otherwise."""
    with suppress(ZigguratError, OSError):
        found = folder_names(workspace_of(context), kind)
        jobs = [{"id": each.path.name, "name": each.name, "kind": each.kind} for each in found]
        return _matching(reversed(jobs[-_LISTED:]), incomplete)
    return []


def _matching(jobs: Iterable[Mapping[str, Any]], incomplete: str) -> list[CompletionItem]:
    """Return names that are one word, and ids with the name beside them where it is not."""
    found = dict[str, str]()
    for job in jobs:
        name = job["name"]
        is_word = _PLAIN.fullmatch(name) is not None
        if is_word and name.startswith(incomplete):
            found.setdefault(name, ", ".join(filter(None, (job["kind"], job.get("state", "")))))
        elif job["id"].startswith(incomplete) and (incomplete or not is_word):
            found[job["id"]] = name
    return [CompletionItem(value, help=text) for value, text in found.items()]


def _jobs(context: click.Context, **those: str) -> list[Mapping[str, Any]]:
    """Return the newest jobs of the studio that is asked in this place; none where none can be asked."""
    return _asked(context, lambda client: client.jobs(limit=_LISTED, **those))


def _asked(context: click.Context, ask: Callable[[Any], Iterable[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """Return what a client of the studio answers that is asked in this place; nothing where none can be asked."""
    with suppress(ZigguratError, OSError, ImportError):
        settings = load_settings(flags={"workspace": given_workspace(context)})
        state = running_server(settings.workspace)
        asked_here = settings.origins.get("workspace") == "--workspace"
        address = "" if asked_here else settings.server
        address = address or (state.address if state is not None and state.is_here else "")
        if not address:
            return []
        with studio_module("ziggurat.client").Client(address, settings.token_for(address), timeout_s=_WAIT_S) as client:
            return list(islice(ask(client), _LISTED))
    return []
