"""Sections of the new-model form that are closed at first: their fields, and a line on what is in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ziggurat.errors import ZigguratError
from ziggurat.formatting import as_number
from ziggurat.web.pages.new_model.chosen_data import input_form, learned_by, untuned_fields, unused_fields
from ziggurat.web.pages.new_model.form import CHOICE_TEXTS, FormField, ModelForm, model_fields
from ziggurat.workspace.previews import rate_curve
from ziggurat.workspace.recipes import Task
from ziggurat.workspace.training_checks import KnownData

__all__ = ["Fold", "folds_of"]

_UPDATE: Final = ("weight_decay", "gradient_clip", "gradient_accumulation_steps", "ema_decay", "precision")
_NODES: Final = ("nodes", "gpus_per_node")
_LOADING: Final = ("loading-workers", "loading-worker_kind", "loading-prefetch", "loading-decode")
_DATA: Final = (
    "validation-every_epochs", "sample_predictions", "steps_per_epoch", "shuffle", "oversample_below", "class_weights",
    "freeze", "seed", "data-options",
)  # fmt: skip
_BASICS: Final = ("epochs", "batch_size", "learning_rate", "task")
"""Fields that are always open."""

_NOTES: Final = ("project", "tags", "priority", "notes")
_SHOWN: Final = 40


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A section.

    Args:
        id: of its element, after ``fold-``.
        title: what users read.
        summary: what is in force.
        changed: how many of its fields a user changed.
        errors: how many of its fields are wrong.
        fields: those that the spec describes, without the fields of variants.
    """

    id: str
    title: str
    summary: str
    changed: int
    errors: int
    fields: tuple[FormField, ...]


def folds_of(form: ModelForm, problems: Mapping[str, str], data: KnownData | None) -> tuple[Fold, ...]:
    """Return the sections with what is in force.

    Args:
        form: what stands in the fields.
        problems: id of a field → what is wrong there.
        data: that is chosen; None where nothing is known of it.
    """
    every = model_fields()
    schedule, optimizer = (tuple(name for name, each in every.items() if name == path or each.owner == path)
                           for path in ("schedule", "optimizer"))  # fmt: skip
    unused = unused_fields(data) | untuned_fields(form)
    sections = (
        ("schedule", "Schedule", schedule, _schedule(form)),
        ("optimizer", "Optimizer", (*optimizer, *_UPDATE), _optimizer(form)),
        ("fine_tuning", "Fine-tuning", _below("fine_tuning"), _fine_tuning(form)),
        ("augmentation", "Augmentation", _below("augmentation"), _augmentation(form)),
        ("preprocessing", "Preprocessing", _below("preprocessing"), _preprocessing(form, input_form(data))),
        ("early_stopping", "Early stopping", _below("early_stopping"), _early_stopping(form, learned_by(form, data))),
        ("checkpoints", "Checkpoints", _below("checkpoints"), _checkpoints(form, learned_by(form, data))),
        ("devices", "Devices, loading", ("device", *_NODES, "threads", *_LOADING), _devices(form, unused)),
        ("data", "Validation, samples", _DATA, _data(form, unused)),
        ("process", "Process, plug-ins", _others(), _process(form)),
        ("notes", "Project, tags, notes", _NOTES, _notes(form)),
    )
    return tuple(_fold(form, problems, unused, *section) for section in sections)


def _fold(
    form: ModelForm,
    problems: Mapping[str, str],
    unused: Set[str],
    name: str,
    title: str,
    ids: Sequence[str],
    summary: str,
) -> Fold:
    every = model_fields()
    in_force = [each for each in ids if each == "device" or each not in every or _is_in_force(form, every[each])]
    return Fold(
        id=name,
        title=title,
        summary=summary,
        changed=sum(_is_touched(form, each) for each in in_force if each not in unused),
        errors=sum(each in problems for each in ids),
        fields=tuple(every[each] for each in ids if each in every and not every[each].variant),
    )


def _is_in_force(form: ModelForm, shown: FormField) -> bool:
    return not shown.variant or form[shown.owner] == shown.variant


def _is_touched(form: ModelForm, name: str) -> bool:
    if name != "device":
        return form.is_touched(name)
    return form.has_changed_devices() if form.parent is not None else bool(form.devices)


