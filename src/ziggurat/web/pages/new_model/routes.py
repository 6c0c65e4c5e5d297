"""New-model page: the form, its draft and presets, the previews behind its buttons, and the start of a training job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from fastapi import Depends, Request, Response
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect

from ziggurat.entities.backend_info import DEFAULT_BACKEND, backend_infos
from ziggurat.errors import JobError, MissingEntryError, SpecError, UnknownNameError, UsageError, ZigguratError
from ziggurat.operations.models import create_training
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.errors import HTTPError, status_of
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import identity_of, new_router
from ziggurat.web.caches import image_cache
from ziggurat.web.drafts import drop_draft, tab_query
from ziggurat.web.pages.job.view import failure_in_code
from ziggurat.web.pages.new_model.chosen_data import data_of, task_choice
from ziggurat.web.pages.new_model.fill_in import (
    apply_fine_tuning,
    apply_recipe,
    fill_in,
    filled_fields,
    put_fields,
    recipe_state,
    standard_network,
    tuning_state,
    undo_fine_tuning,
    undo_recipe,
)
from ziggurat.web.pages.new_model.folds import folds_of
from ziggurat.web.pages.new_model.form import ModelForm, clone_form, first_form, model_fields, posted_form
from ziggurat.web.pages.new_model.kept import (
    LAST,
    PAGE,
    delete_preset,
    draft_form,
    keep_draft,
    origin_query,
    preset_names,
    save_preset,
    with_preset,
)
from ziggurat.web.pages.new_model.looks import network_look, preflight_look, preview_look, rate_look, words_look
from ziggurat.web.pages.new_model.network_tabs import network_tabs
from ziggurat.web.pages.new_model.request import Asked, problems_of, read_form
from ziggurat.web.pages.new_model.view import checkpoints_of, choices_of, framework_choices, summary_of
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.network_checks import check_network
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.networks import network_text
from ziggurat.zoo.backends import backend_for

__all__ = ["router", "whole_page"]

router = new_router()


async def _sent(request: Request) -> FormData:
    try:
        return await request.form()
    except ClientDisconnect:  # a field was changed again before the answer to the last change came
        raise HTTPError(UsageError("The form was not sent completely.")) from None


Sent = Annotated[FormData, Depends(_sent)]
"""What stands in the form that was sent."""


_ORIGINS: Final = ("dataset", "clone", "learning_rate", "model", "checkpoint", "weights")
"""What an address may say that a new form begins with."""

_ORIGIN_JOBS: Final = {"dataset": JobName("dataset"), "clone": JobName("train"), "model": JobName("train")}


@router.get("/models/new", include_in_schema=False)
def show(request: Request, studio: StudioDep, _who: TrainerUser) -> Response:
    """Return the draft, the form that the query asks for, or else the form with the recommended recipe.

    A query goes before a draft that was begun elsewhere; the draft stays until something is changed.
    """
    query = {name: request.query_params.get(name, "") for name in _ORIGINS}
    query |= {name: kind.resolve(query[name], studio) for name, kind in _ORIGIN_JOBS.items()}
    origin = urlencode({name: value for name, value in query.items() if value})
    form, draft = draft_form(request, studio)
    other = network = None
    if form is None or (origin and form["origin"] != origin):
        form, draft, other = _new_form(studio, **query), None, draft
        form.values["origin"] = origin
        problem = failure_in_code(studio.jobs.get(query["clone"])) if query["clone"] else None
        network = None if problem is None else {"problem": problem}
    asked = read_form(studio, form)
    quick = preflight_look(studio, form, asked, whole=False)
    shown = {"preflight": quick, "draft": draft, "other_draft": other, "network": network}
    return whole_page(request, studio, form, asked, shows_problems=False, **shown)


def _new_form(
    studio: Studio, *, dataset: str, clone: str, learning_rate: str, model: str, checkpoint: str, weights: str
) -> ModelForm:
    form = clone_form(studio, clone) if clone else first_form()
    if weights:
        form.values.update(weights="pretrained", pretrained_weights=weights, **_network_for(studio, weights))
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
    fill_in(studio, form)
    if learning_rate:
        form.values["learning_rate"] = learning_rate
    return form


def _network_for(studio: Studio, weights: str) -> dict[str, str]:
    """Return the field with the network that pretrained weights fit, in the first framework that has it."""
    network = studio.weights.get(weights).network
    try:
        return {"method": "standard", "standard_network": f"{backend_for(network)}/{network}"} if network else {}
    except ZigguratError:  # no framework of this studio has it
        return {}


@router.post("/models/new", include_in_schema=False)
def start(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Put the training, or all of a sweep, into the queue; what is wrong is said at its field, and nothing is lost."""
    form = posted_form(studio, sent)
    asked = read_form(studio, form)
    if asked.problems:
        return whole_page(request, studio, form, asked, 422, draft=keep_draft(request, form))
    try:
        jobs = create_training(studio, who, asked.request)
    except ZigguratError as error:
        asked.problems.update(problems_of(form, error))
        shape = None if isinstance(error, SpecError) else error.as_dict()
        draft = keep_draft(request, form)
        return whole_page(request, studio, form, asked, status_of(error), error=shape, draft=draft)
    drop_draft(request, PAGE)
    with suppress(UsageError):  # too many presets, or too much code: the training has started all the same
        save_preset(studio, who, LAST, form)
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
        results: ``error``, ``network``, ``preview``, ``preflight``, ``words``: what a button asked for;
            ``conversion``: what another tool's network became; ``draft``: of the form; ``other_draft``: that a change
            of the form would replace.
    """
    problems = asked.problems if shows_problems else {}
    shown = dict.fromkeys(("error", "network", "preview", "preflight", "words", "draft", "other_draft", "conversion"))
    return page(
        request,
        "new_model/page.html",
        status,
        **{
            **shown,
            **_filled_in(studio, form, problems),
            "problems": problems,
            "asked": asked,
            "code_findings": _code_findings(form["network_text"], form["custom_framework"]),
            "form": form,
            "network_tabs": network_tabs(),
            "presets": preset_names(studio, identity_of(request)),
            "preset_said": "",
            "preset_deleted": "",
            "rate": rate_look(studio, asked),
            "is_part": False,
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


@router.post("/models/new/recipe", include_in_schema=False)
def change_recipe(request: Request, studio: StudioDep, _who: TrainerUser, sent: Sent) -> Response:
    """Apply the recommended recipe, or take it out of the form."""
    form = posted_form(studio, sent)
    change = undo_recipe if sent.get("recipe_action") == "undo" else apply_recipe
    change(studio, form)
    return _back(request, form)


@router.post("/models/new/fine-tune", include_in_schema=False)
def change_fine_tuning(request: Request, studio: StudioDep, _who: TrainerUser, sent: Sent) -> Response:
    """Apply the preset "Fine-tune", or take it out of the form."""
    form = posted_form(studio, sent)
    change = undo_fine_tuning if sent.get("fine_tune_action") == "undo" else apply_fine_tuning
    change(studio, form)
    return _back(request, form)


@router.post("/models/new/fix", include_in_schema=False)
def fix(request: Request, studio: StudioDep, _who: TrainerUser, sent: Sent) -> Response:
    """Put what a finding of the check proposes into the form."""
    form = posted_form(studio, sent)
    put_fields(form, str(sent.get("fix", "")))
    return _back(request, form)


@router.post("/models/new/framework", include_in_schema=False)
def change_framework(request: Request, studio: StudioDep, _who: TrainerUser, sent: Sent) -> Response:
    """Show the standard networks of another framework, and choose the one with the same name, else its first."""
    form = posted_form(studio, sent)
    info = backend_infos().get(str(sent.get("framework", "")))
    if info is not None and info.networks:
        backend, name = str(sent["framework"]), form["standard_network"].rpartition("/")[2]
        chosen = name if info.network(name) is not None else info.networks[0].name
        form.values.update(standard_network=f"{backend}/{chosen}", method="standard")
        if info.takes_network_files and not form.has_own_code():
            form.show_code(backend)
        fill_in(studio, form)
    return _back(request, form)


@router.post("/models/new/code-framework", include_in_schema=False)
def change_code_framework(request: Request, _who: TrainerUser, studio: StudioDep, sent: Sent) -> Response:
    """Show the code for another framework: what was written for it, or else its template."""
    form = posted_form(studio, sent)
    info = backend_infos().get(str(sent.get("framework", "")))
    if info is not None and info.takes_network_files:
        form.show_code(str(sent["framework"]))
        form.values["method"] = "custom"
    return _back(request, form)


@router.post("/models/new/reset", include_in_schema=False)
def reset(request: Request, studio: StudioDep, _who: TrainerUser, sent: Sent) -> Response:
    """Drop the draft, and show the form as it was first."""
    drop_draft(request, PAGE)
    return see_other(request, "/models/new", {**origin_query(posted_form(studio, sent)), **tab_query(request)})


@router.post("/models/new/preset", include_in_schema=False)
def load_preset(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Put the settings of a preset into the form."""
    form = posted_form(studio, sent)
    try:
        loaded = with_preset(studio, who, str(sent.get("preset", "")), form)
    except UsageError as error:
        asked, shape = read_form(studio, form), error.as_dict()
        return whole_page(request, studio, form, asked, status_of(error), shows_problems=False, error=shape)
    return _back(request, loaded)


