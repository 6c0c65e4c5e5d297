"""Rules for what to do after a result: a pure function of facts about a run, checked in a fixed order.

The order is that of what helps most. Weights come before the rules about the course of a training: a network that
starts from random weights on few photos seems to be still improving, or to overfit, and neither more epochs nor more
augmentation bring it near what pretrained weights reach. Labels come after them: confident errors of a model that
overfits say little about the labels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.entities.best_checkpoint import Mode, is_better, metric_text
from ziggurat.entities.next_step import NextStep
from ziggurat.formatting import as_count, as_heading, plural

__all__ = ["DOUBTFUL", "RULES", "ClassRecall", "RunFacts", "next_step"]

DOUBTFUL: Final = 0.8
"""Score from which on a wrong prediction makes the label doubtful."""

_GOOD: Final = 0.5
"""Share of the way from the baseline to a perfect result from which on a model is worth publishing."""

_ENOUGH: Final = 0.75
"""The same share from which on pretrained weights promise little."""

_FEWEST_OF_CLASS: Final = 5
"""Samples of a class below which it says nothing that none was recognized."""

_GAP: Final = 0.1
"""Lead of training over validation, in shares, from which on a network overfits."""

_LOSS_RISE: Final = 1.1
_LOSS_RATIO: Final = 2.0
"""Of metrics that are no shares: how far above its best value the validation is, and how far above the training."""

_EPOCHS: Final = 5
"""Epochs of a trend."""

_DOUBTFUL_SHARE: Final = 0.02
_FEWEST_DOUBTFUL: Final = 5
"""Fewer confident errors than these are usual for a good model on correct labels."""

_TRUSTED: Final = 0.7
"""Result below which wrong predictions are more likely errors of the model than of the labels."""

_NAMED: Final = 3
_TWO_SIGMA: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class ClassRecall:
    """A class that a model never predicts.

    Args:
        name: of the class.
        samples: of it in the split.
    """

    name: str
    samples: int


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Facts about a finished training, and about an evaluation of it if there is one.

    Args:
        job: id of the training.
        is_done: whether it ended by itself.
        dataset: id of its dataset; empty for other data.
        evaluation: id of the evaluation; empty for none.
        split: of the evaluation: ``train``, ``val`` or ``test``.
        divergence: sentence about it; empty for none.
        next_rate: learning rate to try after a divergence, as people type it; empty for none.
        next_rate_reason: one sentence.
        metric: by which it is judged, such as ``accuracy``; empty for none.
        metric_title: of it, in lower case where it is a word.
        mode: whether small or large values of it are good.
        is_share: whether it is a share of 1.
        value: of the training; None if unknown.
        measured_on: samples that it was measured on; None if unknown.
        baseline: value of the best simple model; None for none.
        baseline_title: of that model.
        is_trivial: whether that model looks at no input, such as the most frequent class.
        classes: how many there are; None without classes.
        train_samples: samples of the training split; None if unknown.
        noun: what a sample is called, in the singular.
        is_pretrained: whether it started from trained weights.
        pretrained_network: title of the network with pretrained weights that the recipe of the dataset names; empty if
            the recipe starts from random ones.
        training: values of the training metric, one for each epoch.
        validation: values of the same metric on the validation split, one for each epoch.
        curve: name of that metric.
        curve_mode: whether small or large values of it are good.
        has_share_curve: whether it is a share of 1.
        epochs: of the training.
        checkpoint: name of the best checkpoint; empty for none.
        newest_checkpoint: name of the newest one; empty for none.
        is_augmented: whether its images were varied.
        can_augment: whether they could be.
        unpredicted: classes that were never predicted.
        evaluated: samples of the evaluation.
        doubtful: wrong predictions with a score of 80 % and more.
    """

    job: str
    is_done: bool = True
    dataset: str = ""
    evaluation: str = ""
    split: str = "val"
    divergence: str = ""
    next_rate: str = ""
    next_rate_reason: str = ""
    metric: str = ""
    metric_title: str = ""
    mode: Mode = "max"
    is_share: bool = True
    value: float | None = None
    measured_on: int | None = None
    baseline: float | None = None
    baseline_title: str = ""
    is_trivial: bool = True
    classes: int | None = None
    train_samples: int | None = None
    noun: str = "image"
    is_pretrained: bool = False
    pretrained_network: str = ""
    training: Sequence[float] = ()
    validation: Sequence[float] = ()
    curve: str = ""
    curve_mode: Mode = "max"
    has_share_curve: bool = True
    epochs: int = 0
    checkpoint: str = ""
    newest_checkpoint: str = ""
    is_augmented: bool = False
    can_augment: bool = False
    unpredicted: Sequence[ClassRecall] = ()
    evaluated: int = 0
    doubtful: int = 0

    @property
    def text(self) -> str:
        """The result for people, such as ``28.8 %``."""
        return metric_text(self.metric, self.value)

    @property
    def against(self) -> str:
        """The result of the simple model for people, such as ``10.3 % (most frequent class)``."""
        return f"{metric_text(self.metric, self.baseline)} ({self.baseline_title})"

    @property
    def has_learned(self) -> bool:
        """Whether the result is better than that of the simple model, by more than chance if that is known."""
        if self.value is None or self.baseline is None:
            return True
        if not is_better(self.mode, self.value, self.baseline):
            return False
        if not (self.is_trivial and self.is_share and self.measured_on):
            return True
        noise = math.sqrt(max(0.0, self.baseline * (1 - self.baseline)) / self.measured_on)
        return abs(self.value - self.baseline) > _TWO_SIGMA * noise

    @property
    def reached(self) -> float | None:
        """Share of the way from the simple model to a perfect result, in (-inf, 1]; None if unknown."""
        if self.value is None:
            return None
        if self.baseline is not None and not self.is_trivial:
            return 1.0 if self.has_learned else 0.0
        if self.mode == "min":  # a perfect error or loss is 0
            start = self.baseline if self.baseline is not None else 1.0 if self.is_share else None
            return None if start is None or start <= 0 else 1 - self.value / start
        if self.is_share:
            start = self.baseline or 0.0
            return 1.0 if start >= 1 else (self.value - start) / (1 - start)
        return None if self.baseline is None else 1.0 if self.has_learned else 0.0


