"""View model of the new-dataset page beside its fields: detected format, split counts, summaries, cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from ziggurat.entities import JobFilter
from ziggurat.formatting import as_bytes, as_duration, as_percent, plural
from ziggurat.web.pages.dataset.view import KIND_NAMES
from ziggurat.web.pages.new_dataset.field_texts import CHOICES, SHARED_METHODS
from ziggurat.web.pages.new_dataset.form import HUB, DatasetForm, is_elsewhere
from ziggurat.web.pages.new_dataset.preview import Preview
from ziggurat.workspace.datasets import source_name
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.dataset_estimates import SourceFacts, estimate_dataset, rates_per_s
from ziggurat.workspace.training_checks import why_no_fit, why_not_trainable
from ziggurat.zoo import STANDARD_NETWORKS

__all__ = [
    "NO_IMAGES",
    "Detection",
    "Fold",
    "Ready",
    "SplitCount",
    "detection_of",
    "folds_of",
    "ready_of",
    "source_tab",
    "split_counts",
    "uploaded_name",
    "uses_shares",
]

NO_IMAGES: Final = ("table", "text-classification", "generic")
"""Kinds of datasets without images."""

_EARLIER: Final = 20
_NETWORKS_SHOWN: Final = 3
_SPLITS: Final = (("train", "Training"), ("val", "Validation"), ("test", "Test"))


@dataclass(frozen=True, kw_only=True)
class Detection:
    """The format of the source.

    Args:
        level: ``ok``, ``warning`` where a format must be chosen, or ``unknown`` while the source was not opened.
        title: of the format, or what is known instead.
        about: kind of data, and how sure that is.
        reason: why.
    """

    level: str
    title: str
    about: str = ""
    reason: str = ""


def detection_of(form: DatasetForm, seen: Preview | None) -> Detection | None:
    """Return what is shown of the format; None without a source, or where the source has a problem."""
    if not form.texts["source"] or form.wrong("source"):
        return None
    if form.wrong("format"):
        title = "Format not clear" if form.guesses else "Format unknown"
        return Detection(level="warning", title=title, reason=form.wrong("format"))
    found = _detected(form, seen)
    reason = found.reason.replace("`", "")
    return replace(found, reason=reason[:1].upper() + reason[1:])


def _detected(form: DatasetForm, seen: Preview | None) -> Detection:
    is_named = bool(form.texts.get("format"))
    if seen is not None:
        found = seen.found
        sure = "chosen" if is_named else f"{as_percent(found['confidence'], 0)} sure"
        reason = form.guess.reason if form.guess is not None else _counted(seen)
        return Detection(level="ok", title=found["title"], about=f"{_kind(seen.kind)}, {sure}", reason=reason)
    if form.chosen is not None:
        guess = form.guess
        sure = "chosen" if is_named else f"{as_percent(guess.confidence, 0)} sure" if guess is not None else ""
        about = ", ".join(filter(None, (_kind(form.kind), sure)))
        return Detection(level="ok", title=form.chosen["title"], about=about, reason=guess.reason if guess else "")
    if is_elsewhere(form.texts["source"]):
        return Detection(level="unknown", title="Detected after the download", reason="Or choose the format now.")
    return Detection(level="unknown", title="Detected when the preview opens the source")


def _counted(seen: Preview) -> str:
    classes = f" in {plural(len(seen.used_classes), 'class', 'classes')}" if seen.used_classes else ""
    return f"{plural(seen.counts['total'], 'sample')}{classes}"


def _kind(name: str) -> str:
    return KIND_NAMES.get(name, name)


def source_tab(studio: Studio, form: DatasetForm) -> str:
    """Return which way of naming a source is shown: ``folder``, ``upload`` or ``hub``."""
    source, known = form.texts["source"], form.texts.get("source_kind", "")
    if known in ("folder", "upload", "hub"):
        return known
    return "upload" if uploaded_name(studio, source) else "hub" if source.startswith(HUB) else "folder"


def uploaded_name(studio: Studio, source: str) -> str:
    """Return the name of an upload that is the source; empty where it is none."""
    place = f"{studio.uploads.folder.absolute()}/"
    if not source.startswith(place):
        return ""
    name = PurePosixPath(source).name
    return "Uploaded files" if name == "content" else name


@dataclass(frozen=True, kw_only=True)
class SplitCount:
    """A split on the bar.

    Args:
        name: ``train``, ``val`` or ``test``.
        title: of the split.
        count: samples in it; None while only its share is known.
        share: of all samples.
        start: share of the splits before it.
    """

    name: str
    title: str
    count: int | None
    share: float
    start: float


def split_counts(form: DatasetForm, seen: Preview | None) -> list[SplitCount]:
    """Return the splits as the preview counted them, else by the shares; empty where neither is known."""
    counts: dict[str, int | None] = dict.fromkeys((name for name, _ in _SPLITS))
    if seen is not None and sum(seen.counts[name] for name, _ in _SPLITS):
        counts = {name: seen.counts[name] for name, _ in _SPLITS}
        total = sum(count or 0 for count in counts.values())
        shares = {name: (count or 0) / total for name, count in counts.items()}
    elif form.shares and form.texts["splits.method"] in SHARED_METHODS:
        shares = dict(zip(counts, (share for _, share in form.shares), strict=True))
    else:
        return []
    found, start = [], 0.0
    for name, title in _SPLITS:
        found.append(SplitCount(name=name, title=title, count=counts[name], share=shares[name], start=start))
        start += shares[name]
    return found


def uses_shares(form: DatasetForm, seen: Preview | None) -> bool:
    """Return whether shares change the splits: a source with splits of its own keeps them."""
    method = form.texts["splits.method"]
    if method in SHARED_METHODS:
        return True
    names = ("splits.val_share", "splits.test_share")
    is_random = seen is not None and bool(seen.found["is_random"])
    is_wrong = any(form.wrong(name) for name in names)
    return method == "source" and (is_random or is_wrong or form.changed_fields(*names) > 0)


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A closed section of the form.

    Args:
        summary: its values in a few words.
        changed: how many of its fields differ from their defaults.
        wrong: how many have a problem.
    """

    summary: str
    changed: int = 0
    wrong: int = 0


