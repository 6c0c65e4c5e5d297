"""View model of the run comparison page: differences, metrics summary, and parallel coordinates of both."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import ENDED_STATES, RUN_KINDS, Job, JobFilter
from ziggurat.entities.best_checkpoint import metric_title, primary_metric
from ziggurat.errors import NotThereError, ZigguratError
from ziggurat.web.columns import metric_mode
from ziggurat.web.pages.job.view import UNSHOWN_TAGS
from ziggurat.workspace.studio import Studio

__all__ = [
    "MOST_COMPARED",
    "Comparison",
    "CurveResult",
    "EvaluatedSplit",
    "Sweep",
    "chosen_runs",
    "compared",
    "found_runs",
    "short_names",
    "sweep_of",
]

MOST_COMPARED: Final = 20
"""Runs on one page: more curves cannot be told apart."""

_MOST_TRIALS: Final = 500
_MOST_PAIRS: Final = 6
_MOST_VERSIONS: Final = 30
_LONGEST_LABEL: Final = 40
_LABEL_HEAD: Final = 12
_LEAST_SHARED: Final = 8
_LONG_NAME: Final = 24
_LEAST_NAME: Final = 3

_FOUND: Final = 20
_SHOWN_RESULTS: Final = 6
_LONG_TEXT: Final = 100
_AXES: Final = 7
_OWN_COLORS: Final = 8
"""Runs that curves tell apart by color."""
_FIRST_AXES: Final = ("learning_rate", "batch_size", "epochs", "network.name", "optimizer.name", "weight_decay")
_TECHNICAL: Final = ("heartbeat_s", "hung_after_s", "machine_load_s", "sample_predictions", "on_stop")
"""Fields that do not change what is learned: they are no axes."""
_LONGEST_CATEGORY: Final = 24
_WIDE: Final = 50
"""Largest over smallest value from which on an axis is logarithmic."""

_FIRST_TAGS: Final = (
    *("validation_accuracy", "val/accuracy", "validation_cost", "val/loss", "val/cost"),
    *("accuracy", "train/accuracy", "cost", "train/loss", "train/cost", "validation_error", "error"),
)
_PENALTY: Final = "regularization"


@dataclass(frozen=True, kw_only=True)
class CurveResult:
    """What a curve came to in each run.

    Args:
        tag: name of the curve.
        is_small_good: whether small values are good; None where better and worse have no meaning.
        last: newest value of each run; None where it has no such curve.
        best: best value of each run; the newest one where better has no meaning.
        winner: place of the run with the best value; None where there is nothing to choose from.
    """

    tag: str
    is_small_good: bool | None
    last: tuple[float | None, ...]
    best: tuple[float | None, ...]
    winner: int | None


@dataclass(frozen=True, kw_only=True)
class EvaluatedSplit:
    """Evaluations of several runs on the same samples.

    Args:
        split: name of it.
        data: place of the data, as the runs name it; of a dataset the id of its first version.
        first: evaluation of the run that comes first.
        others: run, evaluation, and number of samples by outcome (``fixed``, ``broken``, ``still_wrong``; of a network
            that does not classify ``better``, ``worse``, ``equal``) of the
            others; no numbers where they cannot be compared, or after the first few.
        run: that comes first.
    """

    split: str
    data: str
    run: Job
    first: Job
    others: tuple[tuple[Job, Job, dict[str, int]], ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is shown of some runs.

    Args:
        runs: in the order in which they were asked for.
        labels: their names, shortened to what tells them apart.
        differences: (path of a field, its text in each run) where they differ.
        results: the important ones first.
        evaluations: that can be held against each other, sample by sample.
        chart: parallel coordinates of fields and results, as the charts island takes them; empty where there are none.
    """

    runs: list[Job]
    labels: list[str]
    differences: list[tuple[str, tuple[str, ...]]]
    results: list[CurveResult]
    evaluations: list[EvaluatedSplit]
    chart: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The runs of a sweep.

    Args:
        group: its id.
        name: what its runs have in common in their names.
        runs: the best first, then those without a value, in the order of their creation.
        best: its best run; None before the first value.
        tag: metric by which they are ordered; empty before the first value.
        open_ids: runs that are in the queue or running, but for the best one.
    """

    group: str
    name: str
    runs: list[Job]
    best: Job | None
    tag: str
    open_ids: list[str]


def sweep_of(studio: Studio, group: str) -> Sweep:
    """Return the runs of a sweep.

    Raises:
        NotThereError: where there is no training of that sweep.
    """
    page = studio.jobs.page(JobFilter(kinds=("train",), group=group, limit=_MOST_TRIALS, descending=False))
    found = list(page.jobs)
    if not found:
        raise NotThereError(
            "There is no sweep of that id.", received=f"`{group[:100]}`", advice="It may have been deleted."
        )
    judged = next((each for each in _results(found) if each.is_small_good is not None), None)
    names = [job.name for job in found]
    shared = _shared_start(names).rpartition(" ")[0].rstrip(" ,;:(") if len(names) > 1 else names[0]
    if judged is None:
        ordered, best, tag = found, None, ""
    else:
        sign = 1 if judged.is_small_good else -1
        values = {job.id: value for job, value in zip(found, judged.best, strict=True) if _finite(value) is not None}
        ordered = sorted(found, key=lambda job: sign * (values.get(job.id) or 0.0) if job.id in values else math.inf)
        best, tag = (ordered[0] if values else None), judged.tag
    kept = best.id if best is not None else ""
    open_ids = [job.id for job in found if job.state not in ENDED_STATES and job.id != kept]
    name = shared if len(shared) >= _LEAST_NAME else group
    return Sweep(group=group, name=name, runs=ordered, best=best, tag=tag, open_ids=open_ids)


def chosen_runs(studio: Studio, job_ids: Sequence[str]) -> tuple[list[Job], list[str]]:
    """Return the trainings among jobs, and the ids that are left out: of other kinds, deleted, or too many."""
    wanted = list(dict.fromkeys(job_ids))
    known = studio.jobs.some(wanted)
    runs = [known[each] for each in wanted if each in known and known[each].kind in RUN_KINDS][:MOST_COMPARED]
    taken = {job.id for job in runs}
    return runs, [each for each in wanted if each not in taken]


def found_runs(studio: Studio, text: str, without: Sequence[Job]) -> list[Job]:
    """Return the newest trainings with a text in name, id, notes, network or tags."""
    taken = {job.id for job in without}
    page = studio.jobs.page(JobFilter(kinds=RUN_KINDS, text=text.strip(), limit=_FOUND + len(taken)))
    return [job for job in page.jobs if job.id not in taken][:_FOUND]


def compared(studio: Studio, runs: Sequence[Job], coloured_by: str = "") -> Comparison:
    """Return what is shown of some runs; ``coloured_by`` is the curve that colors the parallel coordinates."""
    found = studio.jobs.compare([job.id for job in runs])
    raw = {path: values for path, values in found["differences"].items() if path != "name"}
    results, labels = _results(runs), _labels(runs)
    return Comparison(
        runs=list(runs),
        labels=labels,
        differences=[(path, tuple(_text(value) for value in values)) for path, values in raw.items()],
        results=results,
        evaluations=_evaluations(studio, runs),
        chart=_chart(labels, raw, results, coloured_by) if len(runs) > 1 else {},
    )


def short_names(names: Sequence[str], *, is_sweep: bool = False) -> list[str]:
    """Return names without what they share at the begin, cut in the middle where they are still long.

    The first word stays; names that are equal, or become so, are left to the caller.

    Args:
        names: of the runs.
        is_sweep: whether they are of one sweep, whose name stands above them: then the first word goes, too.
    """
    shared = _shared_start(names) if len(names) > 1 else ""
    shared = shared[: max(shared.rfind(mark) for mark in " ,;/") + 1]
    if not shared or (not is_sweep and (len(shared) < _LEAST_SHARED or max(map(len, names)) <= _LONG_NAME)):
        return [_middle_cut(name) for name in names]
    first = "" if is_sweep else f"{shared.split(' ')[0][:_LABEL_HEAD]} … "
    if not is_sweep and len(shared) - len(first) < _LEAST_SHARED:  # dots in place of a short word or two
        return [_middle_cut(name) for name in names]
    return [_middle_cut(f"{first}{name[len(shared) :]}" if name != shared else name) for name in names]


def _shared_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    length = next((place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), None)
    return first[: min(len(first), len(last)) if length is None else length]


def _middle_cut(name: str) -> str:
    if len(name) <= _LONGEST_LABEL:
        return name
    head, tail = name[: _LABEL_HEAD + 1], name[-(_LONGEST_LABEL - _LABEL_HEAD - 2) :]
    whole_head, whole_tail = head.rpartition(" ")[0], tail.partition(" ")[2]  # whole words, where there are any
    return f"{whole_head or head[:-1].rstrip()} … {whole_tail or tail[1:].lstrip()}"


def _labels(runs: Sequence[Job]) -> list[str]:
    is_sweep = len({job.group for job in runs}) == 1 and bool(runs[0].group)
    names = short_names([job.name or job.id for job in runs], is_sweep=is_sweep)
    return [
        name if names.count(name) == 1 else f"{name} ({job.id[-4:]})" for name, job in zip(names, runs, strict=True)
    ]


def _results(runs: Sequence[Job]) -> list[CurveResult]:
    tags = {tag for job in runs for tag in job.scalars if not tag.startswith(UNSHOWN_TAGS) and _PENALTY not in tag}
    tags -= {f"{start}error" for start in ("", "validation_") if f"{start}accuracy" in tags}  # the same, upside down
    judged = primary_metric(tags)
    first = [tag for tag in dict.fromkeys((*((judged[0],) if judged else ()), *_FIRST_TAGS)) if tag in tags]
    rest = sorted(tags - set(first), key=lambda tag: (not tag.startswith("validation"), tag))
    # A summary of the network may say the same as a metric of its task, under another name.
    titled = {metric_title(tag): tag for tag in reversed((*first, *rest))}
    shown = [tag for tag in (*first, *rest) if titled[metric_title(tag)] == tag]
    return [_result(tag, runs) for tag in shown[:_SHOWN_RESULTS]]


def _result(tag: str, runs: Sequence[Job]) -> CurveResult:
    mode = metric_mode(tag)
    is_small_good = None if mode is None else mode == "min"
    scalars = [job.scalars.get(tag) for job in runs]
    last = tuple(None if each is None else each.last for each in scalars)
    if is_small_good is None:
        return CurveResult(tag=tag, is_small_good=None, last=last, best=last, winner=None)
    best = [None if each is None else (each.minimum if is_small_good else each.maximum) for each in scalars]
    numbers = [(value, place) for place, value in enumerate(best) if value is not None and math.isfinite(value)]
    chosen = (min if is_small_good else max)(numbers, key=lambda pair: pair[0]) if len(numbers) > 1 else None
    is_shared = chosen is not None and sum(value == chosen[0] for value, _ in numbers) > 1
    return CurveResult(
        tag=tag,
        is_small_good=is_small_good,
        last=last,
        best=tuple(best),
        winner=None if chosen is None or is_shared else chosen[1],
    )


def _chart(
    labels: Sequence[str], raw: dict[str, list[Any]], results: Sequence[CurveResult], wanted: str
) -> dict[str, Any]:
    """Return the parallel coordinates as the charts island takes them; the wanted curve comes last and colors."""
    paths = sorted((path for path in raw if path not in _TECHNICAL), key=lambda path: (path not in _FIRST_AXES, path))
    columns = {path: axis for path in paths if (axis := _column(raw[path])) is not None}
    if not columns or not results:
        return {}
    last = next((each for each in results if each.tag == wanted), results[0])
    results = [*(each for each in results[:3] if each is not last), last]
    bests = [(metric_title(each.tag), [_finite(value) for value in each.best]) for each in results]
    named = [*list(columns.items())[:_AXES], *bests]
    lines = [{"name": label, "values": [values[place] for _, values in named]} for place, label in enumerate(labels)]
    axes = [_axis(name, values) for name, values in named]
    # A few runs have the colors of their curves; many have those of the last axis, with a scale.
    return {"kind": "parallel", "axes": axes, "lines": lines, "own_colors": len(lines) <= _OWN_COLORS}


def _column(values: Sequence[Any]) -> list[Any] | None:
    """Return what an axis has of a field; None where its values are lists, or long texts such as paths."""
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        return [_finite(value) for value in values]
    texts = [_text(value) for value in values]
    is_plain = all(value is None or isinstance(value, str | int | float) for value in values)
    return texts if is_plain and all(len(text) <= _LONGEST_CATEGORY for text in texts) else None


def _axis(name: str, values: Sequence[Any]) -> dict[str, Any]:
    if any(isinstance(value, str) for value in values):
        return {"name": name, "categories": list(dict.fromkeys(values))}
    numbers = [value for value in values if value is not None]
    is_wide = bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) >= _WIDE
    return {"name": name, "log": True} if is_wide else {"name": name}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _text(value: Any) -> str:
    """Return a value as people read it in a cell; a text of many lines by its length and its digest."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _LONG_TEXT and "\n" not in text:
        return text or "(empty)"
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=3).hexdigest()
    return f"{len(text.splitlines())} lines, {len(text)} characters ({digest})" if "\n" in text else f"{text[:80]}…"


