"""A divergence of a training: where it began, and what was best before."""

from __future__ import annotations

from dataclasses import dataclass

from ziggurat.entities.best_checkpoint import metric_title
from ziggurat.events import DivergenceNoticed

__all__ = ["DIVERGED", "RECOVERED", "Divergence", "divergence_after"]

DIVERGED = "diverged"
RECOVERED = "recovered"


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """A divergence; the fields are those of the event ``divergence``, and ``text`` says it in a sentence.

    The sentence is such as: ``The run diverged at epoch 9: validation loss 948, best 1.21 at epoch 8.``
    """

    tag: str
    value: float | None
    step: int
    epoch: int
    best: float | None
    best_step: int
    best_epoch: int
    noticed_step: int
    text: str = ""

    def __post_init__(self) -> None:
        value = "is no finite number" if self.value is None else f"{self.value:.4g}"
        best = "" if self.best is None else f", best {self.best:.4g} at epoch {self.best_epoch}"
        text = f"The run diverged at epoch {self.epoch}: {metric_title(self.tag)} {value}{best}."
        object.__setattr__(self, "text", text)


def divergence_after(event: DivergenceNoticed) -> Divergence | None:
    """Return what holds after an event; None where it says that the run recovered."""
    if event.state != DIVERGED:
        return None
    return Divergence(
        tag=event.tag,
        value=event.value,
        step=event.step,
        epoch=event.epoch,
        best=event.best,
        best_step=event.best_step,
        best_epoch=event.best_epoch,
        noticed_step=event.noticed_step,
    )
