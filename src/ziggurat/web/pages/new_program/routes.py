"""New-program page: the form, instant checks of the script, and the submission."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from ziggurat.entities import Identity
from ziggurat.errors import ZigguratError
from ziggurat.formatting import as_bytes
from ziggurat.operations.models import create_program
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import new_router, require
from ziggurat.web.forms import FieldError
from ziggurat.web.pages.job.view import failure_in_code
from ziggurat.web.pages.new_program.form import (
    ProgramForm,
    cloned_form,
    drop_upload,
    read_form,
    request_of,
    submitted_field,
    take_upload,
)
from ziggurat.web.rendering import page, part, see_other
from ziggurat.workspace.network_checks import check_syntax
from ziggurat.workspace.programs import MOST_BYTES
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_PLACE: Final = "/programs/new"
_SenderUser = Annotated[Identity, require("trainer", "write", limit_bytes=8 * MOST_BYTES)]
"""A user who may make and change, and sends a program; one that is too large is refused in the form."""


@router.get(_PLACE, include_in_schema=False)
def new_program(
    request: Request,
    studio: StudioDep,
    _who: TrainerUser,
    clone: Annotated[str, Query(max_length=200), JobName("program")] = "",
    line: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """Return the form: an empty one, or that of a clone, at a line of its script."""
    form = cloned_form(studio, clone) if clone else ProgramForm()
    failure = failure_in_code(studio.jobs.get(clone)) if clone else None
    return _page(request, studio, form, line=line, failure=failure)


@router.post(_PLACE, include_in_schema=False)
async def create(request: Request, studio: StudioDep, who: _SenderUser) -> Response:
    """Put the program into the queue and show it; where it cannot be, show the form with what is wrong."""
    async with request.form() as sent:
        return await run_in_threadpool(_create, request, studio, who, sent)


@router.post(f"{_PLACE}/check", include_in_schema=False)
async def check(request: Request, _who: TrainerUser) -> Response:
    """Return the mistakes of a script that can be seen without running it."""
    text = str((await request.form()).get("text", ""))
    return part(request, "new_program/findings.html", findings=_findings(text))


@router.get("/programs/{job_id}", include_in_schema=False)
def program(request: Request, studio: StudioDep, _who: TrainerUser, job_id: str) -> Response:
    """Send to the page of a program."""
    return see_other(request, f"/jobs/{studio.jobs.of_kind(job_id, 'program').id}", dict(request.query_params))


def _create(request: Request, studio: Studio, who: Identity, sent: FormData) -> Response:
    form = read_form(studio, sent)
    try:
        take_upload(studio, sent, form)
        asked = request_of(form)
        given = {"text": form.text} if form.origin == "text" else {"source": form.source}
        job = create_program(studio, who, asked, **given)
    except FieldError as wrong:
        return _page(request, studio, form, {wrong.field: wrong.error})
    except ZigguratError as error:
        return _page(request, studio, form, {submitted_field(error, form): error})
    drop_upload(studio, form)
    return see_other(request, f"/jobs/{job.id}")


def _page(
    request: Request,
    studio: Studio,
    form: ProgramForm,
    wrong: dict[str, ZigguratError] | None = None,
    line: int = 0,
    failure: dict[str, Any] | None = None,
) -> Response:
    wrong = wrong or {}
    found = next((error.details.get("line", 0) for name, error in wrong.items() if name == "text"), 0)
    return page(
        request,
        "new_program/page.html",
        422 if wrong else 200,
        form=form,
        problems={name: str(error) for name, error in wrong.items()},
        problem_line=found,
        line=found or line,
        findings=_findings(form.text),
        failure=failure,
        largest=as_bytes(MOST_BYTES),
        several=len(studio.jobs.nodes()) > 1,
        gpus=len(studio.machine.resources().devices),
        projects=studio.projects.names(),
    )


def _findings(text: str) -> list[dict[str, Any]]:
    text = text.replace("\r\n", "\n")
    found = check_syntax(text) if text.strip() else None
    return [] if found is None else [{**vars(found), "sentence": found.sentence}]
