"""Request of the new-model form: the job that it asks for, and what is wrong at which field."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.entities.pretrained_weights import WEIGHTS_PREFIX
from ziggurat.errors import JobError, UsageError, ZigguratError, broken_rule
from ziggurat.specs import parse_spec
from ziggurat.web.forms import priority_of
from ziggurat.web.pages.new_model.chosen_data import data_of, untuned_fields, unused_fields
from ziggurat.web.pages.new_model.form import DIGITS, ModelForm, field_id, model_fields, value_of
from ziggurat.web.pages.new_model.network_tabs import network_tabs, seal
from ziggurat.workspace.network_checks import check_network
from ziggurat.workspace.new_jobs import JobRequest, expand_sweep
from ziggurat.workspace.studio import Studio

__all__ = ["Asked", "place_of", "problems_of", "read_form"]


_PLACES: Final = {
    "network": "network_text",
    "network.text": "network_text",
    "network.name": "standard_network",
    "backend": "custom_framework",
    "data": "dataset",
    "data.source": "dataset",
    "devices": "device",
    "fine_tuning": "fine_tuning-frozen_epochs",
}
"""Field of a spec → field of the form that asks for it, where that has another name."""

_PLACES_OF_METHOD: Final = {
    "standard": {"backend": "standard_network"},
    "previous": dict.fromkeys(("network", "network.name", "network.text", "backend", "pretrained"), "previous_model"),
    "pretrained": dict.fromkeys(
        ("network", "network.name", "network.text", "backend", "pretrained"), "published_model"
    ),
}
"""Where the network comes from → the same, for fields that other ways to choose one do not show."""


@dataclass
class Asked:
    """What the form asks for.

    Args:
        request: for the studio.
        problems: id of a field → what is wrong there; empty where all is well.
    """

    request: JobRequest
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def job_count(self) -> int:
        """How many jobs there will be."""
        count = 1
        for values in self.request.sweep.values():
            count *= len(values)
        return count

    @property
    def first_spec(self) -> Mapping[str, Any]:
        """The spec of the job, or of the first of a sweep."""
        try:
            return next(iter(expand_sweep(self.request)))[0]
        except UsageError:  # more jobs than a sweep may have, which is among the problems
            chosen = {path: values[:1] for path, values in self.request.sweep.items()}
            return next(iter(expand_sweep(JobRequest(spec=self.request.spec, sweep=chosen))))[0]


def read_form(studio: Studio, form: ModelForm) -> Asked:
    """Return what the form asks for, with all that is wrong with it."""
    content, sweep = _spec_content(form, unused_fields(data_of(studio, form)) | untuned_fields(form))
    problems: dict[str, str] = {}
    model, checkpoint = _add_network(studio, form, content, problems)
    dataset = _add_data(form, content)
    request = JobRequest(
        spec=content,
        sweep=sweep,
        dataset=dataset,
        model=model,
        checkpoint=checkpoint,
        project=form["project"].strip(),
        tags=tuple(each.strip() for each in form["tags"].split(",") if each.strip()),
        notes=form["notes"],
        priority=_priority(form, problems),
        parent=form["parent"],
    )
    asked = Asked(request, problems)
    _check(studio, form, asked)
    return asked


def problems_of(form: ModelForm, error: ZigguratError) -> dict[str, str]:
    """Return id of a field → what is wrong there; the empty id is for what belongs to no field."""
    listed = error.details.get("problems")
    if not listed:
        return {"": str(error)}
    found: dict[str, str] = {}
    for each in listed:
        place = place_of(form, each["field"])
        rule = str(each["rule"]).replace(f"`{each['field']}`", _label(place), 1)
        sentence = broken_rule(f"{rule}.", each.get("received"))
        # At its field the advice would repeat the hint; a question is news there too.
        is_hint = bool(place) and not each["advice"].startswith("Did you mean")
        found.setdefault(place, sentence if is_hint else f"{sentence} {each['advice']}".strip())
    return found


def _spec_content(form: ModelForm, unused: Set[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    content: dict[str, Any] = {"kind": "train", "version": 1}
    sweep: dict[str, list[Any]] = {}
    chosen = {"schedule": form["schedule"], "optimizer": form["optimizer"]}
    for shown in model_fields().values():
        text = form[shown.id].strip()
        if shown.id in unused or (shown.variant and shown.variant != chosen[shown.owner]):
            continue
        if text == shown.default or (not text and shown.kind != "boolean"):
            continue
        value = value_of(shown, text)
        if shown.path in chosen:
            _assign(content, f"{shown.path}.{_tag(shown.path)}", value)
            continue
        if shown.owner in chosen:
            _assign(content, f"{shown.owner}.{_tag(shown.owner)}", chosen[shown.owner])
        if isinstance(value, tuple):
            sweep[shown.path] = list(dict.fromkeys(value))
            value = value[0]
        _assign(content, shown.path, value)
    if form["name"].strip():
        content["name"] = form["name"].strip()
    if form.devices:
        content["devices"] = list(form.devices)
    return content, sweep


def _add_network(studio: Studio, form: ModelForm, content: dict[str, Any], problems: dict[str, str]) -> tuple[str, str]:
    """Add network and backend; return the job whose weights it starts from, with the checkpoint."""
    method = form["method"]
    if form.has_code:
        if method != "custom":
            _check_converted(form, problems)
        content["backend"] = form["custom_framework"]
        path = form["network_file"] if form["network_file"].endswith(".py") else "network.py"
        content["network"] = {"source": "file", "path": path.rpartition("/")[2], "text": form["network_text"]}
        _check_code(form, problems)
        _add_weights(form, content, problems)
        return (form["previous_model"], form["previous_checkpoint"]) if form.keeps_weights else ("", "")
    if method == "previous":
        return _add_previous(studio, form, content, problems)
    if method == "pretrained":
        return _add_published(studio, form, content, problems)
    _add_weights(form, content, problems)
    content["backend"], _, content["network"] = form["standard_network"].rpartition("/")
    if not content["backend"]:
        problems["standard_network"] = "Choose a network."
        content["backend"] = "null"
    return "", ""


def _check_converted(form: ModelForm, problems: dict[str, str]) -> None:
    """Note a network file that is not, or no longer, what the text of the tab becomes."""
    tab = next(each for each in network_tabs() if each.name == form["method"])
    if form["converted"] != seal(tab.name, form[tab.text_field], form["network_text"]):
        what = "has changed since it was converted" if form["converted"] else "is not converted yet"
        problems[tab.text_field] = f"The {tab.text_title} {what}. Press Convert."


def _check_code(form: ModelForm, problems: dict[str, str]) -> None:
    """Note what keeps the code from working at all."""
    if not form["network_text"].strip():
        problems["network_text"] = "Custom code must not be empty. Paste the code, or customize a standard network."
        return
    for found in check_network(form["network_text"], backend=form["custom_framework"]):
        if found.level == "error":
            problems["network_text"] = f"Line {found.line}: {found.sentence}"
            return


def _add_weights(form: ModelForm, content: dict[str, Any], problems: dict[str, str]) -> None:
    if form["weights"] == "pretrained":
        content["pretrained"] = f"{WEIGHTS_PREFIX}{form['pretrained_weights']}" if form["pretrained_weights"] else None
        if not content["pretrained"]:
            problems["pretrained_weights"] = "Choose pretrained weights, or random ones."
        return
    if form["weights"] != "file":
        return
    content["pretrained"] = form["pretrained"].strip() or None
    if not content["pretrained"]:
        problems["pretrained"] = "Weights from a file need its path. Enter it, or choose random weights."


def _add_previous(
    studio: Studio, form: ModelForm, content: dict[str, Any], problems: dict[str, str]
) -> tuple[str, str]:
    job = _add_network_of(studio, form["previous_model"], content)
    if job is None:
        problems["previous_model"] = "Choose a model that was trained."
        return "", ""
    return (job.id, form["previous_checkpoint"]) if form["previous_use"] == "weights" else ("", "")


def _add_published(
    studio: Studio, form: ModelForm, content: dict[str, Any], problems: dict[str, str]
) -> tuple[str, str]:
    chosen = next((each for each in studio.published.all() if each.name == form["published_model"]), None)
    job = _add_network_of(studio, chosen.job if chosen is not None else "", content)
    if chosen is None or job is None:
        problems["published_model"] = "Choose a model that was published, or another network."
        return "", ""
    return job.id, chosen.checkpoint


def _add_network_of(studio: Studio, job_id: str, content: dict[str, Any]) -> Job | None:
    """Add the network of an earlier training; None, with a network that stands in, where there is no such job."""
    content.update(backend="null", network="mlp")
    try:
        job = studio.jobs.get(job_id)
    except JobError:
        return None
    if job.kind != "train":
        return None
    content.update(backend=job.spec["backend"], network=job.spec["network"])
    if job.spec.get("backend_options") and "backend_options" not in content:
        content["backend_options"] = job.spec["backend_options"]
    return job


def _add_data(form: ModelForm, content: dict[str, Any]) -> str:
    """Add the source where it is none of the studio's datasets; return the id of one that is."""
    chosen = form["dataset"]
    if chosen == DIGITS or not chosen:
        _assign(content, "data.source", DIGITS)
        return ""
    if chosen.startswith("source:"):
        _assign(content, "data.source", chosen.removeprefix("source:"))
        return ""
    return chosen


