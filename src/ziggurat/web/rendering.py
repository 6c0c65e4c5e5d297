"""Page rendering: templates with what every page shows, such as the status bar; answers to htmx; error pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, FunctionLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ziggurat import __version__, formatting
from ziggurat.entities import Job
from ziggurat.entities.backend_info import backend_title, has_capability
from ziggurat.entities.next_step import ACTIONS_WITHOUT_CHANGES
from ziggurat.errors import ZigguratError, broken_rule
from ziggurat.server.errors import status_of
from ziggurat.web.icons import icon
from ziggurat.web.next_step import next_path
from ziggurat.web.static_files import is_built, island_addresses, static_address
from ziggurat.web.urls import address, changed_query, page_of
from ziggurat.workspace.recipes import task

__all__ = [
    "LastEventIdMiddleware",
    "StatusBar",
    "error_page",
    "is_part",
    "page",
    "part",
    "part_html",
    "see_other",
    "status_bar_of",
]


_THEMES: Final = ("light", "dark")
_TEMPLATES: Final = tuple(Path(__file__).parent / name for name in ("pages", "templates"))


def page(
    request: Request, template: str, status: int = 200, /, *, topics: tuple[str, ...] = (), **values: Any
) -> Response:
    """Return a page, or a part of one where the template is one.

    Args:
        request: that it answers.
        template: its file, such as ``home.html``.
        status: of HTTP.
        topics: of notices that the page listens to besides those of the strip (``jobs``, ``queue``, ``devices``).
        values: that the template uses; a ``ZigguratError`` as ``error`` becomes its JSON values and the status.
    """
    if "strip" not in values:
        values["strip"] = status_bar_of(request)
    return part(request, template, status, topics=sorted({"jobs", "queue", "devices", *topics}), **values)


def part(request: Request, template: str, status: int = 200, /, **values: Any) -> Response:
    """Return a part of a page, which knows nothing of what stands around it; the arguments are those of ``page``."""
    values.setdefault("error", None)
    if isinstance(error := values["error"], ZigguratError):
        status, values["error"] = status_of(error) if status == 200 else status, error.as_dict()
    return HTMLResponse(_text(request, template, values), status, {"Vary": "HX-Request"})


def part_html(request: Request, template: str, /, **values: Any) -> Markup:
    """Return a part of a page, to stand in another template."""
    return Markup(_text(request, template, {"error": None, **values}))


def is_part(request: Request, target: str = "") -> bool:
    """Return whether htmx asks for a part of a page; with ``target``, for the element of that id.

    A page that is gone back to, or boosted, is asked for as a whole.
    """
    if request.headers.get("hx-request") != "true" or request.headers.get("hx-history-restore-request") == "true":
        return False
    wanted = request.headers.get("hx-target", "")
    return not target or wanted.rpartition("#")[2] == target


def see_other(request: Request, path: str, query: dict[str, Any] | None = None) -> Response:
    """Send the browser to a page of the studio after a form was taken: a reload does not send the form again.

    A path may end in ``#`` and the id of an element, which the browser scrolls to.
    """
    path, mark, element_id = path.partition("#")
    target = address(request, path, query) + mark + quote(element_id)
    if request.headers.get("hx-request") == "true":
        return Response(status_code=204, headers={"HX-Redirect": target})
    return RedirectResponse(target, 303)


def _text(request: Request, template: str, values: dict[str, Any]) -> str:
    identity = request.scope.get("state", {}).get("identity")
    return (
        _environment()
        .get_template(template)
        .render(
            request=request,
            identity=identity,
            may_write=identity is not None and identity.may("trainer", "write"),
            may_admin=identity is not None and identity.may("admin", "admin"),
            version=__version__,
            is_built=is_built(),
            news=last_event_id_of(request),
            theme=theme if (theme := request.cookies.get("ziggurat_theme")) in _THEMES else "",
            url=lambda path, **query: address(request, path, query),
            here=lambda **changes: changed_query(request, **changes),
            section_of=lambda path: _section(path.removeprefix(address(request, "/").rstrip("/"))),
            page_of=lambda job: page_of(request, job.id, job.kind),
            static=lambda name: static_address(request, name),
            scripts_of=lambda *islands: island_addresses(request, *islands),
            **values,
        )
    )


_SECTIONS: Final = (
    ("/datasets", "Datasets"),
    ("/models/new", "Models"),
    ("/pretrained", "Models"),
    ("/evaluations", "Evaluations"),
    ("/compare", "Compare"),
    ("/settings", "Settings"),
    ("/about", ""),
    ("/account", ""),
    ("/search", ""),
)


def _section(path: str) -> str:
    """Return the entry of the navigation that a page belongs to."""
    for begin, title in _SECTIONS:
        if path == begin or path.startswith(f"{begin}/"):
            return title
    if path == "/models":
        return "Models"
    return "Runs" if path in ("", "/") or path.startswith(("/jobs/", "/models/", "/programs/")) else ""


_TASKS: Final = "tasks"
_TASK_TEMPLATE_DEPTH: Final = 3


def _task_template(name: str) -> tuple[str, str, None] | None:
    """Return a template that the package of a task brings, such as ``tasks/regression/sample.html``; None for none."""
    parts = name.split("/")
    if len(parts) != _TASK_TEMPLATE_DEPTH or parts[0] != _TASKS or ".." in parts:
        return None
    try:
        path = task(parts[1]).templates / parts[2]
        return path.read_text(encoding="utf-8"), str(path), None
    except (OSError, ZigguratError):
        return None


@cache
def _environment() -> Environment:
    made = Environment(
        loader=ChoiceLoader([FileSystemLoader(_TEMPLATES), FunctionLoader(_task_template)]),
        autoescape=select_autoescape(("html", "svg")),
        undefined=StrictUndefined,  # a misspelt name is an error, not an empty place
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        bytes=formatting.as_bytes,
        duration=formatting.as_duration,
        rough_duration=formatting.as_rough_duration,
        time=formatting.as_time,
        time_iso=formatting.as_time_iso,
        ago=formatting.as_ago,
        clock=formatting.as_clock,
        number=formatting.as_number,
        count_text=formatting.as_count,
        percent=formatting.as_percent,
        heading=formatting.as_heading,
        job_kind=formatting.as_job_kind,
        split_title=formatting.as_split,
        data=_data,
    )
    made.globals.update(
        icon_svg=icon,
        plural=formatting.plural,
        backend_title=backend_title,
        broken_rule=broken_rule,
        has_capability=has_capability,
        next_path=next_path,
        shows_only=ACTIONS_WITHOUT_CHANGES,
    )
    return made


def _data(value: Any) -> str:
    """Return JSON for a ``data-`` attribute; the attribute's own escaping does the rest."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_KEY = "newest_notice"


