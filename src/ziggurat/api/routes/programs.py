"""Routes for programs that are submitted: check one, put one into the queue, look at its files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from ziggurat.api.responses import answer
from ziggurat.api.schemas import JobShape, Json, RequestBody, Text, TextShape
from ziggurat.operations.models import create_program
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import new_router
from ziggurat.workspace.network_checks import check_syntax
from ziggurat.workspace.new_jobs import JobRequest

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["programs"])

_Name = Annotated[str, Field(max_length=200)]
_LONGEST = 2_000_000


class _Program(RequestBody):
    spec: dict[str, Any] = Field(
        {}, description="A spec of kind `program`; `script` may be left out where the files leave no choice."
    )
    text: str = Field("", max_length=_LONGEST, description="Of the script, where it is one file.")
    source: str = Field(
        "",
        max_length=4096,
        description="Python file, zip archive or folder on the studio's machine, such as the `source` of an upload.",
    )
    parent: Annotated[_Name, JobName("program")] = Field(
        "", description="Id or name of a program whose files are taken where no others are given."
    )
    project: _Name = ""
    tags: list[_Name] = []
    notes: Text = ""
    priority: int = Field(0, ge=-(2**31), lt=2**31)


class _Script(RequestBody):
    text: str = Field(max_length=_LONGEST, description="Of a script.")


@router.post("/programs", response_model=JobShape, status_code=201)
def create(studio: StudioDep, who: TrainerUser, body: _Program) -> Response:
    """Put a program into the queue. It is checked before, without running it: an error names file and line."""
    given = body.model_dump(exclude={"text", "source"})
    request = JobRequest(**{**given, "tags": tuple(body.tags)})
    return answer(create_program(studio, who, request, text=body.text, source=body.source), 201)


@router.post("/programs/check", response_model=Json)
def check(_who: TrainerUser, body: _Script) -> Response:
    """Return ``findings``: why Python cannot read a script, with ``line``, ``column`` and ``rule``; empty if it can."""
    finding = check_syntax(body.text)
    return answer({"findings": [] if finding is None else [asdict(finding)]})


@router.get("/programs/{job_id}/files", response_model=list[Json])
def files(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return ``name`` and ``size_bytes`` of every file of a program; the script that runs comes first."""
    return answer(studio.programs.files(job_id))


@router.get("/programs/{job_id}/text", response_model=TextShape)
def text(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    name: Annotated[str, Query(max_length=4096, description="Of a file of the program; empty for the script.")] = "",
) -> Response:
    """Return the text of a file of a program."""
    return answer({"text": studio.programs.text(job_id, name)})
