"""Form for a new model: its fields, what stands in them, and how that comes from a job or a sent form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from starlette.datastructures import FormData

from ziggurat.entities.backend_info import DEFAULT_BACKEND, backend_info, backend_infos
from ziggurat.entities.pretrained_weights import weights_name
from ziggurat.errors import JobError, ZigguratError
from ziggurat.specs import (
    RENAMED,
    FieldDescription,
    TrainSpec,
    check_named_once,
    comma_question,
    describe_fields,
    parse_spec,
)
from ziggurat.web.forms import json_or_text
from ziggurat.web.pages.new_model.network_tabs import network_tabs
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import clone_request

__all__ = [
    "CHOICE_TEXTS",
    "DIGITS",
    "FormField",
    "ModelForm",
    "clone_form",
    "field_id",
    "first_form",
    "model_fields",
    "posted_form",
    "text_of",
    "value_of",
]


_OWN: Final = ("name", "backend", "network", "pretrained", "data", "data.source", "devices")
"""Fields that the form asks for in its own way."""

_NUMBERS: Final = ("integer", "number")

CHOICE_TEXTS: Final[dict[str, dict[str, str]]] = {
    "augmentation-flip": {"fliplr": "left-right", "flipud": "up-down", "fliplrud": "both ways"},
    "optimizer": {
        "sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSProp",
        "adagrad": "Adagrad", "adagrad_da": "Adagrad DA", "adadelta": "Adadelta", "ftrl": "FTRL",
    },
    "preprocessing-channels": {"1": "gray", "3": "color"},
}  # fmt: skip
"""Field → what its choices are called, where that is not the value itself."""


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
        known = CHOICE_TEXTS.get(self.id, {})
        return [(choice, known.get(choice, choice.replace("_", " "))) for choice in self.choices]

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
        values = tuple(json_or_text(part.strip()) for part in inner.split(",") if part.strip())
        return values if len(values) > 1 else json_or_text(text)
    if field.kind == "boolean":
        return text == "true"
    if field.kind == "list" and not text.startswith("["):
        return [json_or_text(part.strip()) for part in text.split(",") if part.strip()]
    if field.kind in ("list", "object") or (field.kind == "choice" and text.isdigit()):
        return json_or_text(text)
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
        hint=described.help,
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


DIGITS: Final = "digits"
"""Stands for the data that comes with the studio, among the ids of datasets."""

OWN_FIELDS: Final[dict[str, str]] = {
    "name": "",
    "dataset": DIGITS,
    "method": "standard",
    "standard_network": f"{DEFAULT_BACKEND}/lenet",
    "picked": "",
    "recipe": "",
    "fine_tune": "",
    "origin": "",
    "previous_model": "",
    "previous_checkpoint": "",
    "previous_use": "weights",
    "published_model": "",
    "custom_framework": DEFAULT_BACKEND,
    "network_text": "",
    "network_texts": "",
    "network_file": "network.py",
    "converted": "",
    "weights": "random",
    "pretrained_weights": "",
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


_OF_THE_PAGE: Final = (
    "network_texts",
    "picked",
    "recipe",
    "fine_tune",
    "origin",
    "preview_seed",
    "preview_split",
    "preview_row",
    "look_limit_s",
)
"""Fields that do not reach the job."""


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

    @property
    def picked(self) -> dict[str, str]:
        """Fields that the page filled in, with what it put there."""
        found = json_or_text(self.values["picked"])
        if not isinstance(found, dict):
            return {}
        return {name: str(text) for name, text in found.items() if name in self.values}  # a draft may be older

    def first_text(self, name: str) -> str:
        """Return the value of a field before the user changes it."""
        return self.picked.get(name, _first_texts()[name])

    def is_touched(self, name: str) -> bool:
        """Whether a field differs from the job that is cloned, or else from what the page filled in."""
        if self.parent is not None:
            return self.is_changed(name)
        return _same_lines(self.values[name]) != _same_lines(self.first_text(name))

    def show_code(self, backend: str, text: str = "") -> None:
        """Put the code for a framework into the editor; that of the framework before it is kept for the way back.

        Args:
            backend: of the code.
            text: of the code; without one the kept code, or else the template of the framework.
        """
        kept = self._network_texts()
        if self["custom_framework"] != backend:
            kept[self["custom_framework"]] = self["network_text"]
        shown = text or kept.pop(backend, "") or backend_info(backend).network_template
        self.values.update(custom_framework=backend, network_text=shown, network_texts=json.dumps(kept) if kept else "")

    def has_own_code(self) -> bool:
        """Whether the code is another than the template of its framework."""
        framework = backend_infos().get(self["custom_framework"])
        return framework is None or _same_lines(self["network_text"]) != _same_lines(framework.network_template)

    def _network_texts(self) -> dict[str, str]:
        """Return backend → code, for those whose code the editor does not show."""
        found = json_or_text(self["network_texts"])
        return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}

    @property
    def has_code(self) -> bool:
        """Whether the network is the code of the form: written, or converted from that of another tool."""
        return self["method"] == "custom" or self["method"] in {tab.name for tab in network_tabs()}

    @property
    def keeps_weights(self) -> bool:
        """Whether a changed network still starts from the weights of an earlier model: as in the job that is cloned."""
        return bool(self["previous_model"]) and self.parent is not None and self.parent["method"] == "custom"

    @property
    def starts_from_model(self) -> bool:
        """Whether the weights start at those of a trained model, and not at random."""
        if self["method"] == "previous":
            return self["previous_use"] == "weights"
        if self["method"] == "pretrained" or self["weights"] != "random":
            return True
        return self["method"] == "custom" and self.keeps_weights

    def pairs(self) -> list[tuple[str, str]]:
        """Return names and values as a browser sends them."""
        boxes = {each.id for each in model_fields().values() if each.kind == "boolean"}
        pairs = [(name, text) for name, text in self.values.items() if name not in boxes or text == "true"]
        return [*pairs, *(("device", device) for device in self.devices)]

    def has_changed_devices(self) -> bool:
        """Whether other devices are chosen than those of the job that is cloned."""
        return self.parent is not None and self.devices != self.parent.devices

    @property
    def changed_count(self) -> int:
        """How many fields differ from those of the job that is cloned."""
        names = [name for name in self.values if name not in _OF_THE_PAGE]
        return sum(self.is_changed(name) for name in names) + self.has_changed_devices()


def first_form() -> ModelForm:
    """Return the form as it is shown at first."""
    return ModelForm(dict(_first_texts()))


@cache
def _first_texts() -> dict[str, str]:
    defaults = {each.id: each.default for each in model_fields().values()}
    of_tabs = {field: "" for tab in network_tabs() for field in (tab.text_field, tab.input_field)}
    return {**OWN_FIELDS, **of_tabs, "network_text": backend_info(DEFAULT_BACKEND).network_template, **defaults}


def clone_form(studio: Studio, job_id: str) -> ModelForm:
    """Return the form that would make a job again.

    Raises:
        JobError: where there is no training of that id.
    """
    request = clone_request(studio.jobs, job_id)
    if request.spec.get("kind", "train") != "train":
        raise JobError("A new model can begin with a training only.", received=f"{job_id}, of another kind")
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
    if "weights" not in sent and form["pretrained"].strip():
        form.values.update(_weights_values(form["pretrained"].strip()))
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
        if not shown.owner and "." not in shown.path and shown.path not in spec:
            continue  # a spec leaves it out where it has its default
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
        **_weights_values(spec["pretrained"] or ""),
        "project": request.project,
        "tags": ", ".join(request.tags),
        "notes": request.notes,
        "priority": str(request.priority),
        "parent": request.parent,
    }


def _weights_values(pretrained: str) -> dict[str, str]:
    """Return the fields that say where the weights start, for ``pretrained`` of a spec."""
    if name := weights_name(pretrained):
        return {"weights": "pretrained", "pretrained_weights": name, "pretrained": ""}
    return {"weights": "file" if pretrained else "random", "pretrained": pretrained}


def _same_lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