class LastEventIdMiddleware:
    """Notes the newest notice before anything is read for a page.

    What happens between then and the page's event stream, which a slow machine opens seconds later and a tab behind
    others only when it is looked at, is told by the stream at its begin.

    Args:
        app: inside of it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            state = scope["app"].state
            scope.setdefault("state", {})[_KEY] = f"{state.streams.server}-{state.studio.notices.number}"
        await self._app(scope, receive, send)


def last_event_id_of(request: Request) -> str:
    """Return the id of the newest event from before a request, as the event stream takes it."""
    return request.scope.get("state", {}).get(_KEY, "")


def error_page(request: Request, status: int, shape: dict[str, Any]) -> Response:
    """Return an error of the tree as people read it.

    Args:
        request: that it answers.
        status: of HTTP.
        shape: ``rule``, ``received``, ``advice`` and ``details`` of the error.
    """
    if is_part(request):
        return part(request, "parts/error.html", status, error=shape)
    if request.scope.get("state", {}).get("identity") is None:
        return part(request, "error_outside.html", status, error=shape, status=status)
    if request.method == "GET" and {"name", "ids"} <= (shape.get("details") or {}).keys():
        return _namesakes_page(request, shape)
    return page(request, "error.html", status, error=shape, status=status)


def _namesakes_page(request: Request, shape: dict[str, Any]) -> Response:
    """Return a list of the jobs of one name, for an address that has this name."""
    jobs = request.app.state.studio.jobs.some(shape["details"]["ids"]).values()
    return page(request, "namesakes.html", 300, rule=shape["rule"], name=shape["details"]["name"], jobs=list(jobs))


@dataclass(frozen=True, kw_only=True)
class StatusBar:
    """What the strip shows.

    Args:
        machine: as ``ziggurat.workspace.studio.machine.Machine.strip`` gives it.
        running: jobs that a worker is at, the oldest first.
        states: state → how many jobs are in it.
        owners: index of an accelerator → the job that has it.
    """

    machine: dict[str, Any]
    running: list[Job]
    states: Mapping[str, int]
    owners: dict[int, Job]


def status_bar_of(request: Request, states: Mapping[str, int] | None = None) -> StatusBar:
    """Return what the strip shows now.

    Args:
        request: that it answers.
        states: state → jobs, if already counted.
    """
    studio = request.app.state.studio
    running = studio.jobs.running()
    return StatusBar(
        machine=studio.machine.strip(),
        running=running,
        states=studio.jobs.counts() if states is None else states,
        owners={index: job for job in running for index in job.devices},
    )