@router.post("/models/new/presets", include_in_schema=False)
def add_preset(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Save the settings of the form under a name."""
    form, name = posted_form(studio, sent), str(sent.get("preset_name", "")).strip()
    try:
        save_preset(studio, who, name, form)
    except ZigguratError as error:
        return _presets(request, studio, form, problem=str(error))
    return _presets(request, studio, form, said=f"Saved as preset “{name}”.")


@router.post("/models/new/presets/delete", include_in_schema=False)
def remove_preset(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Delete a preset."""
    form, name, deleted_id = posted_form(studio, sent), str(sent.get("preset", "")), ""
    with suppress(MissingEntryError):  # deleted in another tab
        deleted_id = delete_preset(studio, who, name)
    return _presets(request, studio, form, said=f"Preset “{name}” deleted.", deleted_id=deleted_id)


def _presets(
    request: Request, studio: Studio, form: ModelForm, *, said: str = "", deleted_id: str = "", problem: str = ""
) -> Response:
    """Return the list of presets with a word on what was done; without a script, the page."""
    problems = {"preset_name": problem} if problem else {}
    values: dict[str, Any] = {"presets": preset_names(studio, identity_of(request)), "preset_said": said}
    values["preset_deleted"] = deleted_id
    if is_part(request):
        return part(request, "new_model/presets_changed.html", problems=problems, **values)
    asked = read_form(studio, form)
    shown = {**values, "problems": problems, "draft": keep_draft(request, form)}
    return whole_page(request, studio, form, asked, 422 if problem else 200, shows_problems=False, **shown)


def _back(request: Request, form: ModelForm) -> Response:
    """Show the form anew, from its draft."""
    keep_draft(request, form)
    return see_other(request, "/models/new", origin_query(form))


@router.post("/models/new/code", include_in_schema=False)
def check_code(request: Request, _who: TrainerUser, sent: Sent) -> Response:
    """Return the mistakes in the code of a network that can be seen without running it."""
    text, framework = str(sent.get("network_text", "")), str(sent.get("custom_framework", DEFAULT_BACKEND))
    return part(request, "new_model/code_findings.html", code_findings=_code_findings(text, framework))


def _code_findings(text: str, framework: str) -> list[dict[str, Any]]:
    text = text.replace("\r\n", "\n")
    return [
        {**vars(each), "sentence": each.sentence}
        for each in (check_network(text, backend=framework) if text.strip() else [])
    ]


@router.get("/models/new/frameworks", include_in_schema=False)
def frameworks(request: Request, studio: StudioDep, _who: TrainerUser, chosen: str = DEFAULT_BACKEND) -> Response:
    """Return the choice of frameworks once each was tried, which takes seconds the first time."""
    studio.machine.frameworks.find()
    form = first_form()
    form.values["custom_framework"] = chosen
    return part(
        request, "new_model/frameworks.html", form=form, choices={"frameworks": framework_choices(studio)}, problems={}
    )


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
        form.show_code(backend, text)
        form.values.update(method="custom", network_file=f"{name}.py")
        fill_in(studio, form)
    except ZigguratError as caught:
        error = caught.as_dict()
    asked, draft = read_form(studio, form), keep_draft(request, form)
    quick = preflight_look(studio, form, asked, whole=False)
    return whole_page(request, studio, form, asked, shows_problems=False, error=error, draft=draft, preflight=quick)


@router.post("/models/new/draft", include_in_schema=False)
def save_last_letters(request: Request, studio: StudioDep, _who: TrainerUser, sent: Sent) -> Response:
    """Save the form of a page that is left."""
    keep_draft(request, posted_form(studio, sent))
    return Response(status_code=204)


@router.post("/models/new/{look}", include_in_schema=False)
def show_look(request: Request, studio: StudioDep, _who: TrainerUser, look: _Look, sent: Sent) -> Response:
    """Return what a button asks for."""
    form = posted_form(studio, sent)
    if look in _FILLS_IN:
        fill_in(studio, form)
    asked, draft = read_form(studio, form), keep_draft(request, form)
    result = _LOOKS[look](request, studio, form, asked, str(sent.get("another", "")))
    if is_part(request) and look != "check":
        template = f"new_model/{'checked' if look in ('quick', 'preflight') else look}.html"
        if look in ("visualize", "debug"):
            template = "new_model/network_look.html"
        if look in _FILLS_IN:
            template = "new_model/filled_in.html"
        values = {"form": form, "asked": asked, "problems": asked.problems, "draft": draft, "is_part": True, **result}
        return part(request, template, **values)
    shown = {_RESULTS[look]: result[_RESULTS[look]]} if look in _RESULTS else {}
    if "preflight" not in shown:
        shown["preflight"] = preflight_look(studio, form, asked, whole=False)
    return whole_page(request, studio, form, asked, shows_problems=look == "check", draft=draft, **shown)


def _filled_in(studio: Studio, form: ModelForm, problems: Mapping[str, str]) -> dict[str, Any]:
    """Return all that follows from the choice of data or network."""
    network = standard_network(form["standard_network"]) if form["method"] == "standard" else None
    data = data_of(studio, form)
    summary = summary_of(studio, form, data)
    return {
        "task_choice": task_choice(form, data),
        "summary": summary,
        "choices": choices_of(studio, form, summary["what"], problems, data),
        "usual_rate": None if network is None else network.learning_rate,
        "fields": model_fields(),
        "recipe": recipe_state(studio, form),
        "tuning": tuning_state(form),
        "brought": filled_fields(form),
    }


def _checked(studio: Studio, form: ModelForm, asked: Asked, *, whole: bool) -> dict[str, Any]:
    """Return the check before the start, and the lines of the sections."""
    return {
        "preflight": preflight_look(studio, form, asked, whole=whole),
        "folds": folds_of(form, asked.problems, data_of(studio, form)),
        "recipe": recipe_state(studio, form),
        "tuning": tuning_state(form),
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
        raise JobError(f"{job.id} is of kind {job.kind}; code is taken from a job that trained a network.")
    if network["source"] == "zoo":
        return network_text(network["name"], backend), backend, network["name"]
    if not network.get("text"):
        raise UnknownNameError("network with code", network["path"], [])
    return network["text"], backend, network["path"].rpartition("/")[2].removesuffix(".py")


_Maker = Callable[[Request, Studio, ModelForm, Asked, str], dict[str, Any]]

_LOOKS: dict[str, _Maker] = {
    "check": lambda _request, _studio, _form, _asked, _another: {},
    "dataset": lambda _request, studio, form, asked, _another: _filled_in(studio, form, asked.problems),
    "network": lambda _request, studio, form, asked, _another: _filled_in(studio, form, asked.problems),
    "checkpoints": lambda _request, studio, form, _asked, _another: {
        "choices": {"checkpoints": checkpoints_of(studio, form)}
    },
    "rate": lambda _request, studio, _form, asked, _another: {"rate": rate_look(studio, asked)},
    "preview": lambda request, studio, form, asked, another: {
        "preview": preview_look(studio, form, asked, image_cache(request), another)
    },
    "preflight": lambda _request, studio, form, asked, _another: _checked(studio, form, asked, whole=True),
    "quick": lambda _request, studio, form, asked, _another: _checked(studio, form, asked, whole=False),
    "words": lambda request, studio, _form, asked, _another: {
        "words": words_look(studio, asked, str(request.base_url).rstrip("/"))
    },
    "visualize": lambda _request, studio, form, asked, _another: {
        "network": network_look(studio, form, asked, "visualize")
    },
    "debug": lambda _request, studio, form, asked, _another: {"network": network_look(studio, form, asked, "debug")},
}
