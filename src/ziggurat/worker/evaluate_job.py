"""Owns the execution of a job that evaluates a model: every sample of a split once, its results, a stop in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.events import EventFile
from ziggurat.layout import JobFolder
from ziggurat.specs import EvaluateSpec
from ziggurat.worker.event_watch import EventWatch, say_end, say_start
from ziggurat.worker.pulse import StepClock
from ziggurat.worker.results import SampleResults, write_results
from ziggurat.worker.stopping import StopRequest
from ziggurat.worker.tasks.evaluation import Evaluation
from ziggurat.worker.tasks.trained import TrainedJob, open_trained_job

__all__ = ["run_evaluation"]

_TOP: Final = 5
_NAMED_FILES: Final = 1000


def run_evaluation(
    spec: EvaluateSpec,
    folder: JobFolder,
    request: StopRequest,
    events: EventFile,
    clock: StepClock,
    *,
    attempt: int,
    progress: str,
) -> int:
    """Evaluate, from the beginning in each attempt; return the exit code.

    Args:
        spec: what was asked.
        folder: the job folder, which gets the results.
        request: to stop.
        events: are told of start, progress and end.
        clock: is told that it goes on.
        attempt: number of this attempt, from 1.
        progress: how people are shown it: ``bar``, ``lines``, ``none``, or ``auto``.

    Raises:
        ZigguratError: where model or data cannot be used.
    """
    say_start(events, attempt)
    watch = EventWatch(request, events, clock, progress)
    clock.phase = "evaluating"
    try:
        said = _evaluate(spec, folder, watch)
    finally:
        watch.close()
        clock.phase = "stopping"
    if said is None:
        return say_end(events, watch.done, "stopped", EXIT_STOPPED, request.reason or "asked to stop")
    return say_end(events, watch.done, "done", EXIT_DONE, said)


def _evaluate(spec: EvaluateSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    """Write the results and return what is to be said of them; None where somebody asked for the end."""
    watch.progress("load", 0, 0)
    job = open_trained_job(Path(spec.model), spec.checkpoint or None)
    evaluation = Evaluation(job, spec.split, batch_size=spec.batch_size, named_files=_NAMED_FILES)
    results = SampleResults(len(evaluation), len(job.class_names), _TOP)
    if watch.stop_requested():
        return None
    done, right = 0, 0
    for batch in evaluation.batches():
        done += len(batch.labels)
        probabilities = batch.values.get("probabilities")
        if probabilities is not None:
            keys = [evaluation.key(row) for row in batch.rows.tolist()]
            results.add(batch.rows.tolist(), keys, batch.labels, np.asarray(probabilities))
            right += int((np.argmax(probabilities, axis=1) == batch.labels).sum())
        watch.progress("predict", int(batch.rows[-1]) + 1, len(evaluation))
        if watch.stop_requested():
            return None
    watch.progress("predict", len(evaluation), len(evaluation))
    summary = _summary(spec, job, evaluation, is_classifier=results.count > 0)
    if results.count:
        results.write(folder.results, summary)
    else:
        write_results(folder.results, summary)
    accuracy = f", accuracy {right / results.count:.4f}" if results.count else ""
    bad = summary["skipped"]
    return f"{done} samples of {spec.split}{accuracy}" + (f"; {bad} could not be read" if bad else "")


def _summary(spec: EvaluateSpec, job: TrainedJob, evaluation: Evaluation, *, is_classifier: bool) -> dict[str, Any]:
    figures = evaluation.figures()
    return {
        "kind": spec.kind,
        "model": figures["folder"],
        "checkpoint": figures["checkpoint"],
        "step": figures["step"],
        "epoch": figures["epoch"],
        "split": spec.split,
        "data": job.spec.data.source,
        "count": figures["samples"],
        "skipped": figures["skipped"],
        "failures": [{"key": each["file"], "reason": each["reason"]} for each in figures["unreadable"]],
        "scalars": figures["scalars"],
        "classifier": is_classifier,
        "classes": list(job.class_names),
        "openings": figures["test_openings"],
    }
