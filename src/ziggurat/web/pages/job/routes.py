"""Pages of a job, with their form actions: stop, pause, resume, retry, edit, delete, learning rate."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import Depends, Form, Query, Request, Response
from fastapi.responses import StreamingResponse

from ziggurat.entities import RUN_KINDS
from ziggurat.entities.best_checkpoint import metric_names, metric_text
from ziggurat.errors import ConfigurationError, NotThereError, ZigguratError
from ziggurat.operations import jobs
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.specs import comma_question
from ziggurat.web.columns import result_texts
from ziggurat.web.flash import see_deleted
from ziggurat.web.job_changes import CHANGED_FIELDS, change_from
from ziggurat.web.pages.job.divergence import divergence_view
from ziggurat.web.pages.job.live_view import LiveView
from ziggurat.web.pages.job.log import job_log
from ziggurat.web.pages.job.program import logged_values, program_view
from ziggurat.web.pages.job.rate_chart import rate_chart
from ziggurat.web.pages.job.view import JobNow, drawn_marks, job_about, job_now, metric_name
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.web.urls import KIND_PAGES, LIST_PAGES
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_MOST_POINTS: Final = 10_000_000


def curves_csv(studio: Studio, job_id: str, tags: list[str]) -> Iterator[bytes]:
    """Return the points of curves as CSV, one curve after the other: ``tag,step,epoch,time,value``.

    Args:
        studio: where they are.
        job_id: whose.
        tags: names of the curves.
    """
    yield b"tag,step,epoch,time,value\r\n"
    for tag in tags:
        curve = studio.curves.curve(job_id, tag, max_points=_MOST_POINTS)
        text = io.StringIO()
        columns = (curve.steps.tolist(), curve.epochs.tolist(), curve.times.tolist(), curve.values.tolist())
        csv.writer(text).writerows((tag, *row) for row in zip(*columns, strict=True))
        yield text.getvalue().encode()


_PART_BYTES: Final = 256 << 10
"""How much of a log stands on one page."""

_TABS: Final = {
    "overview": "Overview",
    "predictions": "Predictions",
    "checkpoints": "Checkpoints",
    "program": "Program",
    "log": "Log",
    "configuration": "Configuration",
    "system": "System",
}
_OF_TRAININGS: Final = ("overview", "predictions", "checkpoints")
_OF_PROGRAMS: Final = "program"
_ALWAYS: Final = ("name", "chip", "actions", "state", "tabs")
_LIVE: Final = {
    "overview": ("values", "divergence", "checked", "failure", "metrics", "rate-now", "checkpoints-short"),
    "predictions": ("users",),
    "checkpoints": ("checkpoints",),
    "log": ("messages", "attempts"),
    "system": ("attempts",),
}
"""Tab → parts of it that change while a job runs; some refresh themselves."""


@router.get("/models/{job_id}", include_in_schema=False)
def training(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a tab of the page of a training, or the parts of it that change while it runs."""
    if is_part(request, "job-live"):
        return _live_or_gone(request, studio, job_id)
    if studio.jobs.get(job_id).kind != "train":
        return see_other(request, f"/jobs/{job_id}", dict(request.query_params))
    return job_page(request, studio, job_id)


