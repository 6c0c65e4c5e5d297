"""Routes for the studio itself: projects, machine, paths, limits, settings, version."""

from __future__ import annotations

import platform
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from ziggurat import __version__
from ziggurat.api.operation_routes import add_operation
from ziggurat.api.responses import answer
from ziggurat.api.schemas import Json, ProjectShape, RequestBody, RootsShape, SuggestionsShape
from ziggurat.operations import administration
from ziggurat.server.dependencies import AdminUser, StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.settings import describe_settings
from ziggurat.workspace.job_query import PAGE_SIZE

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["studio"])


class _Project(RequestBody):
    name: str = Field(min_length=1, max_length=200)


class _Folder(RequestBody):
    path: str = Field(min_length=1, max_length=4096, description="Absolute path of a folder that exists.")


@router.get("/projects", response_model=list[ProjectShape])
def projects(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return all projects by name, each with how many jobs it has."""
    return answer([{**vars(project), "jobs": count} for project, count in studio.projects.all()])


@router.post("/projects", response_model=ProjectShape, status_code=201)
def add_project(studio: StudioDep, who: TrainerUser, body: _Project) -> Response:
    """Make a project, where there is none of that name."""
    project = administration.add_project(studio, who, body.name)
    count = next((jobs for each, jobs in studio.projects.all() if each.id == project.id), 0)
    return answer({**vars(project), "jobs": count}, 201)


@router.patch("/projects/{name:path}", status_code=204)
def rename_project(studio: StudioDep, who: TrainerUser, name: str, body: _Project) -> Response:
    """Give a project another name; its jobs stay in it."""
    administration.rename_project(studio, who, name, body.name)
    return Response(status_code=204)


add_operation(router, administration.delete_project, status=204)


@router.get("/machine", response_model=Json)
def machine(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return what the machine has (devices, memory, disk, frameworks), the jobs that run, and those that wait.

    ``nodes`` are the machines that jobs can be put on, the studio's own first; ``node_problem`` says why one is not
    used.
    ``queue`` holds the next 50 of the ``waiting`` jobs; ``/queue`` has all of them, in pages. ``remarks`` says what
    people should know of the workspace, such as that it was moved.
    """
    waiting = studio.jobs.queue_page(PAGE_SIZE)
    return answer(
        {
            **studio.machine.strip(),
            "running": studio.jobs.running(),
            "queue": waiting.jobs,
            "waiting": waiting.total,
            "remarks": studio.remarks,
            "nodes": studio.jobs.nodes(),
            "node_problem": studio.jobs.node_problem(),
        }
    )


@router.get("/paths", response_model=SuggestionsShape)
def paths(studio: StudioDep, _who: TrainerUser, query: Annotated[str, Query(max_length=4096)] = "") -> Response:
    """Return what a path that is being typed may become; only folders that the studio offers are looked at."""
    return answer({"suggestions": studio.paths.suggestions(query)})


@router.get("/roots", response_model=RootsShape)
def roots(studio: StudioDep, _who: TrainerUser) -> Response:
    """Return the folders of the machine below which people may name files; those of the workspace are offered too."""
    return answer({"roots": studio.paths.chosen})


@router.put("/roots", response_model=RootsShape)
def choose_roots(studio: StudioDep, who: AdminUser, body: RootsShape) -> Response:
    """Offer other folders; none offers only those of the workspace."""
    administration.choose_roots(studio, who, body.roots)
    return answer({"roots": studio.paths.chosen})


@router.post("/roots", response_model=RootsShape, status_code=201)
def allow_root(studio: StudioDep, who: AdminUser, body: _Folder) -> Response:
    """Allow one more folder; for a file, its folder is allowed."""
    administration.allow_root(studio, who, body.path)
    return answer({"roots": studio.paths.chosen}, 201)


add_operation(
    router, administration.remove_root, shape=RootsShape, shown=lambda studio, _result: {"roots": studio.paths.chosen}
)


@router.get("/signing-key", response_model=Json)
def signing_key(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return ``fingerprint`` and ``public_key`` (PEM) of the key that signs exports; both empty before the first."""
    return answer(studio.signing_keys.describe())


add_operation(
    router,
    administration.rotate_signing_key,
    shape=Json,
    shown=lambda studio, _result: studio.signing_keys.describe(),
)


class _Notifications(RequestBody):
    """Settings of notifications; what is left out stays, and an empty text removes a value."""

    events: list[str] | None = Field(None, max_length=10, description="Of finished, failed, diverged, disk_low.")
    address: str | None = Field(None, max_length=2000, description="URL of the studio, for links in messages.")
    webhook_url: str | None = Field(None, max_length=2000, description="Receiver of the webhook. Secret.")
    webhook_key: str | None = Field(None, max_length=1000, description="Key of its signatures. Secret.")
    email_to: str | None = Field(None, max_length=2000, description="Addresses, separated by commas.")
    email_from: str | None = Field(None, max_length=320, description="Address of the sender.")
    smtp_host: str | None = Field(None, max_length=255, description="Name of the mail server.")
    smtp_port: int | None = Field(None, ge=1, le=65535, description="Port of it.")
    smtp_security: str | None = Field(None, max_length=20, description="`starttls`, `tls` or `none`.")
    smtp_user: str | None = Field(None, max_length=320, description="For the login; empty: none.")
    smtp_password: str | None = Field(None, max_length=1000, description="For the login. Secret.")


@router.get("/notifications", response_model=Json)
def notifications(studio: StudioDep, _who: AdminUser) -> Response:
    """Return the settings of notifications without secrets, and ``last``: the newest delivery to each receiver.

    ``webhook`` names only the host of its URL; ``has_webhook_key`` and ``has_smtp_password`` tell whether there is one.
    """
    return answer(studio.notifications.describe())


@router.put("/notifications", response_model=Json)
def set_notifications(studio: StudioDep, who: AdminUser, body: _Notifications) -> Response:
    """Change some settings of notifications; those that are left out stay, and they hold at once."""
    administration.set_notifications(studio, who, body.model_dump(exclude_none=True))
    return answer(studio.notifications.describe())


add_operation(router, administration.test_notifications, shape=dict[str, str])


@router.get("/folders", response_model=Json)
def folders(studio: StudioDep, _who: TrainerUser, path: Annotated[str, Query(max_length=4096)] = "") -> Response:
    """Return the content of an allowed folder: ``path``, ``parents``, ``entries``, ``is_complete``.

    Without a path, the entries are the allowed folders.
    """
    return answer(studio.paths.listing(path))


@router.get("/settings", response_model=list[Json])
def settings(studio: StudioDep, _who: AdminUser) -> Response:
    """Return every setting: ``name``, ``value``, ``origin``, ``help``, ``variable``."""
    known = [(each, getattr(studio.settings, each.name)) for each in describe_settings()]
    origins = studio.settings.origins
    return answer(
        [
            {
                "name": each.name,
                "value": "" if value is None else str(value),
                "origin": origins.get(each.name, "default"),
                "help": each.help,
                "variable": each.variable,
            }
            for each, value in known
        ]
    )


@router.get("/version", response_model=dict[str, str])
def version(_studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the versions of Ziggurat and of Python."""
    return answer({"ziggurat": __version__, "python": platform.python_version()})


class _Limits(RequestBody):
    values: dict[str, int | None] = Field(description="Name → number; null goes back to the default.")


@router.get("/limits", response_model=list[Json])
def limits(studio: StudioDep, _who: AdminUser) -> Response:
    """Return every number: ``name``, ``value``, ``default``, ``is_chosen``, ``least``, ``help``."""
    return answer(studio.limits.all())


@router.put("/limits", response_model=list[Json])
def choose_limits(studio: StudioDep, who: AdminUser, body: _Limits) -> Response:
    """Choose some of the numbers, all that are sent or none; they hold at once."""
    administration.choose_limits(studio, who, body.values)
    return answer(studio.limits.all())