def _below(owner: str) -> tuple[str, ...]:
    return tuple(name for name, each in model_fields().items() if each.path.startswith(f"{owner}."))


# ---- summaries


def _schedule(form: ModelForm) -> str:
    policy = form["schedule"]
    title = policy.replace("_", " ").capitalize()
    names = {name: each for name, each in model_fields().items() if each.owner == "schedule"}
    spec: dict[str, Any] = {"schedule": {"policy": policy}}
    for name, each in names.items():
        if _is_in_force(form, each) and form[name].strip() and form[name].strip() != each.default:
            spec["schedule"][each.path.rpartition(".")[2]] = _number(form[name])
    spec |= {name: _number(form[name]) for name in ("learning_rate", "epochs") if form[name].strip()}
    warm_up = form["schedule-warm_up_percent"].strip()
    try:
        rates = rate_curve(spec, points=100)["rates"]
    except (ZigguratError, TypeError, ValueError):  # a swept or wrong value; its field says so
        return title
    rate = (
        f"{as_number(rates[0], 3)}" if policy == "fixed" else f"{as_number(max(rates), 3)} to {as_number(rates[-1], 3)}"
    )
    return f"{title}, {rate}" + (f", warm-up {warm_up} %" if warm_up not in ("", "0") else "")


def _number(text: str) -> Any:
    first = text.strip()
    try:
        return float(first) if "." in first or "e" in first.lower() else int(first)
    except ValueError:
        return [_number(part) for part in first.split(",")] if "," in first else first


def _optimizer(form: ModelForm) -> str:
    name = form["optimizer"]
    parts = [CHOICE_TEXTS["optimizer"].get(name, name)]
    if name == "momentum":
        parts = ["SGD"]
        nesterov = "Nesterov momentum" if form["optimizer-momentum-nesterov"] else "momentum"
        parts.append(f"{nesterov} {form['optimizer-momentum-momentum']}")
    elif name in ("adam", "adamw"):
        parts.append(f"betas {form[f'optimizer-{name}-beta_1']} and {form[f'optimizer-{name}-beta_2']}")
    return ", ".join([*parts, *_differing(form, _UPDATE)])


def _fine_tuning(form: ModelForm) -> str:
    if not form.starts_from_model:
        return "Only with pretrained weights, or those of a model"
    frozen, backbone, decay = (
        form[f"fine_tuning-{name}"].strip() for name in ("frozen_epochs", "backbone_rate", "layer_decay")
    )
    parts = ["last layer fitted in the first epoch"] if form["fine_tuning-fit_head"] == "true" else []
    if parts and form["epochs"].strip() == "1":
        return _sentence(parts, "")
    parts += (
        [f"last layer alone for {frozen} {'epoch' if frozen == '1' else 'epochs'}"] if frozen not in ("", "0") else []
    )
    parts += [f"other layers at {backbone} of its rate"] if backbone not in ("", "1") else []
    parts += [f"{decay} of that from stage to stage"] if decay not in ("", "1") else []
    return _sentence(parts, "All layers alike")


def _augmentation(form: ModelForm) -> str:
    names = [each for each in _below("augmentation") if each != "augmentation-flip"]
    flip = form["augmentation-flip"]
    parts = [f"Flip {CHOICE_TEXTS['augmentation-flip'].get(flip, flip)}"] if flip != "none" else []
    return _sentence([*parts, *_differing(form, names)], "None")


def _preprocessing(form: ModelForm, shape: str) -> str:
    if shape == "table":
        numbers = form["preprocessing-numbers"]
        return {"none": "Numbers as they are", "standardize": "Numbers standardized", "whiten": "Numbers whitened"}.get(
            numbers, numbers
        )
    if shape == "text":
        length, size = form["preprocessing-text_length"].strip(), form["preprocessing-vocabulary_size"].strip()
        return f"{length or 'Usual number of'} tokens of a text, {size} different ones at most"
    size, mode = form["preprocessing-size"].strip(), form["preprocessing-resize_mode"].replace("_", " ")
    first = f"Resize to {size} px ({mode})" if size else "Size of the dataset"
    channels = CHOICE_TEXTS["preprocessing-channels"].get(form["preprocessing-channels"], "")
    crop, mean = form["preprocessing-crop"].strip(), form["preprocessing-mean"]
    parts = [first, channels, f"crop to {crop} px" if crop else "", f"{mean} mean subtracted" if mean != "none" else ""]
    return ", ".join(part for part in [*parts, "whitening" if form["preprocessing-whitening"] else ""] if part)


