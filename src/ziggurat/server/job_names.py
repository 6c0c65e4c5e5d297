"""Names of jobs in requests: they stand wherever an id may, in a path, a query or a body."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from fastapi.dependencies.models import Dependant
from pydantic import BaseModel
from starlette.requests import Request

from ziggurat.server.middleware import local_path

__all__ = ["JOB_ID", "PATH_FIELDS", "JobName", "address_with_ids", "job_fields", "take_ids", "take_path_ids"]

PATH_FIELDS: Final = ("job_id", "dataset_id", "other_id")
"""Fields of paths that hold the id of a job."""

_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "datasets": ("dataset",),
    "evaluations": ("evaluate", "infer"),
    "models": ("train",),
    "programs": ("program",),
}
"""Part of an address → kinds of jobs whose names may stand in it; others take those of all kinds."""

_BUILT_IN: Final = ("digits",)
"""Datasets that are no jobs."""

JOB_ID: Final = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
"""Shape of the ids that the studio gives to jobs. What looks like one is one: only a name costs a look-up."""


@dataclass(frozen=True)
class JobName:
    """Marks a field of a query or a body, a text or a list of texts, that takes the id or the name of a job.

    ``dataset: Annotated[str, JobName("dataset")]``; the route gets the id.

    Args:
        kinds: of the jobs whose names may stand there; none for all.
    """

    kinds: tuple[str, ...]

    def __init__(self, *kinds: str) -> None:
        object.__setattr__(self, "kinds", kinds)

    def resolve(self, value: Any, studio: Any) -> Any:
        """Return the id of a name, or of each name of a list; what no job is called stays.

        Raises:
            UsageError: if several jobs have the name.
        """
        if isinstance(value, list):
            return [self.resolve(each, studio) for each in value]
        return studio.jobs.id_of(value, self.kinds) if _may_be_name(value) else value


def _may_be_name(text: str) -> bool:
    """Return whether a text must be looked up, since it is neither empty, nor an id, nor the name of built-in data."""
    return bool(text) and text not in _BUILT_IN and JOB_ID.fullmatch(text) is None


def take_path_ids(request: Request) -> dict[str, str]:
    """Put the ids of jobs into the place of their names in the path of a request; return name → id of those."""
    found: dict[str, str] = {}
    part = local_path(request.scope).removeprefix("/api/v1").split("/")[1]
    if part == "trash":  # whose names are of deleted jobs
        return found
    for field in PATH_FIELDS:
        if field in request.path_params:
            text = request.path_params[field]
            job_id = JobName(*_KINDS.get(part, ())).resolve(text, request.app.state.studio)
            if job_id != text:
                found[text] = request.path_params[field] = job_id
    return found


def address_with_ids(request: Request, ids: Mapping[str, str]) -> str:
    """Return the address of a request with ids in the place of names, each where it stands first behind the kind."""
    parts = local_path(request.scope).split("/")
    for name, job_id in ids.items():
        if name in parts[2:]:
            parts[parts.index(name, 2)] = job_id
    path = quote(request.scope.get("root_path", "") + "/".join(parts), safe="/:")
    return f"{path}?{request.url.query}" if request.url.query else path


def job_fields(dependant: Dependant) -> dict[str, JobName | dict[str, JobName]]:
    """Return parameter of a route → the marker of it, or of the fields of its model; those without are left out."""
    found: dict[str, JobName | dict[str, JobName]] = {}
    for field in (*dependant.query_params, *dependant.body_params):
        annotation = field.field_info.annotation
        marker: JobName | dict[str, JobName] | None = _marker(field.field_info.metadata)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            marked = {name: _marker(each.metadata) for name, each in annotation.model_fields.items()}
            marker = {name: each for name, each in marked.items() if each is not None}
        if marker:
            found[field.name] = marker
    return found


def take_ids(call: Callable[..., Any], fields: Mapping[str, JobName | Mapping[str, JobName]]) -> Callable[..., Any]:
    """Return what answers a request with the ids of jobs in the place of their names.

    Args:
        call: the function of a route with a parameter ``studio``; it runs in a thread, as the look-up needs.
        fields: as ``job_fields`` returns them.
    """
    assert not inspect.iscoroutinefunction(call), f"{call} would wait for the store in the event loop"

    @functools.wraps(call)
    def answer(**values: Any) -> Any:
        for name, marker in fields.items():
            values[name] = _resolved(values[name], marker, values["studio"])
        return call(**values)

    return answer


def _resolved(value: Any, marker: JobName | Mapping[str, JobName], studio: Any) -> Any:
    if isinstance(marker, JobName):
        return marker.resolve(value, studio)
    given = {name: (getattr(value, name), each) for name, each in marker.items()}
    return value.model_copy(update={name: each.resolve(text, studio) for name, (text, each) in given.items() if text})


def _marker(metadata: list[Any]) -> JobName | None:
    return next((each for each in metadata if isinstance(each, JobName)), None)