def _priority(form: ModelForm, problems: dict[str, str]) -> int:
    try:
        return priority_of(form["priority"])
    except UsageError as error:
        problems["priority"] = str(error)
        return 0


def _check(studio: Studio, form: ModelForm, asked: Asked) -> None:
    """Note what is wrong with the specs that the form asks for."""
    try:
        studio.paths.check_spec(asked.request.spec)
    except ZigguratError as error:
        own = (form.has_code or form["method"] == "standard") and asked.request.spec.get("pretrained")
        asked.problems.setdefault("pretrained" if own else "dataset", str(error))
    try:
        for content, _ in expand_sweep(asked.request):
            whole = {**content, "data": {"source": DIGITS, **_mapping(content.get("data"))}}
            parse_spec(whole, source="the form")
    except ZigguratError as error:
        for place, sentence in problems_of(form, error).items():
            asked.problems.setdefault(place, sentence)
    if asked.request.dataset:
        _check_dataset(studio, asked)
    if asked.problems:
        return
    try:
        studio.training.check(asked.request)
    except ZigguratError as error:
        asked.problems.update(problems_of(form, error))


def _check_dataset(studio: Studio, asked: Asked) -> None:
    try:
        kind = studio.jobs.get(asked.request.dataset).kind
    except JobError:
        kind = ""
    if kind != "dataset":
        asked.problems["dataset"] = "This dataset does not exist any more. Choose another one."


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def place_of(form: ModelForm, path: str) -> str:
    """Return the id of the form's field for a field of the spec."""
    known = model_fields()
    named = ".".join(part for part in path.split(".") if not part.isdigit())
    weights = {"pretrained": "pretrained_weights"} if form["weights"] == "pretrained" else {}
    places = {**_PLACES, **weights, **_PLACES_OF_METHOD.get(form["method"], {})}
    if named in places:
        return places[named]
    owner = named.rpartition(".")[0]
    variant = form.values.get(owner, "")
    for found in (field_id(named), field_id(named, variant) if variant else "", owner):
        if found in known or found in form.values:
            return found
    return ""


def _label(place: str) -> str:
    """Return how a sentence calls a field of the form: its title, with the section that it is a part of."""
    shown = model_fields().get(place)
    if shown is None:
        return place.replace("_", " ").capitalize()
    owner = shown.owner.rpartition(".")[2].replace("_", " ")
    return f"{shown.title} ({owner})" if owner else shown.title


def _tag(owner: str) -> str:
    return {"schedule": "policy", "optimizer": "name"}[owner]


def _assign(content: dict[str, Any], path: str, value: Any) -> None:
    *owners, last = path.split(".")
    place = content
    for name in owners:
        below = place.get(name)
        place[name] = place = below if isinstance(below, dict) else {}
    place[last] = value