def next_step(facts: RunFacts) -> NextStep | None:
    """Return what the first rule that holds says; None where none does."""
    return next((step for rule in RULES.values() if (step := rule(facts)) is not None), None)


def _diverged(facts: RunFacts) -> NextStep | None:
    if not facts.divergence:
        return None
    has_rate = bool(facts.next_rate)
    return NextStep(
        rule="diverged",
        tone="warning",
        text=facts.divergence,
        reason=facts.next_rate_reason,
        action="clone",
        title=f"Clone with learning rate {facts.next_rate}" if has_rate else "Clone with a lower learning rate",
        target=facts.job,
        fields={"learning_rate": facts.next_rate} if has_rate else {},
    )


def _baseline(facts: RunFacts) -> NextStep | None:
    if not facts.is_done or facts.has_learned:
        return None
    text = f"{facts.text} is no better than {facts.against}."
    if not facts.is_trivial:
        return NextStep(
            rule="baseline",
            tone="warning",
            text=text,
            reason="More epochs, another learning rate or another network may help.",
            action="clone",
            title="Clone with other settings",
            target=facts.job,
        )
    reason = "It has learned nothing: too few epochs, an unsuitable learning rate or wrong labels are usual causes."
    if not facts.dataset:
        return NextStep(
            rule="baseline",
            tone="warning",
            text=text,
            reason=reason,
            action="clone",
            title="Clone with another learning rate",
            target=facts.job,
        )
    return NextStep(
        rule="baseline",
        tone="warning",
        text=text,
        reason=reason,
        action="explore",
        title="Look at the labels",
        target=facts.dataset,
    )


def _from_scratch(facts: RunFacts) -> NextStep | None:
    if not facts.is_done or facts.is_pretrained or not (facts.pretrained_network and facts.dataset):
        return None
    if facts.reached is None or facts.reached >= _ENOUGH:
        return None
    classes = f" for {plural(facts.classes, 'class', 'classes')} of photos" if facts.classes else ""
    few = "" if facts.train_samples is None else f"{plural(facts.train_samples, facts.noun)} are too few to start from "
    return NextStep(
        rule="from_scratch",
        tone="warning",
        text=f"{facts.text} is low{classes}.",
        reason=f"{few}random weights. Pretrained ones know photos already." if few else "Pretrained weights help.",
        action="train",
        title=f"Fine-tune {facts.pretrained_network}",
        target=facts.dataset,
    )


def _unpredicted(facts: RunFacts) -> NextStep | None:
    missing = [each for each in facts.unpredicted if each.samples >= _FEWEST_OF_CLASS]
    if not facts.is_done or not missing or not facts.dataset:
        return None
    first = missing[0]
    names = ", ".join(each.name for each in missing[:_NAMED]) + (" …" if len(missing) > _NAMED else "")
    one = len(missing) == 1
    split = {"val": "validation", "test": "test", "train": "training"}.get(facts.split, facts.split)
    return NextStep(
        rule="unpredicted",
        tone="warning",
        text=f"{names} is never predicted." if one else f"{len(missing)} classes are never predicted: {names}.",
        reason=f"None of the {as_count(first.samples)} {split} {facts.noun}s of {first.name} was recognized.",
        action="explore",
        title=f"Look at its {as_count(first.samples)} {facts.noun}s" if one else f"Look at {first.name}",
        target=facts.dataset,
        fields={"split": facts.split, "class_name": first.name},
    )


