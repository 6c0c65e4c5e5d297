"""Operations on the studio itself: projects, folders that people may name, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from ziggurat.entities import Project
from ziggurat.operations.use_case import Call, use_case

__all__ = [
    "add_project",
    "allow_root",
    "choose_limits",
    "choose_roots",
    "delete_project",
    "remove_root",
    "rename_project",
    "rotate_signing_key",
    "set_notifications",
    "test_notifications",
]


@use_case("project.create")
def add_project(call: Call, name: str) -> Project:
    """Make a project, where there is none of that name."""
    project = call.studio.projects.ensure(name, call.studio.clock())
    call.note(project.name)
    return project


@use_case("project.rename")
def rename_project(call: Call, name: str, new_name: str) -> None:
    """Give a project another name; its jobs stay in it."""
    call.studio.projects.rename(name, new_name)
    call.note(name, name=new_name)


@use_case("project.delete")
def delete_project(
    call: Call,
    name: str,
    move_jobs_to: Annotated[str | None, Field(description="Project that gets its jobs; empty: none.")] = None,
) -> None:
    """Remove a project that has no jobs, or whose jobs go to another one."""
    call.studio.projects.delete(name, move_jobs_to=move_jobs_to)
    call.note(name)


@use_case("folders.choose")
def choose_roots(call: Call, roots: Sequence[str]) -> None:
    """Offer other folders; none offers only those of the workspace."""
    call.studio.paths.choose(roots)
    call.note(roots=list(roots))


@use_case("folders.allow")
def allow_root(call: Call, path: str) -> str:
    """Allow one more folder, and return it; for a file, its folder is allowed."""
    folder = call.studio.paths.allow(path)
    call.note(allowed=folder)
    return folder


@use_case("folders.remove")
def remove_root(call: Call, path: str) -> None:
    """Remove a folder from the allowed ones; datasets made from it stay."""
    call.studio.paths.disallow(path)
    call.note(removed=path)


@use_case("limits.choose")
def choose_limits(call: Call, values: Mapping[str, int | None]) -> None:
    """Choose some of the numbers, all that are sent or none; they hold at once."""
    call.studio.limits.choose(values)
    said: dict[str, Any] = dict(values)
    if said:
        call.note(**said)


@use_case("signing-key.rotate")
def rotate_signing_key(call: Call) -> str:
    """Make a new key for exports, and return its fingerprint; what earlier ones signed stays known here."""
    fingerprint = call.studio.signing_keys.rotate()
    call.note(signing_key=fingerprint)
    return fingerprint


@use_case("notifications.set")
def set_notifications(call: Call, values: Mapping[str, Any]) -> None:
    """Change some settings of notifications; those that are left out stay, and they hold at once."""
    call.studio.notifications.set(values)
    call.note(changed=sorted(values))  # names alone: some values are secrets


@use_case("notifications.test")
def test_notifications(call: Call) -> dict[str, str]:
    """Send a test message to each receiver; return receiver → why it failed, empty if it was delivered."""
    found = call.studio.notifications.test()
    call.note(receivers=sorted(found))
    return found
