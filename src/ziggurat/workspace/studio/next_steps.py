"""Facts about finished runs and evaluations, and what to do next after each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.entities import Curve, Job
from ziggurat.entities.backend_info import backend_info
from ziggurat.entities.baselines import JobBaseline, read_baselines
from ziggurat.entities.best_checkpoint import is_share, known_mode, metric_title, primary_metric
from ziggurat.entities.next_step import NextStep
from ziggurat.errors import ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.store import Store
from ziggurat.workspace.checkpoints import best_of_model, checkpoints_of_model
from ziggurat.workspace.next_step import DOUBTFUL, ClassRecall, RunFacts, next_step
from ziggurat.workspace.recipes import rate_after_divergence
from ziggurat.workspace.studio.evaluations import Evaluations
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.training import Training
from ziggurat.workspace.training_checks import KnownData, input_part, known_data

__all__ = ["NextSteps"]

_TRIVIAL: Final = ("majority", "mean", "mean_image")
_NOUNS: Final = {"row": "row", "text": "text", "image": "image"}
_PREFIXES: Final = ("validation_", "val/")
_POINTS: Final = 5000
_NOT_SHARES: Final = ("cost", "loss")


class NextSteps:
    """What to do after each result.

    Args:
        jobs: all jobs.
        store: that has their curves.
        training: that knows the recipes of datasets.
        evaluations: of models.
    """

    def __init__(self, jobs: Jobs, store: Store, training: Training, evaluations: Evaluations) -> None:
        self._jobs = jobs
        self._store = store
        self._training = training
        self._evaluations = evaluations

    def of(self, job: Job) -> NextStep | None:
        """Return what to do after a training or an evaluation; None if it has not ended, or nothing is to be said.

        Args:
            job: of any kind.
        """
        try:
            if job.kind == "train":
                return self._of_training(job)
            if job.kind == "evaluate" and job.state == "done":
                return self._of_evaluation(job)
        except (ZigguratError, OSError):  # something that it needs was deleted, or is damaged: its page says so
            return None
        return None

    def job(self, job_id: str) -> Job:
        """Return a job with its baselines and its next step.

        Raises:
            JobError: where there is none of that id.
        """
        job = self._jobs.with_baselines(job_id)
        return replace(job, next_step=self.of(job))

    def _of_training(self, job: Job) -> NextStep | None:
        if job.divergence is not None and job.outcome:
            rate = rate_after_divergence(job, by_hand="learning_rate" in self._jobs.hyperparameters(job.id))
            return next_step(
                RunFacts(
                    job=job.id,
                    is_done=False,
                    divergence=job.divergence.text,
                    next_rate="" if rate is None else rate.text,
                    next_rate_reason="" if rate is None else rate.reason,
                )
            )
        if job.state != "done":
            return None
        evaluation = self._newest_evaluation(job)
        facts = self._facts(job)
        return self._said(facts if evaluation is None else self._with_evaluation(facts, evaluation))

    def _of_evaluation(self, evaluation: Job) -> NextStep | None:
        model = self._jobs.some([evaluation.parent]).get(evaluation.parent) if evaluation.parent else None
        if model is None or model.state != "done":
            return None
        facts = self._with_evaluation(self._facts(model), evaluation)
        return self._said(self._measured_by(facts, evaluation))

    def _said(self, facts: RunFacts) -> NextStep | None:
        """Return the next step; what the recipe begins with is only looked up where it can matter."""
        if facts.dataset and not facts.is_pretrained and facts.has_learned:
            facts = replace(facts, pretrained_network=self._pretrained_network(facts.dataset))
        return next_step(facts)

    def _pretrained_network(self, dataset_id: str) -> str:
        """Return the title of the network that the recipe of a dataset fine-tunes; empty if it starts from scratch."""
        recipe = self._training.recipe(dataset_id)
        if recipe is None or not recipe.fields.get("pretrained"):
            return ""
        backend, _, name = recipe.network.partition("/")
        network = backend_info(backend).network(name)
        return name if network is None else network.title

    def _facts(self, job: Job) -> RunFacts:
        data = _data_of(job)
        best, kept = best_of_model(job), checkpoints_of_model(job)
        dataset = next((each for each in self._jobs.some(job.depends_on).values() if each.kind == "dataset"), None)
        part = "" if data is None else input_part(data.kind)
        facts = RunFacts(
            job=job.id,
            dataset="" if dataset is None else dataset.id,
            classes=None if data is None else data.classes,
            train_samples=None if data is None else data.sizes.get("train"),
            measured_on=None if data is None else data.sizes.get("val"),
            noun=_NOUNS.get(part, "sample"),
            is_pretrained=bool(job.spec.get("pretrained")),
            epochs=job.max_epoch,
            checkpoint="" if best is None else best.checkpoint.name,
            newest_checkpoint=kept[-1].name if kept else "",
            can_augment=part == "image",
            is_augmented=_is_augmented(job.spec.get("augmentation")),
        )
        return self._with_curves(self._with_result(facts, job), job)

    def _with_result(self, facts: RunFacts, job: Job) -> RunFacts:
        known, best = read_baselines(JobFolder(Path(job.folder))), best_of_model(job)
        if known is not None and known.value is not None:
            found = replace(
                facts,
                metric=known.metric,
                metric_title=known.title,
                mode=known.mode,
                is_share=is_share(known.metric),
                value=known.value,
            )
            return _with_baseline(found, known.best)
        if best is None or best.value is None:
            return facts
        return replace(
            facts,
            metric=best.tag,
            metric_title=metric_title(best.tag),
            mode=best.mode,
            is_share=is_share(best.tag),
            value=best.value,
        )

    def _with_curves(self, facts: RunFacts, job: Job) -> RunFacts:
        judged = primary_metric(job.scalars)
        pairs = [judged[0]] if judged is not None else []
        pairs += [f"{prefix}{loss}" for prefix in _PREFIXES for loss in _NOT_SHARES]
        for tag in pairs:
            base = tag.removeprefix(_PREFIXES[0]).removeprefix(_PREFIXES[1])
            if tag not in job.scalars or (base not in job.scalars and tag != pairs[0]):
                continue
            tags = [tag, *([base] if base in job.scalars else [])]
            curves = [_by_epoch(each) for each in self._store.curves.some(job.id, tags, max_points=_POINTS)]
            mode = judged[1] if judged is not None and tag == judged[0] else "min"
            found = replace(facts, curve=tag, curve_mode=mode, has_share_curve=is_share(tag), validation=curves[0])
            return replace(found, training=curves[1]) if len(curves) > 1 else found
        return facts

    def _newest_evaluation(self, job: Job) -> Job | None:
        done = [each for each in self._evaluations.of_model(job.id) if each.kind == "evaluate" and each.state == "done"]
        on_val = [each for each in done if each.spec.get("split") == "val"]
        return next(iter([*on_val, *(each for each in done if each.spec.get("split") == "test")]), None)

    def _with_evaluation(self, facts: RunFacts, evaluation: Job) -> RunFacts:
        found = replace(facts, evaluation=evaluation.id, split=str(evaluation.spec.get("split", "")))
        try:
            summary = self._evaluations.summary(evaluation.id)
        except ZigguratError:  # damaged or deleted at this moment: its own page says so
            return facts
        if not summary["classifier"] or not summary["confusion"]:
            return found
        predicted = np.asarray(summary["confusion"], np.int64).sum(axis=0)
        wrong = {"order": "row", "only": "wrong", "min_score": DOUBTFUL}
        return replace(
            found,
            evaluated=int(summary["labeled"]),
            doubtful=self._evaluations.samples(evaluation.id, limit=0, **wrong)["total"],
            unpredicted=[
                ClassRecall(name=each["name"], samples=each["support"])
                for each, count in zip(summary["per_class"], predicted, strict=True)
                if not count and each["support"]
            ],
        )

    def _measured_by(self, facts: RunFacts, evaluation: Job) -> RunFacts:
        """Return the facts with what an evaluation measured in place of what the training did."""
        results: Mapping[str, Any] = self._jobs.results([evaluation]).get(evaluation.id, {})
        metric = str(results.get("primary") or "accuracy")
        value, measured_on = results.get(metric), results.get("count")
        if not isinstance(value, int | float):
            return facts
        mode = known_mode(metric) or ("max" if metric == "accuracy" else facts.mode)
        found = replace(
            facts,
            metric=metric,
            metric_title=metric_title(metric).removeprefix("training "),
            mode=mode,
            is_share=is_share(metric),
            value=float(value),
            measured_on=measured_on if isinstance(measured_on, int) else None,
        )
        if facts.split == "val" and metric == facts.metric:
            return found
        return replace(found, **self._majority(evaluation, metric))

    def _majority(self, evaluation: Job, metric: str) -> dict[str, Any]:
        """Return what the most frequent class reaches on the samples of an evaluation; no baseline for other tasks."""
        rows = self._evaluations.summary(evaluation.id)["per_class"] if metric == "accuracy" else []
        total = sum(each["support"] for each in rows)
        if not total:
            return {"baseline": None, "baseline_title": ""}
        share = max(each["support"] for each in rows) / total
        return {"baseline": share, "baseline_title": "most frequent class", "is_trivial": True}


def _with_baseline(facts: RunFacts, baseline: JobBaseline | None) -> RunFacts:
    if baseline is None:
        return facts
    return replace(
        facts,
        baseline=baseline.scores[facts.metric],
        baseline_title=baseline.title,
        is_trivial=baseline.name in _TRIVIAL,
    )


def _data_of(job: Job) -> KnownData | None:
    data = job.spec.get("data")
    if not isinstance(data, Mapping):
        return None
    try:
        return known_data(str(data.get("source", "")), data.get("options") or {})
    except ZigguratError:  # the data was deleted, or moved
        return None


def _is_augmented(augmentation: Any) -> bool:
    values: Sequence[Any] = list(augmentation.values()) if isinstance(augmentation, Mapping) else []
    return any(value not in (0, "none", None, False) for value in values)


def _by_epoch(curve: Curve) -> tuple[float, ...]:
    """Return the last value of each epoch."""
    last = dict(zip(curve.epochs.tolist(), curve.values.tolist(), strict=True))
    return tuple(last[epoch] for epoch in sorted(last))