_FOLDS: Final[dict[str, tuple[str, ...]]] = {
    "classes": ("splits.min_per_class",),
    "sampling": ("splits.max_per_class", "splits.stratify", "seed"),
    "quality": ("losses", "check", "near_duplicates"),
    "encoding": ("encoding", "quality", "resize_mode", "mean"),
    "about": ("project", "tags", "notes"),
    "job": ("priority", "workers", "heartbeat_s", "hung_after_s"),
}
"""Section → its fields."""


def folds_of(form: DatasetForm, seen: Preview | None) -> dict[str, Fold]:
    """Return section → its summary."""
    texts = {
        "classes": _classes_text(form, seen),
        "sampling": _sampling_text(form),
        "quality": _quality_text(form),
        "encoding": _encoding_text(form),
        "about": ", ".join(filter(None, (form.texts[name].strip() for name in ("project", "tags", "notes")))) or "None",
        "job": _job_text(form),
    }
    folds = {
        name: Fold(summary=texts[name], changed=form.changed_fields(*fields), wrong=form.wrong_fields(*fields))
        for name, fields in _FOLDS.items()
    }
    if form.chosen is not None and form.chosen["options"]:
        changed = form.changed_options
        summary = f"{form.chosen['title'].partition(' (')[0]}, {f'{changed} changed' if changed else 'defaults'}"
        folds["options"] = Fold(summary=summary, changed=changed, wrong=form.wrong_fields("options."))
    return folds


def _classes_text(form: DatasetForm, seen: Preview | None) -> str:
    least = form.texts["splits.min_per_class"].strip()
    kept = f"those below {least} samples are skipped" if least not in ("", "0") else "all kept"
    if seen is None or not seen.found["classes"]:
        return kept.capitalize()
    more = " or more" if len(seen.found["classes"]) >= 200 else ""
    empty = f", {len(seen.empty_classes)} without samples" if seen.empty_classes else ""
    return f"{plural(len(seen.used_classes), 'class', 'classes')}{more}{empty}, {kept}"


def _sampling_text(form: DatasetForm) -> str:
    most = form.texts["splits.max_per_class"].strip()
    parts = [f"At most {most} per class" if most else "All samples"]
    parts.append("stratified" if form.texts["splits.stratify"] == "true" else "not stratified")
    return ", ".join([*parts, f"seed {form.texts['seed'].strip() or '0'}"])