def _early_stopping(form: ModelForm, learned: Task | None) -> str:
    tag = form["early_stopping-tag"].strip()
    patience = form["early_stopping-patience"].strip()
    return f"After {patience} epochs without a better {_readable(tag, learned)}" if tag else "None"


def _checkpoints(form: ModelForm, learned: Task | None) -> str:
    every, last = form["checkpoints-every_epochs"].strip(), form["checkpoints-keep_last"].strip()
    when = {"1": "Every epoch", "0": "At the end"}.get(every, f"Every {every} epochs")
    kept = "keep all" if last == "null" else f"keep the last {last}"
    best = form["checkpoints-keep_best-tag"].strip()
    return f"{when}, {kept}" + (f" and the best by {_readable(best, learned)}" if best else "")


def _devices(form: ModelForm, unused: Set[str]) -> str:
    shown = {"cpu:0": "CPU only"}
    names = ", ".join(shown.get(each, each.replace("gpu:", "GPU ")) for each in form.devices)
    nodes, gpus = form["nodes"].strip(), form["gpus_per_node"].strip()
    if nodes not in ("", "1"):
        each = "the CPU" if gpus in ("", "0") else "1 GPU" if gpus == "1" else f"{gpus} GPUs"
        names = f"{nodes} nodes with {each} each"
    return ", ".join(
        [
            names or "A free GPU, else the CPU",
            *_differing(form, ["threads", *(each for each in _LOADING if each not in unused)]),
        ]
    )


def _data(form: ModelForm, unused: Set[str]) -> str:
    every = form["validation-every_epochs"].strip()
    first = {"1": "Validation every epoch", "0": "No validation"}.get(every, f"Validation every {every} epochs")
    others = [each for each in _DATA if each != "validation-every_epochs" and each not in unused]
    return ", ".join([first, *_differing(form, others)])


def _process(form: ModelForm) -> str:
    return _sentence(_differing(form, _others()), "Defaults")


@cache
def _others() -> tuple[str, ...]:
    """Return the fields that have no other place, such as those that a later release adds."""
    owners = (
        "schedule.",
        "optimizer.",
        "fine_tuning.",
        "augmentation.",
        "preprocessing.",
        "early_stopping.",
        "checkpoints.",
    )
    placed = {*_BASICS, *_UPDATE, *_LOADING, *_NODES, *_DATA, "threads", "schedule", "optimizer"}
    return tuple(
        name for name, each in model_fields().items() if name not in placed and not each.path.startswith(owners)
    )


def _notes(form: ModelForm) -> str:
    parts = [form["project"].strip(), form["tags"].strip(), " ".join(form["notes"].split())]
    found = "; ".join(part[:_SHOWN] + ("…" if len(part) > _SHOWN else "") for part in parts if part)
    priority = form["priority"].strip()
    return (
        "; ".join(part for part in (found, f"priority {priority}" if priority not in ("", "0") else "") if part)
        or "None"
    )


def _differing(form: ModelForm, names: Sequence[str]) -> list[str]:
    """Return name and value of the fields that do not hold their default."""
    found = []
    for name in names:
        shown = model_fields()[name]
        text = " ".join(form[name].split())
        if text == shown.default:
            continue
        title = shown.title if shown.title[:2].isupper() else shown.title.lower()
        if shown.kind == "boolean":
            found.append(title if text else f"no {title}")
        elif len(text) > _SHOWN or shown.kind == "object":
            found.append(f"{title} set")
        elif text:
            found.append(f"{title} {text.replace('_', ' ')}{f' {shown.unit}' if shown.unit else ''}")
        else:
            found.append(f"no {title}")
    return found


def _sentence(parts: Sequence[str], otherwise: str) -> str:
    text = ", ".join(parts)
    return text[:1].upper() + text[1:] if text else otherwise


def _readable(tag: str, learned: Task | None) -> str:
    if tag == "auto":
        return "main metric" if learned is None else f"validation {learned.primary_metric.title}"
    return tag.replace("_", " ").replace("val/", "validation ")
