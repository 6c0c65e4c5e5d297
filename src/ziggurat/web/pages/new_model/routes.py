"""New-model page: the form, the previews behind its buttons, and the start of a training job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Depends, Request, Response
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect

from ziggurat.entities.backend_info import DEFAULT_BACKEND
from ziggurat.errors import JobError, SpecError, UnknownNameError, UsageError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.errors import HTTPError, status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.caches import image_cache
from ziggurat.web.pages.new_model.form import (
    Asked,
    ModelForm,
    clone_form,
    fill_in,
    first_form,
    model_fields,
    posted_form,
    problems_of,
    read_form,
    untouched,
    usual_rate,
)
from ziggurat.web.pages.new_model.view import (
    choices_of,
    data_of,
    network_look,
    networks_of,
    preflight_look,
    preview_look,
    rate_look,
    summary_of,
    words_look,
)
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.networks import network_text

__all__ = ["router"]

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
        shows_problems: whether fields say what is wrong; an untouched form does not.
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


_Look = Literal[
    "check", "dataset", "network", "checkpoints", "rate", "preview", "preflight", "quick", "words", "visualize", "debug"
]

_FILLS_IN = ("dataset", "network")
"""What changes other fields of the form."""

_RESULTS = {
    "preview": "preview",
    "preflight": "preflight",
    "quick": "preflight",
    "words": "words",
    "visualize": "network",
    "debug": "network",
}
"""What is asked for → under which name the page shows it."""


@router.get("/models/new/frameworks", include_in_schema=False)
def frameworks(request: Request, studio: StudioDep, _who: TrainerUser, chosen: str = DEFAULT_BACKEND) -> Response:
    """Return the choice of frameworks once each was tried, which takes seconds the first time."""
    studio.machine.frameworks.find()
    form = first_form()
    form.values["custom_framework"] = chosen
    return part(request, "new_model/frameworks.html", form=form, choices=choices_of(studio, form, {}), problems={})


@router.get("/models/new/pictures/{name}/{number}", include_in_schema=False)
def picture(request: Request, _who: TrainerUser, name: str, number: int) -> Response:
    """Return an image of a preview, as long as it is kept."""
    content = image_cache(request).get(name, number)
    if content is None:
        return Response(status_code=404)
    return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


@router.get("/models/new/{look}", include_in_schema=False)
def come_back(request: Request, _who: TrainerUser) -> Response:
    """Send those who ask for a part by its address to the form."""
    return see_other(request, "/models/new")


@router.post("/models/new/customize", include_in_schema=False)
def customize(request: Request, studio: StudioDep, _who: TrainerUser, sent: Sent) -> Response:
    """Return the form with the code of a network in the editor, to be changed."""
    form = posted_form(studio, sent)
    error = None
    try:
        text, backend, name = _code(studio, str(sent.get("customize") or form["standard_network"]))
        form.values.update(method="custom", network_text=text, custom_framework=backend, network_file=f"{name}.py")
    except ZigguratError as caught:
        error = caught.as_dict()
    return whole_page(request, studio, form, read_form(studio, form), shows_problems=False, error=error)


@router.post("/models/new/{look}", include_in_schema=False)
def show_look(request: Request, studio: StudioDep, _who: TrainerUser, look: _Look, sent: Sent) -> Response:
    """Return what a button asks for."""
    form = posted_form(studio, sent)
    if look in _FILLS_IN:
        fill_in(form, data_of(studio, form), networks_of(studio, form))
    asked = read_form(studio, form)
    result = _LOOKS[look](request, studio, form, asked, str(sent.get("another", "")))
    if is_part(request) and look != "check":
        template = f"new_model/{'preflight' if look == 'quick' else look}.html"
        if look in ("visualize", "debug"):
            template = "new_model/network_look.html"
        if look in _FILLS_IN:
            template = "new_model/filled_in.html"
        return part(request, template, form=form, asked=asked, problems=asked.problems, **result)
    shown = {_RESULTS[look]: result[_RESULTS[look]]} if look in _RESULTS else {}
    if look in ("check", *_FILLS_IN):
        shown["preflight"] = preflight_look(studio, asked, whole=False)
    return whole_page(request, studio, form, asked, shows_problems=look == "check", **shown)


def _filled_in(studio: Studio, form: ModelForm, asked: Asked) -> dict[str, Any]:
    """Return all that follows from the choice of data or network."""
    choices = choices_of(studio, form, asked.problems)
    return {
        "summary": summary_of(studio, form["dataset"]),
        "choices": choices,
        "usual_rate": usual_rate(form, choices.networks),
        "fields": model_fields(),
    }


def _code(studio: Studio, wanted: str) -> tuple[str, str, str]:
    """Return text, backend and name of a network: ``tensorflow/lenet``, or ``job:ID`` for that of a job."""
    if not wanted.startswith("job:"):
        backend, _, name = wanted.rpartition("/")
        return network_text(name, backend), backend, name
    job = studio.jobs.get(wanted.removeprefix("job:"))
    network: Any = job.spec.get("network")
    backend = str(job.spec.get("backend"))
    if not isinstance(network, dict):
        raise JobError("Code is taken from a job that trained a network.", received=f"{job.id}, of kind {job.kind}")
    if network["source"] == "zoo":
        return network_text(network["name"], backend), backend, network["name"]
    if not network.get("text"):
        raise UnknownNameError("network with code", network["path"], [])
    return network["text"], backend, network["path"].rpartition("/")[2].removesuffix(".py")


_Maker = Callable[[Request, Studio, ModelForm, Asked, str], dict[str, Any]]

_LOOKS: dict[str, _Maker] = {
    "check": lambda _request, _studio, _form, _asked, _another: {},
    "dataset": lambda _request, studio, form, asked, _another: _filled_in(studio, form, asked),
    "network": lambda _request, studio, form, asked, _another: _filled_in(studio, form, asked),
    "checkpoints": lambda _request, studio, form, asked, _another: {
        "choices": choices_of(studio, form, asked.problems)
    },
    "rate": lambda _request, studio, _form, asked, _another: {"rate": rate_look(studio, asked)},
    "preview": lambda request, studio, form, asked, another: {
        "preview": preview_look(studio, form, asked, image_cache(request), another)
    },
    "preflight": lambda _request, studio, _form, asked, _another: {
        "preflight": preflight_look(studio, asked, whole=True)
    },
    "quick": lambda _request, studio, _form, asked, _another: {"preflight": preflight_look(studio, asked, whole=False)},
    "words": lambda request, studio, _form, asked, _another: {
        "words": words_look(studio, asked, str(request.base_url).rstrip("/"))
    },
    "visualize": lambda _request, studio, form, asked, _another: {
        "network": network_look(studio, form, asked, "visualize")
    },
    "debug": lambda _request, studio, form, asked, _another: {"network": network_look(studio, form, asked, "debug")},
}
