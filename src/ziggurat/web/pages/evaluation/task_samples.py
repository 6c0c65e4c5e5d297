"""Samples of an evaluation of any task: what was given, images that are drawn on demand, and values as text."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import Request

from ziggurat.entities import Job
from ziggurat.entities.task_report import SHARE, MetricInfo, ScoreInfo
from ziggurat.errors import JobError, ZigguratError
from ziggurat.formatting import as_number, as_percent
from ziggurat.web.caches import BoundedCache, of_application
from ziggurat.web.pages.evaluation.sample_content import SampleContent
from ziggurat.web.pages.evaluation.view import SampleSource
from ziggurat.workspace.checkpoints import chosen_checkpoint
from ziggurat.workspace.studio import Studio

__all__ = [
    "TaskTile",
    "drawn_picture",
    "metric_text",
    "score_factor",
    "score_text",
    "task_tiles",
    "why_not_drawn",
]

_KEPT_SAMPLES: Final = 512
_KEPT_BYTES: Final = 64 << 20
_DRAWN_PX: Final = 512
_LABEL_CHARACTERS: Final = 80


@dataclass(frozen=True, kw_only=True)
class TaskTile:
    """A sample as its task shows it.

    Args:
        sample: as ``Evaluations.samples`` gives it.
        score: for people; empty where the task ranks no samples.
        picture: path of the image that was given; empty where there is none.
        page: path of the page of the sample; empty where it has none.
        drawn: name → path of the images that the task draws; empty where it draws none, or cannot.
        content: what was given, where it is no image; None where that is not known.
        second: score by another model, for people; empty where there is none.
        verdict: ``better`` or ``worse`` of the second score; empty where there is none.
        label_change: old and new label, where two versions of the data differ; empty for none.
        base: path of the image that drawn masks fit on; empty where the task draws none.
        view: what the template of the task shows of it, see ``Task.sample_view``.
    """

    sample: Mapping[str, Any]
    score: str
    picture: str
    page: str
    drawn: Mapping[str, str]
    content: SampleContent | None = None
    second: str = ""
    verdict: str = ""
    label_change: str = ""
    base: str = ""
    view: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of its file, without folders."""
        key = str(self.sample["key"])
        return key.rpartition("/")[2] or key


def metric_text(value: Any, info: MetricInfo) -> str:
    """Return a value of a metric or a table for people."""
    if isinstance(value, int | float) and not isinstance(value, bool) and info.unit == SHARE:
        return as_percent(value)
    shown = as_number(value)
    return f"{shown} {info.unit}" if info.unit and info.unit != SHARE and value is not None else shown


def score_text(score: float | None, info: ScoreInfo) -> str:
    """Return the score of a sample for people, with the sign that they know."""
    if score is None:
        return ""
    value = info.sign * score
    return as_percent(value) if info.unit == SHARE else as_number(value + 0.0) + (f" {info.unit}" if info.unit else "")


def score_factor(info: ScoreInfo) -> float:
    """Return the score that one of what people see stands for."""
    return info.sign * (0.01 if info.unit == SHARE else 1.0)


def task_tiles(
    studio: Studio,
    job: Job,
    found: Sequence[Mapping[str, Any]],
    source: SampleSource,
    *,
    is_drawn: bool,
    asked: Mapping[str, str] | None = None,
) -> list[TaskTile]:
    """Return samples as their task shows them.

    Args:
        studio: where they are.
        job: of kind ``evaluate``, done.
        found: as ``Evaluations.samples`` gives them.
        source: where their images are.
        is_drawn: whether the network can be asked for images.
        asked: fields of the task and their values.
    """
    results = studio.evaluations.results(job.id)
    checked = results.checked(asked or {})
    task = results.task
    names = task.sample_pictures if is_drawn else ()
    contents, is_stretched = source.contents(found), bool(names) and _is_stretched(studio, job)
    return [
        TaskTile(
            sample=each,
            score=score_text(each["score"], task.score),
            picture=source.picture(each),
            page=source.page(each),
            drawn={name: _drawn_path(job, each, name) for name in names},
            base=(source.picture(each) if is_stretched else "") or (_drawn_path(job, each, "image") if names else ""),
            content=contents.get(each["row"]),
            view=task.sample_view(results.summary, each["values"], checked),
            **_second(each, task.score),
        )
        for each in found
    ]


