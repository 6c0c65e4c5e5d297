"""View model of a job page: everything known about the job at one moment, and the actions that it permits."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import RUN_KINDS, Attempt, Checkpoint, Job, ScalarSummary
from ziggurat.entities.arithmetic import NOT_RECORDED
from ziggurat.entities.best_checkpoint import BestCheckpoint, metric_title, primary_metric
from ziggurat.entities.next_step import NextStep
from ziggurat.errors import JobError, NonFiniteError, UnknownNameError, broken_rule
from ziggurat.formatting import as_heading
from ziggurat.layout import JobFolder
from ziggurat.specs.describe import describe_fields
from ziggurat.specs.files import SPEC_KINDS
from ziggurat.web.columns import Best, best_values
from ziggurat.web.pages.job.program import program_text
from ziggurat.workspace.checkpoints import best_of_model, checkpoint_marks, checkpoints_of_model
from ziggurat.workspace.recipes import NextRate, rate_after_divergence
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.job_timeline import EarlyStoppingState, TimelineEvent
from ziggurat.workspace.studio.networks import network_text

__all__ = [
    "UNSHOWN_TAGS",
    "Failure",
    "JobAction",
    "actions_of",
    "drawn_marks",
    "failure_in_code",
    "failure_of",
    "job_about",
    "job_now",
    "metric_name",
    "wait_advice",
]


_LINES_AROUND: Final = 4
_IN_LOG: Final = "; the whole traceback is in log.txt of the job"
"""Part of an advice that holds in a shell; the page shows the traceback."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job failed.

    Args:
        cause: one sentence.
        received: what came instead of what the cause asks for; empty for nothing.
        advice: what to do; empty for nothing.
        file: of the user's code; empty where it is not known.
        line: of that file, from 1; None where it is not known.
        lines: number and text of the lines around it.
        trace: the whole stack trace; empty for none.
        is_divergence: whether it failed because its loss was not finite, which the page says elsewhere.
    """

    cause: str
    advice: str = ""
    file: str = ""
    line: int | None = None
    lines: tuple[tuple[int, str], ...] = ()
    trace: str = ""
    is_divergence: bool = False


def failure_of(job: Job) -> Failure | None:
    """Return why a job failed; None where it did not."""
    if job.state != "failed":
        return None
    error = job.error
    if error is None:  # no more is known, such as of a killed worker
        return Failure(cause=job.reason or "The job failed for an unknown reason.")
    details = error.get("details")
    known: Mapping[str, Any] = details if isinstance(details, Mapping) else {}
    file, line = _text(known.get("file")), known.get("line")
    number = line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None
    return Failure(
        cause=_text(known.get("what")) or _sentence(error, number) or job.reason,
        advice=_text(error.get("advice")).replace(_IN_LOG, ""),
        file=file,
        line=number,
        lines=_around(_source(job, file), number),
        trace=_text(error.get("traceback")) or _text(known.get("traceback")),
        is_divergence=job.divergence is not None and error.get("error") == NonFiniteError.code,
    )


def failure_in_code(job: Job) -> dict[str, Any] | None:
    """Return why a job failed at a line of its own code, for the editor of a clone; None if it did not.

    Returns:
        ``rule``, ``advice``, ``line`` (from 1), ``lines`` (number and text of those around it), ``trace``.
    """
    failure = failure_of(job)
    if failure is None or failure.line is None or not failure.lines:
        return None
    found = {"rule": failure.cause, "advice": failure.advice}
    return {**found, "line": failure.line, "lines": failure.lines, "trace": ""}


def _sentence(error: Mapping[str, Any], line: int | None) -> str:
    rule = _text(error.get("rule"))
    if not rule:
        return _text(error.get("message"))
    # Errors of older jobs name their line as what came, and the page shows it anyway.
    return rule if line else broken_rule(rule, _text(error.get("received")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _source(job: Job, file: str) -> str:
    """Return the text of the job's network, or of a file of its program, where the error is in it; else nothing."""
    if job.kind == "program":
        return program_text(job, file) or ""
    network = job.spec.get("network")
    if not file or not isinstance(network, Mapping):
        return ""
    if network.get("source") == "file":
        return _text(network.get("text")) if file == network.get("path") else ""
    name = _text(network.get("name"))
    if not file.endswith(f"{name}.py"):
        return ""
    try:
        kept = JobFolder(Path(job.folder)).network
        return kept.read_text(encoding="utf-8") if kept.is_file() else network_text(name, job.framework)
    except (UnknownNameError, OSError, UnicodeDecodeError):
        return ""


