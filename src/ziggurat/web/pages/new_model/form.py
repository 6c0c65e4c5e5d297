"""Form for a new model: its fields, state, what it fills in by itself, and its conversion to a request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from starlette.datastructures import FormData

from ziggurat.entities import Job
from ziggurat.entities.backend_info import DEFAULT_BACKEND, StandardNetwork, backend_info
from ziggurat.errors import JobError, UsageError, ZigguratError
from ziggurat.specs import (
    RENAMED,
    FieldDescription,
    TrainSpec,
    check_named_once,
    comma_question,
    describe_fields,
    parse_spec,
)
from ziggurat.workspace.new_jobs import JobRequest, expand_sweep
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import clone_request
from ziggurat.workspace.studio.networks import usual_network
from ziggurat.workspace.training_checks import why_no_fit, why_not_trainable

__all__ = [
    "DIGITS",
    "Asked",
    "ChosenData",
    "FormField",
    "ModelForm",
    "chosen_data",
    "clone_form",
    "fill_in",
    "first_form",
    "model_fields",
    "posted_form",
    "problems_of",
    "read_form",
    "untouched",
    "usual_rate",
]


_OWN: Final = ("name", "backend", "network", "pretrained", "data", "data.source", "devices")
"""Fields that the form asks for in its own way."""

_NUMBERS: Final = ("integer", "number")


@dataclass(frozen=True, kw_only=True)
class FormField:
    """A field of the form.

    Args:
        id: of its element, also its name in what is sent.
        path: of the spec's field, such as ``schedule.gamma``.
        variant: of the compound field for which it exists, such as ``step``; empty for all.
        kind: as in ``FieldDescription``; a choice among compounds is a ``choice``.
        title: its label.
        hint: one sentence on what it does, with the usual range.
        unit: of the number; empty for counts.
        choices: of a ``choice``; the empty one leaves it out.
        default: the text that stands in it at first.
    """

    id: str
    path: str
    variant: str
    kind: str
    title: str
    hint: str
    unit: str
    choices: tuple[str, ...]
    default: str

    @property
    def owner(self) -> str:
        """The compound field that it is a part of, such as ``schedule``; empty at the top."""
        return self.path.rpartition(".")[0]

    @property
    def options(self) -> list[tuple[str, str]]:
        """Value and text of each choice."""
        return [(choice, choice.replace("_", " ")) for choice in self.choices]

    @property
    def is_number(self) -> bool:
        """Whether several values of it make a sweep."""
        return self.kind in _NUMBERS

    @property
    def label(self) -> str:
        """Its label with the unit."""
        return f"{self.title} ({self.unit})" if self.unit and self.unit not in self.title.lower() else self.title


@cache
def model_fields() -> dict[str, FormField]:
    """Return id → field, in the order of the spec; parts that all variants share come once."""
    found: dict[str, FormField] = {}
    described = [each for each in describe_fields(TrainSpec) if not _is_own(each)]
    variants = {each.path: set(each.choices) for each in described if each.kind == "object" and each.choices}
    for each in described:
        owner = each.path.rpartition(".")[0]
        same = [other.variant for other in described if other.path == each.path and other.default == each.default]
        is_shared = bool(each.variant) and set(same) == variants.get(owner)
        for made in _form_fields(each, "" if is_shared else each.variant):
            found.setdefault(made.id, made)
    return found


def field_id(path: str, variant: str = "") -> str:
    """Return the id of a field: ``schedule-step-gamma`` for ``schedule.gamma`` of the variant ``step``."""
    *owner, last = path.split(".")
    return "-".join([*owner, variant, last] if variant else [*owner, last])


def text_of(field: FormField, value: Any) -> str:
    """Return how a value stands in a field."""
    if value is None:
        return "null" if field.default and field.kind in _NUMBERS else ""
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _list_text(field, value)
    return str(value)


def value_of(field: FormField, text: str) -> Any:
    """Return what a text means, or a tuple of several values; what is no such value stays text, for the spec to say so.

    A comma that may be a decimal one is no such value: ``0,01`` is not a sweep of 0 and 1.

    Args:
        field: it stands in.
        text: not empty.
    """
    if comma_question(text, field.kind):
        return text
    if field.kind in _NUMBERS:
        inner = text.removeprefix("[").removesuffix("]") if text.startswith("[") else text
        values = tuple(_json_or_text(part.strip()) for part in inner.split(",") if part.strip())
        return values if len(values) > 1 else _json_or_text(text)
    if field.kind == "boolean":
        return text == "true"
    if field.kind == "list" and not text.startswith("["):
        return [_json_or_text(part.strip()) for part in text.split(",") if part.strip()]
    if field.kind in ("list", "object") or (field.kind == "choice" and text.isdigit()):
        return _json_or_text(text)
    return text


def value_below(content: Any, path: str) -> Any:
    """Return the value at a path of a spec; None where there is none."""
    for part in path.split("."):
        content = content.get(part) if isinstance(content, Mapping) else None
    return content


def _is_own(described: FieldDescription) -> bool:
    return described.path in _OWN or described.path.startswith("network.")


def _form_fields(described: FieldDescription, variant: str) -> list[FormField]:
    """Return the field, or none for a compound whose parts are fields themselves."""
    kind, default = described.kind, described.default
    if kind == "object" and described.choices:
        kind, default = "choice", default[described.tag]
    elif kind == "object" and not described.path.endswith("options"):
        return []
    field = FormField(
        id=field_id(described.path, variant),
        path=described.path,
        variant=variant,
        kind=kind,
        title=described.title,
        hint=described.help.replace("`", ""),  # marks of code, which a hint shows as they are
        unit=described.unit,
        choices=described.choices,
        default="",
    )
    return [FormField(**{**field.__dict__, "default": text_of(field, default)})]


def _list_text(field: FormField, values: Sequence[Any]) -> str:
    plain = [each["name"] if _is_bare_plugin(each) else each for each in values]
    if any(isinstance(each, Mapping | list) for each in plain):
        return json.dumps(plain, ensure_ascii=False)
    if field.path == "preprocessing.size" and len(plain) == 2:
        return f"{plain[0]}x{plain[1]}"
    return ", ".join(text_of(field, each) for each in plain)


def _is_bare_plugin(value: Any) -> bool:
    return isinstance(value, Mapping) and "name" in value and not value.get("options")


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


DIGITS: Final = "digits"
"""Stands for the data that comes with the studio, among the ids of datasets."""

OWN_FIELDS: Final[dict[str, str]] = {
    "name": "",
    "dataset": DIGITS,
    "method": "standard",
    "standard_network": f"{DEFAULT_BACKEND}/lenet",
    "picked_network": "",
    "picked_rate": "",
    "previous_model": "",
    "previous_checkpoint": "",
    "previous_use": "weights",
    "published_model": "",
    "custom_framework": DEFAULT_BACKEND,
    "network_text": "",
    "network_file": "network.py",
    "pretrained": "",
    "project": "",
    "tags": "",
    "notes": "",
    "priority": "0",
    "parent": "",
    "preview_seed": "",
    "preview_split": "train",
    "preview_row": "",
    "look_limit_s": "60",
}
"""Fields that are not simply fields of the spec, with what stands in them at first."""


@dataclass
class ModelForm:
    """What stands in the fields.

    Args:
        values: id → text.
        devices: names of those that are chosen.
        parent: the same of the job that it is a clone of; None where it is none.
    """

    values: dict[str, str]
    devices: tuple[str, ...] = ()
    parent: ModelForm | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def is_changed(self, name: str) -> bool:
        """Whether a field differs from that of the job that is cloned."""
        if self.parent is None:
            return False
        return _same_lines(self.values[name]) != _same_lines(self.parent.values[name])

    def has_changed_devices(self) -> bool:
        """Whether other devices are chosen than those of the job that is cloned."""
        return self.parent is not None and self.devices != self.parent.devices

    def differs(self, shown: FormField) -> bool:
        """Whether something else than the default stands in a field."""
        return self.values[shown.id].strip() != shown.default

    @property
    def changed_count(self) -> int:
        """How many fields differ from those of the job that is cloned."""
        return sum(self.is_changed(name) for name in self.values) + self.has_changed_devices()


def first_form() -> ModelForm:
    """Return the form as it is shown at first."""
    defaults = {each.id: each.default for each in model_fields().values()}
    return ModelForm({**OWN_FIELDS, "network_text": backend_info(DEFAULT_BACKEND).network_template, **defaults})


def clone_form(studio: Studio, job_id: str) -> ModelForm:
    """Return the form that would make a job again.

    Raises:
        JobError: where there is none of that id.
    """
    request = clone_request(studio.jobs, job_id)
    form = _form_of(request)
    form.parent = _form_of(request)
    return form


def posted_form(studio: Studio, sent: FormData) -> ModelForm:
    """Return the form as a person sent it; a field that was not sent keeps what stands in it at first.

    Raises:
        SpecError: where a field came under its present and under a former name.
    """
    form = first_form()
    check_named_once([path for both in RENAMED["train"].items() for path in both if field_id(path) in sent])
    former = {field_id(new): field_id(old) for old, new in RENAMED["train"].items()}
    for name, shown in form.values.items():
        given = sent.get(name, sent.get(former.get(name, name)))
        described = model_fields().get(name)
        if isinstance(given, str):
            form.values[name] = given.replace("\r\n", "\n")
        elif described is not None and described.kind == "boolean":
            form.values[name] = ""  # a box that is not ticked is not sent
        else:
            form.values[name] = shown
    form.devices = tuple(each for each in sent.getlist("device") if isinstance(each, str))
    if form["parent"]:
        form.parent = _parent(studio, form["parent"])
    return form


def _parent(studio: Studio, job_id: str) -> ModelForm | None:
    try:
        return _form_of(clone_request(studio.jobs, job_id))
    except ZigguratError:  # deleted, or of an unsupported version: then nothing is marked
        return None


def _form_of(request: JobRequest) -> ModelForm:
    form = first_form()
    content = {**request.spec, "data": _data(request)}
    spec = parse_spec({"kind": "train", "version": 1, **content}, source="the job", is_stored=True).model_dump(
        mode="json"
    )
    form.values.update(_spec_values(spec), **_network_values(spec), **_job_values(request, spec))
    form.devices = tuple(spec["devices"])
    if request.model:
        form.values.update(previous_model=request.model, previous_checkpoint=request.checkpoint)
        if form["method"] == "standard":
            form.values["method"] = "previous"
    return form


def _data(request: JobRequest) -> dict[str, Any]:
    data = request.spec.get("data")
    content = dict(data) if isinstance(data, Mapping) else {"source": data or DIGITS}
    return {"source": DIGITS, **content}


def _spec_values(spec: Mapping[str, Any]) -> dict[str, str]:
    chosen = {"schedule": spec["schedule"]["policy"], "optimizer": spec["optimizer"]["name"]}
    values = dict(chosen)
    for shown in model_fields().values():
        if shown.path in chosen or (shown.variant and shown.variant != chosen[shown.owner]):
            continue
        if shown.owner and value_below(spec, shown.owner) is None:
            continue  # a part of what is left out
        values[shown.id] = text_of(shown, value_below(spec, shown.path))
    return values


def _network_values(spec: Mapping[str, Any]) -> dict[str, str]:
    network, backend = spec["network"], spec["backend"]
    if network["source"] == "zoo":
        return {"method": "standard", "standard_network": f"{backend}/{network['name']}"}
    return {
        "method": "custom",
        "custom_framework": backend,
        "network_file": network["path"],
        "network_text": network["text"] or "",
    }


def _job_values(request: JobRequest, spec: Mapping[str, Any]) -> dict[str, str]:
    source = spec["data"]["source"]
    return {
        "name": spec["name"],
        "dataset": request.dataset or (source if source == DIGITS else f"source:{source}"),
        "pretrained": spec["pretrained"] or "",
        "project": request.project,
        "tags": ", ".join(request.tags),
        "notes": request.notes,
        "priority": str(request.priority),
        "parent": request.parent,
    }


def _same_lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


_RATE = "learning_rate"


@dataclass(frozen=True, kw_only=True)
class ChosenData:
    """What is known of the data that is chosen in a form.

    Args:
        kind: of the dataset.
        size: (height, width) of what a network gets; None where it is not known.
        channels: of it.
    """

    kind: str
    size: tuple[int, int] | None
    channels: int | None

    def why_no_fit(self, network: StandardNetwork) -> str:
        """Return why a standard network cannot be trained on it; empty where it can, or where the set is no use."""
        return "" if why_not_trainable(self.kind) else why_no_fit(network, self.kind, self.size)


def chosen_data(form: ModelForm, summary: Mapping[str, Any], shape: Sequence[int | None]) -> ChosenData | None:
    """Return what is known of the chosen data; None where it is not there yet.

    Args:
        form: that it is chosen in.
        summary: of the dataset.
        shape: height, width and channels of what a network gets; None for what is not known.
    """
    what = summary["what"]
    if what is None and form["dataset"] != DIGITS:
        return None
    height, width, channels = shape
    size = None if height is None or width is None else (height, width)
    return ChosenData(kind="image-classification" if what is None else what["kind"], size=size, channels=channels)


def fill_in(form: ModelForm, data: ChosenData | None, networks: list[dict[str, Any]]) -> None:
    """Choose the network that fits the data, and its default rate, unless others were chosen.

    Args:
        form: its network and its rate are changed where they are as this function left them.
        data: that is chosen.
        networks: that can be chosen, with ``value`` and ``rate``.
    """
    if form["method"] != "standard" or form.parent is not None:
        return
    if data is not None and form["standard_network"] == form["picked_network"] and not why_not_trainable(data.kind):
        form.values["standard_network"] = form.values["picked_network"] = usual_network(data.size, data.channels)
    rate = usual_rate(form, networks)
    if rate is not None and form[_RATE].strip() == form["picked_rate"]:
        form.values[_RATE] = form.values["picked_rate"] = f"{rate:g}"


def usual_rate(form: ModelForm, networks: list[dict[str, Any]]) -> float | None:
    """Return the usual learning rate of the chosen standard network; None where none is known, or none is chosen."""
    if form["method"] != "standard":
        return None
    return next((each["rate"] for each in networks if each["value"] == form["standard_network"]), None)


def untouched(form: ModelForm) -> ModelForm:
    """Return an untouched form, marked so that ``fill_in`` may choose."""
    form.values["picked_network"] = form["standard_network"]
    form.values["picked_rate"] = model_fields()[_RATE].default
    return form


_PLACES: Final = {
    "network": "network_text",
    "network.text": "network_text",
    "network.name": "standard_network",
    "backend": "custom_framework",
    "data": "dataset",
    "data.source": "dataset",
    "devices": "device",
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
    content, sweep = _spec_content(form)
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
        received = f" Received: {each['received']}." if "received" in each else ""
        sentence = f"{each['rule']}.{received}"
        place = _place(form, each["field"])
        # At its field the advice would repeat the hint; a question is news there too.
        is_hint = bool(place) and not each["advice"].startswith("Did you mean")
        found.setdefault(place, sentence if is_hint else f"{sentence} {each['advice']}".strip())
    return found


def _spec_content(form: ModelForm) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    content: dict[str, Any] = {"kind": "train", "version": 1}
    sweep: dict[str, list[Any]] = {}
    chosen = {"schedule": form["schedule"], "optimizer": form["optimizer"]}
    for shown in model_fields().values():
        text = form[shown.id].strip()
        if shown.variant and shown.variant != chosen[shown.owner]:
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
    if method == "custom":
        content["backend"] = form["custom_framework"]
        path = form["network_file"] if form["network_file"].endswith(".py") else "network.py"
        content["network"] = {"source": "file", "path": path.rpartition("/")[2], "text": form["network_text"]}
        if not form["network_text"].strip():
            problems["network_text"] = "A network of your own needs its code."
        if form["pretrained"].strip():
            content["pretrained"] = form["pretrained"].strip()
        return (form["previous_model"], form["previous_checkpoint"]) if _keeps_weights(form) else ("", "")
    if method == "previous":
        return _add_previous(studio, form, content, problems)
    if method == "pretrained":
        return _add_published(studio, form, content, problems)
    content["backend"], _, content["network"] = form["standard_network"].rpartition("/")
    if not content["backend"]:
        problems["standard_network"] = "Choose a network."
        content["backend"] = "null"
    return "", ""


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


def _keeps_weights(form: ModelForm) -> bool:
    """Whether a changed network still starts from the weights of an earlier model: as in the job that is cloned."""
    return bool(form["previous_model"]) and form.parent is not None and form.parent["method"] == "custom"


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
    text = form["priority"].strip() or "0"
    try:
        value = int(text)
    except ValueError:
        value = 2**31
    if -(2**31) <= value < 2**31:
        return value
    problems["priority"] = f"A priority is a whole number; 0 is usual. Received: {text}."
    return 0


def _check(studio: Studio, form: ModelForm, asked: Asked) -> None:
    """Note what is wrong with the specs that the form asks for."""
    try:
        studio.paths.check_spec(asked.request.spec)
    except ZigguratError as error:
        own = form["method"] == "custom" and form["pretrained"].strip()
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


def _place(form: ModelForm, path: str) -> str:
    """Return the id of the form's field for a field of the spec."""
    known = model_fields()
    named = ".".join(part for part in path.split(".") if not part.isdigit())
    places = {**_PLACES, **_PLACES_OF_METHOD.get(form["method"], {})}
    if named in places:
        return places[named]
    owner = named.rpartition(".")[0]
    variant = form.values.get(owner, "")
    for found in (field_id(named), field_id(named, variant) if variant else "", owner):
        if found in known or found in form.values:
            return found
    return ""


def _tag(owner: str) -> str:
    return {"schedule": "policy", "optimizer": "name"}[owner]


def _assign(content: dict[str, Any], path: str, value: Any) -> None:
    *owners, last = path.split(".")
    place = content
    for name in owners:
        below = place.get(name)
        place[name] = place = below if isinstance(below, dict) else {}
    place[last] = value
