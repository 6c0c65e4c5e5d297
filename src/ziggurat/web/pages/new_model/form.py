"""State of the new-model form: initial, cloned from a job, or as submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.datastructures import FormData

from ziggurat.entities.backend_info import DEFAULT_BACKEND, backend_info
from ziggurat.errors import ZigguratError
from ziggurat.specs import RENAMED, check_named_once, parse_spec
from ziggurat.web.pages.new_model.fields import FormField, field_id, model_fields, text_of, value_below
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import clone_request

__all__ = ["DIGITS", "OWN_FIELDS", "ModelForm", "clone_form", "first_form", "posted_form"]

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
    except ZigguratError:  # deleted, or of a version that nobody reads any more: then nothing is marked
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