def _around(text: str, line: int | None) -> tuple[tuple[int, str], ...]:
    lines = text.splitlines()
    if line is None or line > len(lines):
        return ()
    first = max(1, line - _LINES_AROUND)
    return tuple(enumerate(lines[first - 1 : line + _LINES_AROUND], start=first))


_SHOWN_SCALARS: Final = 4


def metric_name(tag: str) -> str:
    """Return the name of a metric as a heading: ``Validation loss`` for ``validation_cost``."""
    return as_heading(metric_title(tag))


UNSHOWN_TAGS: Final = ("StepTime/", "Throughput", "learning_rate", "backbone_rate", "GPU", "Memory")
"""Beginnings of the curves that are no results."""
_FIRST: Final = ("validation_accuracy", "validation_error", "validation_cost", "validation_loss", "accuracy", "cost")
"""Curves whose values are shown before others."""


@dataclass(frozen=True, kw_only=True)
class CheckpointRow:
    """One checkpoint.

    Args:
        checkpoint: it.
        names: that point at it, such as ``min-validation_error``.
        values: of the table's tags; None where it has none.
    """

    checkpoint: Checkpoint
    names: tuple[str, ...]
    values: tuple[float | None, ...]

    def value(self, tag: str, tags: Sequence[str]) -> float | None:
        """Return the value of one of the table's tags; None where there is none."""
        return dict(zip(tags, self.values, strict=True)).get(tag)


@dataclass(frozen=True, kw_only=True)
class CheckpointTable:
    """The checkpoints of a job.

    Args:
        tags: names of the curves whose values are shown.
        rows: the newest first.
        best: the checkpoint that is used if none is named; None where there is none.
    """

    tags: tuple[str, ...] = ()
    rows: tuple[CheckpointRow, ...] = field(default=())
    best: BestCheckpoint | None = None

    @property
    def drawn(self) -> dict[str, Any] | None:
        """The best one as the charts take it; None where no metric tells which one it is."""
        best = self.best
        if best is None or best.value is None:
            return None
        return {"tag": best.tag, "value": best.value, "step": best.checkpoint.step, "epoch": best.checkpoint.epoch}

    def short(self, most: int) -> list[CheckpointRow]:
        """Return the newest rows, so many at most; the best one is among them."""
        best = "" if self.best is None else self.best.checkpoint.name
        shown = {row.checkpoint.name for row in self.rows[:most]}
        others = [row for row in self.rows if row.checkpoint.name == best and best not in shown]
        return [*self.rows[: most - len(others)], *others]


def checkpoint_table(job: Job, checkpoints: Sequence[Checkpoint]) -> CheckpointTable:
    """Return what is shown of a job's checkpoints.

    Args:
        job: whose.
        checkpoints: the oldest step first.
    """
    names, best = checkpoint_marks(job), best_of_model(job)
    # A checkpoint between two validations does not have the values of the earlier one.
    measured = {each.name: each.values for each in checkpoints_of_model(job) if each.epoch is not None}
    tags = _scalar_tags(checkpoints)
    return CheckpointTable(
        tags=tags,
        rows=tuple(
            CheckpointRow(
                checkpoint=each,
                names=names.get(each.name, ()),
                values=tuple(measured.get(each.name, each.scalars).get(tag) for tag in tags),
            )
            for each in reversed(checkpoints)
        ),
        best=best,
    )


def _scalar_tags(checkpoints: Sequence[Checkpoint]) -> tuple[str, ...]:
    tags = {tag for each in checkpoints for tag in each.scalars if not tag.startswith(UNSHOWN_TAGS)}
    judged = primary_metric(tags)
    first = () if judged is None else (judged[0],)
    known = [tag for tag in dict.fromkeys((*first, *_FIRST)) if tag in tags]
    further = sorted(tags - set(known), key=lambda tag: (not tag.startswith("validation"), tag))
    return tuple([*known, *further][:_SHOWN_SCALARS])