@router.get("/jobs/{job_id}", include_in_schema=False)
def any_job(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Send to the page of a job; kinds that have none are shown here."""
    if is_part(request, "job-live"):
        return _live_or_gone(request, studio, job_id)
    kind = studio.jobs.get(job_id).kind
    if kind in KIND_PAGES:
        return see_other(request, f"/{KIND_PAGES[kind]}/{job_id}", dict(request.query_params))
    return job_page(request, studio, job_id)


@router.get("/jobs/{job_id}/log", include_in_schema=False)
def log(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    seen: Annotated[str, Query()] = "",
    rank: Annotated[int, Query(ge=0, le=1 << 16)] = 0,
) -> Response:
    """Return the log as a text; for a page that shows its end already, that end where it is another one."""
    if not is_part(request, "job-log"):
        headers = {"X-Content-Type-Options": "nosniff", "Vary": "HX-Request"}
        return StreamingResponse(
            studio.outputs.whole_log(job_id, rank), media_type="text/plain; charset=utf-8", headers=headers
        )
    found = job_log(studio, job_id)
    if found.mark == seen:
        return Response(status_code=204)
    return part(request, "job/log.html", job=studio.jobs.get(job_id), log=found)


@router.get("/jobs/{job_id}/log/part", include_in_schema=False)
def log_part(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    before: Annotated[int | None, Query(ge=0, le=1 << 62)] = None,
) -> Response:
    """Return a page with the end of a log, or with the part that ends at an offset, and links to its neighbors."""
    found = studio.outputs.log(job_id, at_most_bytes=_PART_BYTES, before=before)
    after = min(found.end + _PART_BYTES, found.size)
    return page(request, "job/log_part.html", job=studio.jobs.get(job_id), log=found, after=after)


@router.get("/jobs/{job_id}/curves.csv", include_in_schema=False)
def curves(studio: StudioDep, _who: ViewerUser, job_id: str, tag: Annotated[list[str], Query()] = []) -> Response:  # noqa: B006
    """Return the points of all curves, or of some, as a table."""
    job, known = studio.jobs.get(job_id), studio.curves.tags(job_id)
    chosen = [each for each in known if each in tag] if tag else known
    word = re.sub(r"[^A-Za-z0-9._-]+", "-", job.name).strip("-.") or job.id
    name = (
        f"attachment; filename=\"{word}-curves.csv\"; filename*=UTF-8''{quote(job.name or job.id, safe='')}-curves.csv"
    )
    parts = curves_csv(studio, job_id, chosen)
    return StreamingResponse(parts, media_type="text/csv; charset=utf-8", headers={"Content-Disposition": name})


def live_parts(request: Request, studio: Studio, job_id: str, error: ZigguratError | None = None) -> Response:
    """Return the parts of the page that change while a job runs, of the tab that the browser shows.

    Args:
        request: that it answers.
        studio: where the job is.
        job_id: of the job.
        error: what went wrong with what was asked for; None for nothing.
    """
    now = job_now(studio, job_id)
    tab = _tab(request, now.job.kind)
    if "curves" in request.query_params and not now.has_curves:  # it ended before its first point
        return Response(status_code=204, headers={"HX-Refresh": "true"})
    # What an action was answered stays until the next one: it does not go with the next step of a training.
    is_answer = request.method == "POST"
    wanted = (*_ALWAYS, *(("said",) if is_answer else ()), *_LIVE.get(tab, ()))
    places = [each for each in wanted if each != "rate-now" or now.has_curves]
    timeline = studio.jobs.timeline(job_id) if "metrics" in places else []
    values = {**_shown(studio, now, tab), "marks": drawn_marks(timeline), "about": None, "typed": {}}
    return part(request, "job/live.html", places=places, is_answer=is_answer, error=error, **values)


def job_page(
    request: Request,
    studio: Studio,
    job_id: str,
    error: ZigguratError | None = None,
    **typed: Any,
) -> Response:
    """Return the whole page.

    Args:
        request: that it answers.
        studio: where the job is.
        job_id: of the job.
        error: what went wrong with what was asked for; None for nothing.
        typed: what was typed into a form that was not taken.
    """
    now = job_now(studio, job_id)
    is_edit = not {"notes", "tags", "project"}.isdisjoint(typed)
    tab = "configuration" if is_edit else _tab(request, now.job.kind)
    live = LiveView(studio, now.job) if tab in ("overview", "predictions", "system") else None
    return page(
        request,
        "job/page.html",
        topics=(f"job:{job_id}",),
        about=job_about(studio, now.job, studio.machine.strip()["frameworks"]),
        log=job_log(studio, job_id) if tab == "log" or (tab, now.job.kind) == ("overview", "program") else None,
        program=program_view(studio, now.job, request.query_params.get("file", "")) if tab == "program" else None,
        files=len(studio.programs.files(job_id)) if (tab, now.job.kind) == ("overview", "program") else 0,
        live=live,
        marks=drawn_marks(live.events) if live is not None else [],
        projects=studio.projects.names() if tab == "configuration" else [],
        error=error,
        typed=typed,
        **_shown(studio, now, tab),
    )


def _shown(studio: Studio, now: JobNow, tab: str) -> dict[str, Any]:
    """Return what the page and its parts have in common."""
    job = now.job
    is_training = job.kind in RUN_KINDS
    has_rate_chart = is_training and tab == "overview" and now.has_curves
    return {
        "now": now,
        "job": job,
        "is_training": is_training,
        "tab": tab,
        "form_tab": "" if tab == "overview" else tab,
        "tabs": [each for each in _TABS.items() if each[0] in _tabs_of(job.kind)],
        "diverged": divergence_view(studio, job, now.next_rate),
        "values": logged_values(studio, job, now.scalars) if tab == "overview" else [],
        "rate_chart": rate_chart(studio, job, now.rate_asked) if has_rate_chart else None,
        "results": result_texts(studio.jobs.results(now.users)) if tab == "predictions" else {},
        "metric_name": metric_name,
        "metric_text": metric_text,
        "metric_names": metric_names,
    }


def _tabs_of(kind: str) -> list[str]:
    left_out = {"train": (_OF_PROGRAMS,), "program": ("predictions",)}.get(kind, (*_OF_TRAININGS, _OF_PROGRAMS))
    return [name for name in _TABS if name not in left_out]


def _tab(request: Request, kind: str) -> str:
    """Return the tab that is asked for; of what a page sends in the background, the one that the browser shows."""
    known = _tabs_of(kind)
    shown = parse_qs(urlsplit(request.headers.get("hx-current-url", "")).query).get("tab", [""])[0]
    wanted = request.query_params.get("tab") or (shown if is_part(request) else "")
    return wanted if wanted in known else known[0]


def _live_or_gone(request: Request, studio: Studio, job_id: str) -> Response:
    try:
        return live_parts(request, studio, job_id)
    except NotThereError:  # deleted while this page was open
        return part(request, "job/gone.html")


async def _changed_fields(request: Request) -> dict[str, str]:
    """Return the fields that were sent. A model would take an empty one, which clears a text, for one not sent."""
    form = await request.form()
    return {name: value for name in CHANGED_FIELDS if isinstance(value := form.get(name), str)}


_ACTIONS: Final = {
    "stop": jobs.stop_job,
    "pause": jobs.pause_job,
    "resume": jobs.resume_job,
    "retry": jobs.retry_job,
}


@router.post("/jobs/{job_id}/actions/{action}", include_in_schema=False)
def act(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    action: Literal["stop", "stop_now", "pause", "resume", "retry"],
) -> Response:
    """Do what a button says."""
    try:
        if action == "stop_now":
            jobs.stop_job(studio, who, job_id, now=True)
        else:
            _ACTIONS[action](studio, who, job_id)
    except ZigguratError as error:
        return _refused(request, studio, job_id, error)
    return _done(request, studio, job_id)


@router.post("/jobs/{job_id}/learning-rate", include_in_schema=False)
def set_learning_rate(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    value: Annotated[str, Form()] = "",
    force: Annotated[bool, Form()] = False,
) -> Response:
    """Set the learning rate of a training that runs; one of more than ten times the present one by ``force`` only."""
    try:
        number = _rate(value)
        jobs.set_hyperparameter(studio, who, job_id, "learning_rate", number, force)
    except ZigguratError as error:
        return _refused(request, studio, job_id, error, learning_rate=value)
    return _done(request, studio, job_id)


@router.post("/jobs/{job_id}/learning-rate/schedule", include_in_schema=False)
def follow_schedule(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Let the schedule of a training that runs set the learning rate again."""
    try:
        jobs.unset_hyperparameter(studio, who, job_id, "learning_rate")
    except ZigguratError as error:
        return _refused(request, studio, job_id, error)
    return _done(request, studio, job_id)


@router.post("/jobs/{job_id}/change", include_in_schema=False)
def change(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    given: Annotated[dict[str, str], Depends(_changed_fields)],
) -> Response:
    """Change what people call a job and what they note about it; fields that are not sent stay."""
    try:
        jobs.change_job(studio, who, job_id, change_from(given), fields=list(given))
    except ZigguratError as error:
        return _refused(request, studio, job_id, error, **given)
    return _back(request, job_id)


@router.get("/jobs/{job_id}/delete", include_in_schema=False)
def ask_to_delete(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the dialog that asks before a job is deleted; for browsers without scripts, a page."""
    now = job_now(studio, job_id)
    if is_part(request, "job-dialog"):
        return part(request, "job/delete_dialog.html", now=now, is_dialog=True, trash_days=studio.settings.trash_days)
    return page(request, "job/delete.html", now=now, is_dialog=False, trash_days=studio.settings.trash_days)


@router.post("/jobs/{job_id}/delete", include_in_schema=False)
def delete(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, force: Annotated[bool, Form()] = False
) -> Response:
    """Delete a job and its folder."""
    job, days = studio.jobs.get(job_id), studio.settings.trash_days
    try:
        jobs.delete_job(studio, who, job_id, force)
    except ZigguratError as error:
        return page(
            request, "job/delete.html", now=job_now(studio, job_id), error=error, is_dialog=False, trash_days=days
        )
    return see_deleted(request, LIST_PAGES.get(job.kind, "/"), job.name, job_id)


@router.post("/jobs/{job_id}/checkpoints/{name}/delete", include_in_schema=False)
def remove_checkpoint(request: Request, studio: StudioDep, who: TrainerUser, job_id: str, name: str) -> Response:
    """Remove a checkpoint of a job that is not running."""
    try:
        jobs.remove_checkpoint(studio, who, job_id, name)
    except ZigguratError as error:
        return _refused(request, studio, job_id, error)
    return _done(request, studio, job_id)


def _done(request: Request, studio: Studio, job_id: str) -> Response:
    return live_parts(request, studio, job_id) if is_part(request) else _back(request, job_id)


def _back(request: Request, job_id: str) -> Response:
    """Send the browser to the tab on which the form stands."""
    tab = request.query_params.get("tab", "")
    return see_other(request, f"/jobs/{job_id}", {"tab": tab if tab in _TABS else ""})


def _refused(request: Request, studio: Studio, job_id: str, error: ZigguratError, **typed: Any) -> Response:
    """Show the page again with what was typed and what is wrong with it."""
    if status_of(error) == 404 and "/checkpoints/" not in request.url.path:
        raise error
    if is_part(request):
        return live_parts(request, studio, job_id, error)
    return job_page(request, studio, job_id, error, **typed)


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(
            f"{f'`{text[:50]}`' if text.strip() else 'Nothing'} is no learning rate: it must be a number above 0.",
            advice=comma_question(text, "number") or "Typical rates are 0.0001 to 0.1.",
            details={"field": "learning_rate"},
        ) from None