def _quality_text(form: DatasetForm) -> str:
    check = {"auto": "Verify images", "decode": "Decode every image", "header": "Read headers", "none": "Unverified"}
    near = "find near duplicates" if form.texts["near_duplicates"] == "true" else "no search for near duplicates"
    return f"{check.get(form.texts['check'], form.texts['check'])}, {near}"


def _encoding_text(form: DatasetForm) -> str:
    texts = form.texts
    is_changed = bool(texts["size"].strip() or texts["channels"])
    auto = "PNG" if is_changed else "Original bytes"
    names = {"auto": auto, "original": "Original bytes", "jpeg": f"JPEG, quality {texts['quality']}", "png": "PNG",
             "raw": "Not encoded", "reference": "References to the files"}  # fmt: skip
    parts = [names.get(texts["encoding"], texts["encoding"])]
    if texts["size"].strip():
        parts.append(dict(CHOICES["resize_mode"]).get(texts["resize_mode"], "").partition(" (")[0].lower())
    return ", ".join(filter(None, [*parts, "mean image" if texts["mean"] == "true" else "no mean image"]))


def _job_text(form: DatasetForm) -> str:
    workers = form.texts["workers"].strip()
    processes = f"{workers} processes" if workers else "one process per CPU"
    return f"Priority {form.texts['priority'].strip() or '0'}, {processes}"


@dataclass(frozen=True, kw_only=True)
class Ready:
    """What stands beside the button.

    Args:
        name: that the dataset gets where none is typed.
        cost: duration and size; empty while they are not known.
        use: what can be done with the dataset.
        is_trainable: whether a network can be trained on it.
        refused: why no dataset would be made of the source; empty otherwise.
    """

    name: str
    cost: str
    use: str
    is_trainable: bool
    refused: str = ""


def ready_of(studio: Studio, form: DatasetForm, seen: Preview | None) -> Ready:
    """Return what stands beside the button."""
    source = form.texts["source"]
    name = source_name(source) if source else ""
    name = "" if name == "content" else name
    kind = seen.kind if seen is not None else form.kind
    why_not = why_not_trainable(kind) if kind else ""
    use = why_not or (_networks_text(form, seen, kind) if kind else "")
    cost = _cost(studio, form, seen) if seen is not None and form.spec is not None else ""
    refused = seen.found["refused"] if seen is not None else ""
    return Ready(name=name, cost=cost, use=use, is_trainable=bool(kind) and not why_not, refused=refused)


def _networks_text(form: DatasetForm, seen: Preview | None, kind: str) -> str:
    sizes = [(height, width) for width, height in seen.sizes] if seen is not None else []
    size = tuple(form.spec.size) if form.spec is not None and form.spec.size else min(sizes, default=None)
    names = None if seen is None else tuple(str(each["name"]) for each in seen.found["classes"])
    found = [
        each.title.partition(" (")[0]
        for each in STANDARD_NETWORKS.values()
        if not why_no_fit(each, kind, size, names)  # type: ignore[arg-type]
    ]
    if not found:
        return "No standard network fits this data."
    rest = len(found) - _NETWORKS_SHOWN
    return f"Can train {', '.join(found[:_NETWORKS_SHOWN])}{f' and {rest} more networks' if rest > 0 else ''}."


def _cost(studio: Studio, form: DatasetForm, seen: Preview) -> str:
    assert form.spec is not None
    jobs = studio.jobs.page(JobFilter(kinds=("dataset",), states=("done",), limit=_EARLIER)).jobs
    rates = rates_per_s(jobs, studio.datasets.facts(jobs), seen.kind)
    sizes = seen.sizes
    facts = SourceFacts(
        samples=seen.counts["total"],
        has_images=seen.kind not in NO_IMAGES,
        size_bytes=seen.source_bytes,
        pixels=sum(width * height for width, height in sizes) / len(sizes) if sizes else 0.0,
        channels=3,
    )
    found = estimate_dataset(form.spec, facts, rates)
    size = f", {as_bytes(found.size_bytes)}" if found.size_bytes is not None else ""
    least = "" if seen.counts["is_complete"] else "at least "
    return f"About {least}{as_duration(found.duration_s)}{size}"