_SHOWN_ELSEWHERE: Final = ("kind", "version", "name", "network.text", "network.source")
_UNSET: Final = object()
_EMPTY: Final = (None, "", {}, [])


@dataclass(frozen=True)
class SpecDifference:
    """A field of a spec that is not at its default.

    Args:
        path: names from the top, joined by dots.
        value: that was asked for.
        default: what holds if it is not given; empty if it has none.
    """

    path: str
    value: str
    default: str


def spec_differences(job: Job) -> list[SpecDifference]:
    """Return the fields with other values than their defaults, in the order of the spec."""
    model = SPEC_KINDS.get(job.kind)
    if model is None:
        return []
    fields = {each.path: each for each in describe_fields(model) if each.is_top and not each.required}
    usual = dict(_leaves({path: each.default for path, each in fields.items()}))
    return [
        SpecDifference(path, _shown(value), _shown(usual[path]) if path in usual else "")
        for path, value in _leaves(job.spec)
        if path not in _SHOWN_ELSEWHERE and usual.get(path, _UNSET) != value and (path in usual or value not in _EMPTY)
    ]


def spec_text(job: Job) -> str:
    """Return the whole spec as JSON for people."""
    return json.dumps(job.spec, indent=2, ensure_ascii=False)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not value:
        yield path, value
        return
    for name, inner in value.items():
        yield from _leaves(inner, f"{path}.{name}" if path else str(name))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_MESSAGES: Final = 50
_DATA_BOUND_SHARE: Final = 0.3
_DATA_LATE_SHARE: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class JobNow:
    """What changes while a job runs.

    Args:
        job: it.
        actions: buttons that apply.
        expected_start: seconds since 1970; None while unknown, or where it does not wait.
        expected_end: seconds since 1970; None while unknown.
        elapsed_s: of the newest attempt; None before the first.
        failure: why it failed; None where it did not.
        scalars: what each curve came to, the important ones first.
        checkpoints: that are on the disk.
        best: its best value; None where it has none.
        sound_checkpoint: of a training that diverged, the newest one from before; None where none is left.
        next_rate: of a training that diverged, the learning rate to try next; None for others.
        early_stopping: how it stands; None where it is off.
        messages: warnings and errors of the worker, the newest first.
        attempts: the newest first.
        rate: learning rate that the worker used last; None before the first point.
        rate_asked: learning rate set by a user; None if there is none.
        why_no_rate: why the learning rate cannot be set now; empty where it can.
        users: jobs that need this one.
        next_step: what to do after it; None before it has ended, and where nothing is to be said.
    """

    job: Job
    actions: list[JobAction]
    expected_start: float | None
    expected_end: float | None
    elapsed_s: float | None
    failure: Failure | None
    scalars: list[ScalarSummary]
    checkpoints: CheckpointTable
    best: Best | None
    sound_checkpoint: Checkpoint | None
    next_rate: NextRate | None
    early_stopping: EarlyStoppingState | None
    messages: list[Any]
    attempts: list[Attempt]
    rate: ScalarSummary | None
    rate_asked: float | None
    why_no_rate: str
    users: list[Job]
    next_step: NextStep | None

    @property
    def has_curves(self) -> bool:
        """Whether there is something to draw, or will be."""
        return self.job.kind in RUN_KINDS and (
            bool(self.scalars) or self.job.state in ("queued", "running", "stopping")
        )

    @property
    def images_per_s(self) -> float | None:
        """Samples of a training that are seen in a second; None while unknown."""
        batch = self.job.spec.get("batch_size")
        return None if self.job.steps_per_s is None or not isinstance(batch, int) else self.job.steps_per_s * batch

    @property
    def is_rate_taken_over(self) -> bool:
        """Whether the worker uses the learning rate that a person asked for."""
        return self.rate is not None and self.rate_asked is not None and _is_same(self.rate.last, self.rate_asked)

    @property
    def rate_shown(self) -> float | None:
        """The learning rate that holds: what a person asked for, or else what the worker used last."""
        return self.rate_asked if self.rate_asked is not None or self.rate is None else self.rate.last

    @property
    def reason(self) -> str:
        """Why it waits or ended, as a sentence."""
        said = self.job.reason or ("It waits for its turn" if self.job.state == "queued" else "")
        return said[:1].upper() + said[1:] + ("" if not said or said.endswith((".", "!", "?")) else ".")

    @property
    def wait_advice(self) -> str:
        """What to do about waiting for data; empty if not measured."""
        return wait_advice(self.job.data_wait_share)


