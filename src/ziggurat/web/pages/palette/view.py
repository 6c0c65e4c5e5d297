"""View model of the command palette: jobs and published models by name, and commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.entities import Identity, Job, JobFilter
from ziggurat.workspace.studio import Studio

__all__ = ["MOST_RESULTS", "Group", "Item", "found_items"]

MOST_RESULTS: Final = 20
"""Results of one search, of all groups together."""

_RECENT: Final = 6
_OF_JOBS: Final = 12
_PUBLISHED: Final = 4
_GROUPS: Final = (
    ("train", "Runs"),
    ("program", "Runs"),
    ("dataset", "Datasets"),
    ("evaluate", "Evaluations"),
    ("infer", "Evaluations"),
)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line of the palette.

    Args:
        title: what is shown.
        path: of the page that it opens, from the studio's root; empty for an action of the browser.
        icon: name of its icon.
        hint: state, network or key, shown at the right.
        act: name of an action of the browser: ``theme``, ``shortcuts``; empty for a page.
        job: that it opens; None for a command.
    """

    title: str
    path: str = ""
    icon: str = "chevron-right"
    hint: str = ""
    act: str = ""
    job: Job | None = None


@dataclass(frozen=True, kw_only=True)
class Group:
    """Lines of one kind.

    Args:
        title: heading.
        items: at least one.
    """

    title: str
    items: Sequence[Item]


@dataclass(frozen=True, kw_only=True)
class _Command:
    item: Item
    words: str = ""
    role: str = "viewer"
    scope: str = "read"


_COMMANDS: Final = (
    _Command(
        item=Item(title="New model", path="/models/new", icon="plus"), words="train run", role="trainer", scope="write"
    ),
    _Command(
        item=Item(title="New dataset", path="/datasets/new", icon="plus"),
        words="import data",
        role="trainer",
        scope="write",
    ),
    _Command(
        item=Item(title="New program", path="/programs/new", icon="plus"),
        words="submit script python run",
        role="trainer",
        scope="write",
    ),
    _Command(item=Item(title="Go to runs", path="/", icon="list"), words="home jobs queue"),
    _Command(item=Item(title="Go to datasets", path="/datasets", icon="folder"), words="data"),
    _Command(item=Item(title="Go to models", path="/models", icon="grid"), words="published pretrained"),
    _Command(
        item=Item(title="Go to pretrained weights", path="/pretrained", icon="download"),
        words="published download add safetensors fine-tune",
    ),
    _Command(item=Item(title="Go to evaluations", path="/evaluations", icon="check-circle"), words="tests results"),
    _Command(item=Item(title="Compare runs", path="/compare", icon="compare"), words="curves differences"),
    _Command(item=Item(title="Settings", path="/settings", icon="gear"), words="folders", role="admin", scope="admin"),
    _Command(
        item=Item(title="Users", path="/settings/users", icon="user"), words="accounts", role="admin", scope="admin"
    ),
    _Command(item=Item(title="API tokens", path="/settings/tokens", icon="lock"), words="settings program"),
    _Command(item=Item(title="My account", path="/account", icon="user"), words="password keyboard accessibility"),
    _Command(item=Item(title="Switch theme", icon="sun", act="theme"), words="dark light system"),
    _Command(item=Item(title="Keyboard shortcuts", icon="question", act="shortcuts", hint="?"), words="keys help"),
    _Command(item=Item(title="Machines", path="/machines", icon="server"), words="nodes cluster Ray GPUs queue"),
    _Command(item=Item(title="Go to the trash", path="/trash", icon="trash"), words="deleted restore undo"),
    _Command(item=Item(title="About this studio", path="/about", icon="info"), words="version diagnostics machine"),
    _Command(item=Item(title="REST API", path="/api/v1/docs", icon="bolt"), words="openapi program"),
)


def found_items(studio: Studio, identity: Identity | None, text: str) -> list[Group]:
    """Return what a search finds; without a text, the newest jobs and all commands.

    Args:
        studio: where it is searched.
        identity: who searches; commands that need another role are left out.
        text: parts of a name, an id, or a command.
    """
    wanted = text.strip()
    if not wanted:
        recent = studio.jobs.page(JobFilter(limit=_RECENT)).jobs
        groups = [("Recent", [_job_item(job) for job in recent])]
    else:
        jobs = _ranked(studio.jobs.page(JobFilter(text=wanted, limit=MOST_RESULTS)).jobs, wanted)[:_OF_JOBS]
        groups = [
            (title, [_job_item(job) for job in jobs if dict(_GROUPS).get(job.kind, "Other jobs") == title])
            for title in (*dict.fromkeys(dict(_GROUPS).values()), "Other jobs")
        ]
        groups.insert(1, ("Published models", _published(studio, wanted)))
    groups.append(("Commands", _commands(identity, wanted)))
    left, shown = MOST_RESULTS, []
    for title, items in groups:
        if chosen := list(items)[:left]:
            shown.append(Group(title=title, items=chosen))
            left -= len(chosen)
    return shown


def _ranked(jobs: Iterable[Job], text: str) -> list[Job]:
    """Return jobs whose name begins with the text first, then those that have it in the name, then all others."""
    words = text.casefold()

    def rank(job: Job) -> int:
        name = job.name.casefold()
        return 0 if name.startswith(words) else 1 if words in name else 2

    return sorted(jobs, key=rank)


def _job_item(job: Job) -> Item:
    icons = {"train": "bolt", "program": "bolt", "dataset": "folder", "evaluate": "check-circle", "infer": "image"}
    return Item(title=job.name or job.id, icon=icons.get(job.kind, "list"), hint=job.network or job.kind, job=job)


def _published(studio: Studio, text: str) -> list[Item]:
    found = [each for each in studio.published.all() if text.casefold() in each.name.casefold()]
    return [
        Item(title=each.name, path=f"/models/{each.job}/take-away", icon="star", hint=each.checkpoint)
        for each in found[:_PUBLISHED]
    ]


def _commands(identity: Identity | None, text: str) -> list[Item]:
    words = text.casefold().split()
    return [
        each.item
        for each in _COMMANDS
        if identity is not None
        and identity.may(each.role, each.scope)
        and all(word in f"{each.item.title} {each.words}".casefold() for word in words)
    ]
