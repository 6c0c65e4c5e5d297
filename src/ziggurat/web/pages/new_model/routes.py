"""New-model page: configuration and start of a training job."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request, Response
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect

from ziggurat.errors import SpecError, UsageError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.errors import HTTPError, status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.new_model.fields import model_fields
from ziggurat.web.pages.new_model.fit import fill_in, untouched, usual_rate
from ziggurat.web.pages.new_model.form import ModelForm, clone_form, first_form, posted_form
from ziggurat.web.pages.new_model.previews import preflight_look, rate_look
from ziggurat.web.pages.new_model.request import Asked, problems_of, read_form
from ziggurat.web.pages.new_model.view import choices_of, data_of, networks_of, summary_of
from ziggurat.web.rendering import page, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["Sent", "router", "whole_page"]

router = new_router()


async def _sent(request: Request) -> FormData:
    try:
        return await request.form()
    except ClientDisconnect:  # a field was changed again before the answer to the last change came
        raise HTTPError(UsageError("A form must be sent to its end.")) from None


Sent = Annotated[FormData, Depends(_sent)]
"""What stands in the form that was sent."""


@router.get("/models/new", include_in_schema=False)
def show(
    request: Request,
    studio: StudioDep,
    _who: TrainerUser,
    dataset: str = "",
    clone: str = "",
    model: str = "",
    checkpoint: str = "",
) -> Response:
    """Return the empty form, or the one that would make a job again."""
    form = clone_form(studio, clone) if clone else untouched(first_form())
    if model:
        earlier = clone_form(studio, model)
        form.values.update(
            method="previous",
            previous_model=model,
            previous_checkpoint=checkpoint,
            dataset=earlier["dataset"],
        )
    if dataset:
        form.values["dataset"] = dataset
    fill_in(form, data_of(studio, form), networks_of(studio, form))
    asked = read_form(studio, form)
    quick = preflight_look(studio, asked, whole=False)
    return whole_page(request, studio, form, asked, shows_problems=False, preflight=quick)


@router.post("/models/new", include_in_schema=False)
def start(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Put the training, or all of a sweep, into the queue; what is wrong is said at its field, and nothing is lost."""
    form = posted_form(studio, sent)
    asked = read_form(studio, form)
    if asked.problems:
        return whole_page(request, studio, form, asked, 422)
    try:
        jobs = studio.training.create(asked.request, owner=who.name)
    except ZigguratError as error:
        asked.problems.update(problems_of(form, error))
        shape = None if isinstance(error, SpecError) else error.as_dict()
        return whole_page(request, studio, form, asked, status_of(error), error=shape)
    for job in jobs:
        studio.people.note(who, "training.create", job.id)
    if len(jobs) == 1:
        return see_other(request, f"/models/{jobs[0].id}")
    return see_other(request, "/", {"group": jobs[0].group})


def whole_page(
    request: Request,
    studio: Studio,
    form: ModelForm,
    asked: Asked,
    status: int = 200,
    *,
    shows_problems: bool = True,
    **results: Any,
) -> Response:
    """Return the page.

    Args:
        request: that it answers.
        studio: that is held.
        form: what stands in it.
        asked: what that asks for.
        status: of HTTP.
        shows_problems: whether fields say what is wrong; a form that nobody touched yet does not.
        results: ``error``, ``network``, ``preview``, ``preflight``, ``words``: what a button asked for.
    """
    problems = asked.problems if shows_problems else {}
    choices = choices_of(studio, form, problems)
    shown = dict.fromkeys(("error", "network", "preview", "preflight", "words"))
    return page(
        request,
        "new_model/page.html",
        status,
        **{
            **shown,
            "form": form,
            "asked": asked,
            "problems": problems,
            "choices": choices,
            "usual_rate": usual_rate(form, choices.networks),
            "summary": summary_of(studio, form["dataset"]),
            "rate": rate_look(studio, asked),
            "fields": model_fields(),
            **results,
        },
    )