@dataclass(frozen=True, kw_only=True)
class JobAbout:
    """What stays the same while a job runs.

    Args:
        job: it.
        dataset: that it trains on; None where it is none of the studio's.
        parent: that it is a clone of; None where there is none, or it was deleted.
        model: whose weights it starts from; None for none.
        source: of its data, in words.
        differences: fields that are not at their defaults.
        spec_text: the whole spec.
        tensorboard: the command that shows its curves there.
        framework_problem: why its framework does not work on this machine; empty if it does, or was not checked.
        arguments: of a program, as a shell takes them; empty for none.
    """

    job: Job
    dataset: Job | None
    parent: Job | None
    model: Job | None
    source: str
    differences: list[SpecDifference]
    spec_text: str
    tensorboard: str
    framework_problem: str
    arguments: str = ""


def job_now(studio: Studio, job_id: str) -> JobNow:
    """Return what changes while a job runs.

    Raises:
        JobError: where there is none of that id.
    """
    job, now = studio.jobs.with_baselines(job_id), studio.clock()
    held = studio.jobs.hyperparameters(job_id) if job.kind in RUN_KINDS else {}
    checkpoints = studio.jobs.checkpoints(job_id)
    attempts = studio.jobs.attempts(job_id)
    return JobNow(
        job=job,
        actions=actions_of(job, attempts),
        expected_start=studio.jobs.expected_start(job_id) if job.state == "queued" else None,
        expected_end=now + job.remaining_s if job.is_active and job.remaining_s is not None else None,
        elapsed_s=None if job.started is None else (job.ended or now) - job.started,
        failure=failure_of(job),
        scalars=sorted(job.scalars.values(), key=_importance),
        checkpoints=checkpoint_table(job, checkpoints),
        best=best_values(studio, [job]).get(job_id) if job.kind in RUN_KINDS else None,
        sound_checkpoint=_sound(job, checkpoints),
        next_rate=rate_after_divergence(job, by_hand="learning_rate" in held),
        early_stopping=studio.jobs.early_stopping(job_id),
        messages=studio.jobs.messages(job_id, levels=("warning", "error"), limit=_MESSAGES)[::-1],
        attempts=attempts[::-1],
        rate=job.scalars.get("learning_rate"),
        rate_asked=held.get("learning_rate"),
        why_no_rate=why_no_learning_rate(job),
        users=studio.jobs.dependents(job_id),
        next_step=studio.next_steps.of(job),
    )


def drawn_marks(timeline: Sequence[TimelineEvent]) -> list[dict[str, Any]]:
    """Return the numbered events of a training as the charts take them, in the order of their numbers."""
    numbered = sorted((each for each in timeline if each.number), key=lambda each: each.number or 0)
    return [{"kind": each.kind, "step": each.step, "text": each.text} for each in numbered]


def job_about(studio: Studio, job: Job, frameworks: Sequence[Any]) -> JobAbout:
    """Return what stays the same while a job runs.

    Args:
        studio: where it is.
        job: it.
        frameworks: how each is on this machine, as JSON values; empty if not checked.
    """
    needed = [other for other in (_find(studio, each) for each in job.depends_on) if other is not None]
    data = job.spec.get("data")
    return JobAbout(
        job=job,
        dataset=next((each for each in needed if each.kind == "dataset"), None),
        parent=_find(studio, job.parent),
        model=next((each for each in needed if each.kind == "train"), None),
        source=str(data.get("source", "")) if isinstance(data, dict) else "",
        differences=spec_differences(job),
        spec_text=spec_text(job),
        tensorboard=f"tensorboard --logdir {JobFolder(Path(job.folder)).tensorboard_root}/",
        framework_problem=next((each["sentence"] for each in frameworks if each["backend"] == job.framework), ""),
        arguments=shlex.join(job.spec.get("arguments", ())) if job.kind == "program" else "",
    )


