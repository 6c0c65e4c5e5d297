"""What to do after a result, as the rules of ``ziggurat.workspace.next_step`` say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

__all__ = ["ACTIONS_WITHOUT_CHANGES", "NextAction", "NextStep"]

NextAction = Literal["clone", "train", "train_on", "evaluate", "errors", "explore", "publish"]

ACTIONS_WITHOUT_CHANGES: Final = ("errors", "explore")
"""Actions that only show something: every user may follow them."""


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """One sentence under a result, with one action.

    Args:
        rule: name of the rule that speaks, such as ``overfitting``.
        tone: ``warning``, ``info`` or ``ok``.
        text: the fact, one sentence.
        reason: for the action, one or two sentences; may be empty.
        action: kind of the action: ``clone`` a job, ``train`` on a dataset, ``train_on`` from the newest checkpoint,
            ``evaluate`` a model, look at the ``errors`` of an evaluation, ``explore`` a dataset, ``publish`` a model.
        title: of its button, a verb first.
        target: id of the job that it is about: a training, a dataset or an evaluation.
        fields: further values of it: of ``clone`` fields of the form, of ``train_on`` and ``publish`` the
            ``checkpoint``, of ``explore`` and ``errors`` which samples.
    """

    rule: str
    tone: Literal["warning", "info", "ok"]
    text: str
    reason: str = ""
    action: NextAction
    title: str
    target: str
    fields: Mapping[str, Any] = field(default_factory=dict)
