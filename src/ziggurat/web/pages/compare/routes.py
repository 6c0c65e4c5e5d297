"""Run comparison pages: overlaid curves, configuration differences, results; the same for the runs of a sweep."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from pydantic import BaseModel, Field

from ziggurat.entities import ENDED_STATES
from ziggurat.entities.best_checkpoint import metric_names, metric_text
from ziggurat.operations import jobs
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.compare.view import MOST_COMPARED, Comparison, chosen_runs, compared, found_runs, sweep_of
from ziggurat.web.pages.job.view import metric_name
from ziggurat.web.rendering import is_part, page, part, see_other

__all__ = ["router"]

router = new_router()

_LONGEST: Final = 200


class _Wanted(BaseModel):
    job: Annotated[list[Annotated[str, Field(max_length=_LONGEST)]], JobName()] = Field(default_factory=list)
    text: str = Field("", max_length=_LONGEST)
    choose: str = Field("", max_length=_LONGEST)
    curve: str = Field("", max_length=_LONGEST)
    group: str = Field("", max_length=_LONGEST)


@router.get("/compare", include_in_schema=False)
def compare(request: Request, studio: StudioDep, _who: ViewerUser, wanted: Annotated[_Wanted, Query()]) -> Response:
    """Return the comparison of the named runs or of a sweep's, or what helps to choose some."""
    words: dict[str, Any] = {"metric_name": metric_name, "metric_text": metric_text, "curve": wanted.curve}
    words["metric_names"] = metric_names
    if wanted.group:
        sweep = sweep_of(studio, wanted.group)
        shown = {"runs": sweep.runs, "left_out": [], "most": MOST_COMPARED, "text": "", "sweep": sweep, **words}
        return _comparison(request, compared(studio, sweep.runs, wanted.curve), shown)
    runs, left_out = chosen_runs(studio, wanted.job)
    if is_part(request, "compare-found"):
        found = found_runs(studio, wanted.text, runs)
        return part(request, "compare/found.html", runs=runs, found=found, text=wanted.text)
    shown = {"runs": runs, "left_out": left_out, "most": MOST_COMPARED, "text": wanted.text, "sweep": None, **words}
    if wanted.choose or not runs:
        is_none_chosen = "text" in request.query_params and not wanted.choose and not left_out
        values = {"found": found_runs(studio, wanted.text, runs), "is_none_chosen": is_none_chosen, **shown}
        return page(request, "compare/page.html", view=None, **values)
    return _comparison(request, compared(studio, runs, wanted.curve), shown)


@router.post("/compare/stop-rest", include_in_schema=False)
def stop_rest(
    request: Request, studio: StudioDep, who: TrainerUser, group: Annotated[str, Form(max_length=200)]
) -> Response:
    """Stop the runs of a sweep that are in the queue or running, but for the best one."""
    ids = sweep_of(studio, group).open_ids
    jobs.act(studio, who, "stop", ids)
    return see_other(request, "/compare", {"group": group})


def _comparison(request: Request, view: Comparison, shown: dict[str, Any]) -> Response:
    """Return the comparison, or the parts of it that change while runs train."""
    if is_part(request, "compare-live"):
        return part(request, "compare/now.html", view=view, **shown)
    topics = tuple(f"job:{each.id}" for each in view.runs if each.state not in ENDED_STATES)[:MOST_COMPARED]
    return page(request, "compare/page.html", topics=topics, view=view, is_live=bool(topics), **shown)