def wait_advice(share: float | None) -> str:
    """Return one sentence on the share of the step time that waits for data; empty if not measured."""
    if share is None:
        return ""
    if share < _DATA_LATE_SHARE:
        return "Data loading keeps up."
    if share < _DATA_BOUND_SHARE:
        return "Data loading is a little late: store the dataset at the network's size, or decoded."
    return (
        "Data loading limits the speed: store the dataset at the network's size and decoded, "
        "use less augmentation, or put it on a faster disk."
    )


def _sound(job: Job, checkpoints: Sequence[Checkpoint]) -> Checkpoint | None:
    if job.divergence is None:
        return None
    return next((each for each in reversed(checkpoints) if each.step < job.divergence.step), None)


def _find(studio: Studio, job_id: str) -> Job | None:
    try:
        return studio.jobs.get(job_id) if job_id else None
    except JobError:  # deleted since
        return None


def _importance(scalar: ScalarSummary) -> tuple[int, str]:
    base = scalar.tag.removeprefix("validation_")
    order = {"cost": 0, "loss": 0, "accuracy": 1, "error": 2, "learning_rate": 8, "backbone_rate": 8}
    return order.get(base, 9 if "/" in scalar.tag or " " in scalar.tag else 3), f"{base} {scalar.tag}"


def _is_same(first: float, second: float) -> bool:
    # A program may hold the rate as float32, which differs in the eighth digit.
    return math.isclose(first, second, rel_tol=1e-5)


ACTIONS: Final = ("stop", "pause", "stop_now", "resume", "retry")
"""What is asked for by one button, without anything to fill in."""

_STATES: Final = {
    "stop": ("queued", "running"),
    "pause": ("queued", "running"),
    "stop_now": ("stopping",),
    "resume": ("stopped",),
    "retry": ("failed",),
}
_TITLES: Final = {"stop": "Stop", "pause": "Pause", "stop_now": "Stop now", "resume": "Resume", "retry": "Retry"}
_HINTS: Final = {
    "stop": "Saves a checkpoint and ends; it can be resumed.",
    "pause": "Saves a checkpoint and frees its devices; Resume continues from it.",
    "stop_now": "Kills its processes; anything after the last checkpoint is lost. Its folder stays; it can be resumed.",
    "resume": "Continues from the newest checkpoint: same state and data.",
    "retry": "Continues from the newest checkpoint, or from the start if there is none.",
}


_GOES_ON: Final = ("pause", "resume", "retry")


@dataclass(frozen=True)
class JobAction:
    """A button.

    Args:
        name: a name in ``ACTIONS``.
        title: what stands on it.
        hint: what it does.
    """

    name: str
    title: str
    hint: str


def actions_of(job: Job, attempts: Sequence[Attempt] = ()) -> list[JobAction]:
    """Return what can be done with a job now; in the queue, a stop takes it out.

    Args:
        job: the job.
        attempts: of the job, the oldest first; the newest says whether a resume can be exact.
    """
    return [
        JobAction(name, _TITLES[name], "Takes it out of the queue." if job.state == "queued" else _hint(name, attempts))
        for name in ACTIONS
        if job.state in _STATES[name]
    ]


def _hint(name: str, attempts: Sequence[Attempt]) -> str:
    if name not in _GOES_ON or not attempts:
        return _HINTS[name]
    if attempts[-1].arithmetic is None:
        return f"{_HINTS[name]} It need not be exact: {NOT_RECORDED}."
    return f"{_HINTS[name]} It is exact with the same arithmetic; if that differs, the page says how."


def why_no_learning_rate(job: Job) -> str:
    """Return why the learning rate cannot be set now; empty where it can."""
    if job.state == "running" and "learning_rate" in job.scalars:
        return ""
    if job.kind == "program" and job.state == "running" and job.scalars:
        return "It can be changed where the program has a hyperparameter `learning_rate`; this one has none so far."
    if job.state in ("queued", "running"):
        return "It can be changed once the training has started."
    if job.state == "stopping":
        return "The training is about to end."
    return "It can be changed while the training runs; use a clone to start with another rate."
