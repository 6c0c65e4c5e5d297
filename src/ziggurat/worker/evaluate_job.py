"""Execution of an evaluation job: every sample of a split once, its results, and stop requests in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.layout import JobFolder
from ziggurat.specs import EvaluateSpec
from ziggurat.worker.commands.evaluation import Evaluation
from ziggurat.worker.commands.trained import TrainedJob, open_trained_job
from ziggurat.worker.event_watch import EventWatch
from ziggurat.worker.results import SampleResults, write_results

__all__ = ["evaluate"]

_TOP: Final = 5
_NAMED_FILES: Final = 1000


def evaluate(spec: EvaluateSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    """Evaluate, from the beginning in each attempt; return what is to be said.

    None stands for an end that was requested.

    Args:
        spec: what was asked.
        folder: the job folder, which gets the results.
        watch: is told of progress, and asked whether to stop.

    Raises:
        ZigguratError: where model or data cannot be used.
    """
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