def _evaluations(studio: Studio, runs: Sequence[Job]) -> list[EvaluatedSplit]:
    """Return the evaluations of the same samples, or of versions of one dataset; of each run, the newest of a split."""
    newest: dict[tuple[str, str], dict[str, Job]] = {}
    for run in runs:
        data = run.spec.get("data")
        place = _origin(studio, str(data.get("source", "")) if isinstance(data, dict) else str(data or ""))
        for each in studio.evaluations.of_model(run.id):
            if each.kind == "evaluate" and each.state == "done":
                newest.setdefault((str(each.spec.get("split", "")), place), {}).setdefault(run.id, each)
    by_id = {run.id: run for run in runs}
    found: list[EvaluatedSplit] = []
    left = _MOST_PAIRS
    for (split, place), evaluated in sorted(newest.items()):
        # In the order of the runs, so that Swap turns the comparison around.
        (first_run, first), *others = [(run.id, evaluated[run.id]) for run in runs if run.id in evaluated]
        if others:
            pairs = tuple(
                (by_id[run_id], each, _changes(studio, first, each) if number < left else {})
                for number, (run_id, each) in enumerate(others)
            )
            left = max(0, left - len(pairs))
            found.append(EvaluatedSplit(split=split, data=place, run=by_id[first_run], first=first, others=pairs))
    return found


def _origin(studio: Studio, place: str) -> str:
    """Return the id of the first version of the dataset in a folder; the folder where the studio has none there."""
    at = studio.jobs.some([Path(place).name]).get(Path(place).name)
    if at is None or at.kind != "dataset" or at.folder != place:
        return place
    for _ in range(_MOST_VERSIONS):
        parent = studio.jobs.some([at.parent]).get(at.parent) if at.parent else None
        if parent is None:
            break
        at = parent
    return at.id


def _changes(studio: Studio, first: Job, second: Job) -> dict[str, int]:
    """Return the number of samples by outcome; empty where the two are not of the same samples."""
    try:
        return studio.evaluations.differences(first.id, second.id, limit=0)["counts"]
    except ZigguratError:
        return {}