def _overfitting(facts: RunFacts) -> NextStep | None:
    train, val = facts.training, facts.validation
    if not facts.is_done or not train or len(val) <= _EPOCHS:
        return None
    best = _best_place(val, facts.curve_mode)
    if len(val) - 1 - best < _EPOCHS or not is_better(facts.curve_mode, val[best], val[-1]):
        return None
    if facts.has_share_curve:
        if abs(train[-1] - val[-1]) < _GAP or not is_better(facts.curve_mode, train[-1], val[-1]):
            return None
    elif facts.curve_mode == "max" or val[-1] < _LOSS_RISE * val[best] or val[-1] < _LOSS_RATIO * train[-1]:
        return None
    augments = facts.can_augment and not facts.is_augmented
    ends = [metric_text(facts.curve, values[-1]) for values in (train, val)]
    return NextStep(
        rule="overfitting",
        tone="info",
        text=f"Overfitting: {ends[0]} in training, {ends[1]} in validation.",
        reason=f"The validation got worse after epoch {best + 1}"
        + (", whose checkpoint is kept." if facts.checkpoint else "."),
        action="clone",
        title="Clone with augmentation" if augments else "Clone with a smaller network",
        target=facts.job,
    )


def _improving(facts: RunFacts) -> NextStep | None:
    val = facts.validation
    if not facts.is_done or len(val) <= _EPOCHS or not facts.newest_checkpoint:
        return None
    recent = val[-_EPOCHS - 1 :]
    if not all(is_better(facts.curve_mode, late, early) for early, late in itertools.pairwise(recent)):
        return None
    if _best_place(val, facts.curve_mode) != len(val) - 1:
        return None
    return NextStep(
        rule="improving",
        tone="info",
        text="Still improving: the last epoch is the best.",
        reason=f"The validation got better in each of the last {_EPOCHS} epochs.",
        action="train_on",
        title=f"Train {plural(facts.epochs, 'more epoch')}" if facts.epochs else "Train on",
        target=facts.job,
        fields={"checkpoint": facts.newest_checkpoint},
    )


def _labels(facts: RunFacts) -> NextStep | None:
    if not facts.is_done or not facts.dataset or facts.doubtful < _FEWEST_DOUBTFUL:
        return None
    if facts.value is None or facts.value < _TRUSTED or facts.doubtful < _DOUBTFUL_SHARE * facts.evaluated:
        return None
    return NextStep(
        rule="labels",
        tone="info",
        text=f"{as_count(facts.doubtful)} labels look wrong.",
        reason=f"The model is at least {100 * DOUBTFUL:.0f} % sure of another class. "
        "Correct labels help more than a larger network.",
        action="explore",
        title=f"Review {as_count(facts.doubtful)} labels",
        target=facts.dataset,
        fields={"prediction": "doubtful", "order": "doubtful"},
    )


def _low(facts: RunFacts) -> NextStep | None:
    if not facts.is_done or facts.reached is None or facts.reached >= _GOOD:
        return None
    reached = metric_text(facts.metric, facts.baseline)
    alone = "" if facts.baseline is None else f"The {facts.baseline_title} alone reaches {reached}. "
    return NextStep(
        rule="low",
        tone="warning",
        text=f"{as_heading(facts.metric_title)} {facts.text} is low.",
        reason=alone
        + ("The errors show why." if facts.evaluation else f"An evaluation shows which {facts.noun}s are wrong."),
        action="errors" if facts.evaluation else "evaluate",
        title="Look at the errors" if facts.evaluation else "Evaluate it",
        target=facts.evaluation or facts.job,
    )


def _good(facts: RunFacts) -> NextStep | None:
    if not facts.is_done or facts.value is None or facts.reached is None or not facts.checkpoint:
        return None
    against = "" if facts.baseline is None else f" against {facts.against}"
    return NextStep(
        rule="good",
        tone="ok",
        text=f"{as_heading(facts.metric_title)} {facts.text}{against}.",
        reason="Nothing here asks for another training.",
        action="publish",
        title="Publish model",
        target=facts.job,
        fields={"checkpoint": facts.checkpoint},
    )


def _best_place(values: Sequence[float], mode: Mode) -> int:
    """Return the place of the best value, the first one of equals."""
    place = 0
    for number, value in enumerate(values):
        if math.isnan(values[place]) or is_better(mode, value, values[place]):
            place = number
    return place


RULES: Final[dict[str, Callable[[RunFacts], NextStep | None]]] = {
    "diverged": _diverged,
    "baseline": _baseline,
    "from_scratch": _from_scratch,
    "unpredicted": _unpredicted,
    "overfitting": _overfitting,
    "improving": _improving,
    "labels": _labels,
    "low": _low,
    "good": _good,
}
"""Name of a rule → the rule, in the order in which they are checked."""
