"""What is known of the data that is chosen in the new-model form, and which of the fields it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ziggurat.entities.backend_info import StandardNetwork, backend_infos
from ziggurat.errors import ZigguratError
from ziggurat.web.pages.new_model.form import DIGITS, ModelForm, model_fields
from ziggurat.workspace.recipes import (
    AUTO_TASK,
    Task,
    joins_objects,
    learned_task,
    mixes_samples,
    oversamples,
    possible_tasks,
    weights_classes,
)
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.training_checks import KnownData, input_part, known_data
from ziggurat.zoo.network_task import declared_task

__all__ = [
    "data_of",
    "input_form",
    "learned_by",
    "task_choice",
    "untuned_fields",
    "unused_fields",
]

_FORMS: Final = {"image": "image", "row": "table", "text": "text"}
"""First part of a record → form of the input, as the style sheet knows it."""

_PREPROCESSING: Final = {
    "preprocessing-numbers": "table",
    "preprocessing-text_length": "text",
    "preprocessing-vocabulary_size": "text",
}
"""Fields of the preprocessing that are not for images → the form of input that they are for."""


def data_of(studio: Studio, form: ModelForm) -> KnownData | None:
    """Return what is known of the chosen data; None where it is not there, not made yet, or of no studio."""
    chosen = form["dataset"]
    try:
        if chosen == DIGITS:
            return known_data(DIGITS, {})
        if not chosen or chosen.startswith("source:"):
            return None
        job = studio.jobs.get(chosen)
        return known_data(job.folder, {}) if job.kind == "dataset" and job.state == "done" else None
    except ZigguratError:  # its field says so
        return None


def input_form(data: KnownData | None) -> str:
    """Return what a network gets: ``image``, ``table`` or ``text``; empty where that is not known."""
    return "" if data is None else _FORMS.get(input_part(data.kind), "")


def untuned_fields(form: ModelForm) -> frozenset[str]:
    """Return the fields of fine-tuning where the weights start at random; none elsewhere."""
    if form.starts_from_model:
        return frozenset()
    return frozenset(name for name, each in model_fields().items() if each.owner == "fine_tuning")


def unused_fields(data: KnownData | None) -> frozenset[str]:
    """Return the fields that mean nothing for data: a page hides them, and no spec gets them."""
    shape = input_form(data)
    hidden = set[str]()
    if shape:
        for name in model_fields():
            owner = name.partition("-")[0]
            wanted = _PREPROCESSING.get(name, "image") if owner == "preprocessing" else ""
            wanted = "image" if owner == "augmentation" or name == "loading-decode" else wanted
            if wanted not in ("", shape):
                hidden.add(name)
    if not mixes_samples(data):
        hidden |= {"augmentation-mixup", "augmentation-cutmix"}
    if not joins_objects(data):
        hidden.add("augmentation-mosaic")
    elif data is not None:
        hidden.add("augmentation-cutmix")
    if not oversamples(data):
        hidden.add("oversample_below")
    return frozenset(hidden if weights_classes(data) else {*hidden, "class_weights"})


def learned_by(form: ModelForm, data: KnownData | None) -> Task | None:
    """Return the task that a training with the form would learn; None where it is not known."""
    if data is None:
        return None
    named = form["task"].strip() or AUTO_TASK
    if form.has_code and named == AUTO_TASK:
        named = declared_task(form["network_text"]) or AUTO_TASK
    return learned_task(data, _network(form), named)


def task_choice(form: ModelForm, data: KnownData | None) -> Mapping[str, Any]:
    """Return the choice of a task: ``options`` (value and text), and ``for_code`` (whether only code has a choice)."""
    chosen, network = form["task"].strip() or AUTO_TASK, _network(form)
    fitting = [(each.name, each.title) for each in possible_tasks(data, None)]
    options = [(AUTO_TASK, "that of the network, else of the data"), *fitting]
    if chosen not in dict(options):
        is_known = any(each.name == chosen for each in possible_tasks(None, None))
        options.append((chosen, f"{chosen} (does not fit the data)" if is_known else chosen))
    several = data is not None and network is not None and len(possible_tasks(data, network)) > 1
    return {"options": options, "for_code": chosen == AUTO_TASK and not several}


def _network(form: ModelForm) -> StandardNetwork | None:
    if form["method"] != "standard":
        return None
    backend, _, name = form["standard_network"].rpartition("/")
    info = backend_infos().get(backend)
    return None if info is None else info.network(name)