def _drawn_path(job: Job, sample: Mapping[str, Any], name: str) -> str:
    return f"/evaluations/{job.id}/drawn/{sample['row']}/{name}"


def _is_stretched(studio: Studio, job: Job) -> bool:
    """Return whether images were stretched to the size of the network, so that a mask fits the whole image again."""
    model = studio.jobs.some([job.parent]).get(job.parent) if job.parent else None
    fitted = (model.spec.get("preprocessing") if model is not None else None) or {}
    return model is not None and fitted.get("resize_mode", "squash") == "squash" and not fitted.get("crop")


def _second(sample: Mapping[str, Any], info: ScoreInfo) -> dict[str, str]:
    if "second" not in sample:
        return {}
    gap = sample["difference"] or 0.0
    verdict = "better" if gap > 0 else "worse" if gap < 0 else ""
    changed = {}
    if "label_before" in sample:
        labels = (str(as_number(sample[name]))[:_LABEL_CHARACTERS] for name in ("label_before", "label_after"))
        changed = {"label_change": " → ".join(labels)}
    return {"second": score_text(sample["second"]["score"], info), "verdict": verdict, **changed}


# ---- images that the network is asked for


class _DrawnSamples:
    """Images of samples; of each sample the network is asked once, one question at a time for each job."""

    def __init__(self) -> None:
        self._kept: BoundedCache[Mapping[str, bytes]] = BoundedCache(
            _KEPT_SAMPLES, most_bytes=_KEPT_BYTES, size_bytes=lambda drawn: sum(map(len, drawn.values()))
        )
        self._locks: BoundedCache[threading.Lock] = BoundedCache(64)

    def get(self, job_id: str, row: int, ask: Callable[[], Mapping[str, bytes]]) -> Mapping[str, bytes]:
        lock, _ = self._locks.get_or_put(job_id, threading.Lock, lambda _lock: False)
        found = self._kept.get((job_id, row))
        if found is not None:
            return found
        with lock:
            found = self._kept.get((job_id, row))
            if found is None:
                found = ask()
                self._kept.put((job_id, row), found)
            return found


def drawn_picture(request: Request, studio: Studio, job: Job, row: int, name: str) -> bytes | None:
    """Return an image of a sample as PNG; the network that was evaluated is asked for it now. None where there is none.

    Raises:
        ZigguratError: where the network cannot be asked.
    """

    def ask() -> Mapping[str, bytes]:
        found = studio.models.samples(
            str(job.parent),
            str(job.spec["split"]),
            [row],
            checkpoint=studio.evaluations.checkpoint_of(job.id),
            max_side_px=_DRAWN_PX,
        )
        for failure in found["failures"]:
            raise JobError("A sample is drawn that can be read.", received=str(failure["message"]))
        return {key: bytes(content) for each in found["samples"] for key, content in each["drawn"].items()}

    return of_application(request, "drawn_samples", _DrawnSamples).get(job.id, row, ask).get(name)


def why_not_drawn(studio: Studio, job: Job) -> str:
    """Return why images of samples cannot be drawn, as one sentence; empty where they can, or the task draws none."""
    if job.kind != "evaluate" or not studio.evaluations.results(job.id).task.sample_pictures:
        return ""
    model = studio.jobs.some([job.parent]).get(job.parent) if job.parent else None
    if model is None:
        return "The model was deleted, so its predictions can no longer be drawn; the values below stay."
    checkpoint = studio.evaluations.checkpoint_of(job.id)
    try:
        chosen_checkpoint(model, checkpoint)
    except ZigguratError:
        return f"The checkpoint {checkpoint} is gone, so its predictions can no longer be drawn; the values below stay."
    return ""
