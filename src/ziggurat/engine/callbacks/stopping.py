"""End of a training that improves no more, is out of time, or diverged."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Literal

from ziggurat.engine.callback import Callback, innermost
from ziggurat.engine.capabilities import HasRivalLosses
from ziggurat.engine.monitor import ScalarWatch, better, say
from ziggurat.entities.best_checkpoint import PRIMARY_METRIC, primary_metric
from ziggurat.entities.jobs import DIVERGED, RECOVERED, Divergence
from ziggurat.errors import ConfigurationError
from ziggurat.events import DivergenceNoticed

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["DivergenceWatch", "EarlyStopping", "StopAtTime", "divergence_of"]


class EarlyStopping(Callback):
    """Completes the training when a scalar has not become better for a number of observations.

    It looks at the end of every epoch (a wrapper may change that), after all callbacks have put their numbers. Only new
    points count; NaN is never better.

    With the tag ``auto`` it is the primary metric of the run that decides: the validation accuracy, else the validation
    error, else the validation loss. Without a validation, it does nothing.

    Args:
        tag: the scalar, or ``auto``.
        patience: so many observations in a row without progress end the training; at least 1.
        min_delta: how much better a value must be to count as progress.
        mode: whether smaller (``min``) or larger (``max``) is better; unused with ``auto``.
    """

    def __init__(
        self, tag: str, patience: int = 5, min_delta: float = 0.0, mode: Literal["min", "max"] = "min"
    ) -> None:
        for name, value, least in (("patience", patience, 1), ("min_delta", min_delta, 0)):
            if value < least:
                raise ConfigurationError(f"`{name}` must be at least {least}.", received=value, advice="Set it so.")
        self._is_primary = tag == PRIMARY_METRIC
        self._watch = ScalarWatch(tag)
        self._patience = patience
        self._min_delta = min_delta
        self._use_mode(mode)
        self._best: float | None = None
        self._waited = 0
        self._last_step = -1

    def trigger(self) -> None:
        """Judge once all callbacks have put their numbers."""
        self.trainer.at_boundary(self._judge)

    def state(self) -> Any:
        """Return the best value and how long there was none better."""
        return {"best": self._best, "waited": self._waited, "last_step": self._last_step}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self._best, self._waited, self._last_step = state["best"], state["waited"], state["last_step"]

    def _use_mode(self, mode: Literal["min", "max"]) -> None:
        self._margin = self._min_delta if mode == "max" else -self._min_delta
        self._better = better(mode)

    def _judge(self) -> None:
        if self._is_primary:
            found = primary_metric(self.trainer.monitors.latest())
            if found is None:
                return
            tag, mode = found
            if tag != self._watch.tag:
                self._watch = ScalarWatch(tag)
                self._use_mode(mode)
        point = self._watch.newest(self.trainer)
        if point is None or point[0] <= self._last_step:
            return
        self._last_step, value = point
        first = self._best is None and value == value  # NaN differs from itself
        if first or (self._best is not None and self._better(value, self._best + self._margin)):
            self._best, self._waited = value, 0
            return
        self._waited += 1
        if self._waited >= self._patience:
            verdict = "was not a number" if self._best is None else f"has not become better than {self._best:g}"
            self.trainer.finish(f"{self._watch.tag} {verdict} for {self._waited} observations")


class StopAtTime(Callback):
    """Stops the training at a given time, so that it can be resumed: before a machine is reclaimed.

    Args:
        at_s: the time, in seconds since 1970.
        after_s: or: seconds of this attempt.
        clock: seconds since 1970.

    Raises:
        ConfigurationError: unless exactly one of the two times is given.
    """

    def __init__(
        self,
        *,
        at_s: float | None = None,
        after_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if (at_s is None) == (after_s is None):
            raise ConfigurationError(
                "StopAtTime takes either `at_s` or `after_s`.",
                received="both" if at_s is not None else "neither",
                advice="Give the moment since 1970, or the seconds from the start of the attempt.",
            )
        self._at_s = at_s
        self._after_s = after_s
        self._clock = clock
        self._deadline_s = 0.0

    def before_train(self) -> None:
        """Find the moment."""
        self._deadline_s = self._at_s if self._at_s is not None else self._clock() + (self._after_s or 0.0)

    def trigger_step(self) -> None:
        """Ask for the end once the moment has come."""
        if self._clock() >= self._deadline_s:
            self.trainer.request_stop("its time is up")


_LOSS: Final = ("cost", "loss")
_VALIDATION: Final = re.compile(r"(?:validation|val)[_/](.+)")

_EXPLODED: Final = 5.0
"""So many times its value at the start, a loss has exploded, unless the accuracy says otherwise: a network that learns
its training split by heart is wrong with more and more confidence, while as many samples as before are right."""

_EXPLODED_FOR_SURE: Final = 100.0
"""So many times its value at the start, a loss has exploded whatever the accuracy is: of two classes, one of which is
rare, an accuracy at chance looks good."""

_FAR_ABOVE_FIRST: Final = 1000.0
"""So many times its very first value, a loss has exploded whatever came between: a run may explode in its first epoch,
whose mean is then its start and its best."""

_LEAST_START: Final = 0.1
"""A training that goes on from good weights begins with a loss near 0; what is below this is taken for this."""

_LOST: Final = (0.9, 3.0)
"""A run lost what it had learned where every loss is above this share of its start and so many times its best. An
untrained network is a little worse than chance, so a run that is at chance again is a little below its start."""

_GOOD_ACCURACY: Final = 0.5
_KEPT_SHARE: Final = 0.8
"""An accuracy that was good is kept while it is above this share of its best."""


class DivergenceWatch(Callback):
    """Notices that a training diverged, and says so by an event and a warning; it does not stop the training.

    It looks at each new value of the validation loss, or of the training loss where there is no validation: at numbers
    that others put, so it fetches nothing. A run diverged if a loss is no finite number, or if for ``patience`` values
    in a row a loss is more than 1,000 times its first value (or above 100, if that is below 0.1), or several times its
    value at the start, or all losses are back where they began. At the end of the training, one value that is more than
    1,000 times the first is enough. A run that is good again for ``patience`` values has recovered, which is said, too.

    Losses that work against each other, as those of a GAN, may grow: of a program that ``HasRivalLosses``, only a loss
    that is no finite number is a divergence.

    Args:
        patience: values in a row, at least 1.
    """

    def __init__(self, patience: int = 3) -> None:
        if patience < 1:
            raise ConfigurationError("`patience` must be at least 1.", received=patience, advice="Set it so.")
        self._patience = patience
        self._last_step = 0
        self._firsts: dict[str, float] = {}
        self._starts: dict[str, float] = {}
        self._bests: dict[str, list[Any]] = {}
        self._row = 0
        self._first: dict[str, Any] | None = None
        self.divergence: Divergence | None = None
        """What holds now; None while all is well."""

    def before_train(self) -> None:
        """Take note of the values of an untrained network, where they were measured."""
        if self.global_step == 0:
            self._note_starts(_finite(self._points()))

    def trigger(self) -> None:
        """Judge once all callbacks have put their numbers."""
        self.trainer.at_boundary(self._judge)

    def after_train(self) -> None:
        """Judge the last value of a training that is complete: none follows that could show a recovery."""
        if self._row <= 0 or self.divergence is not None:
            return
        trainer = self.trainer
        is_complete = trainer.finish_reason is not None or trainer.epoch_num >= trainer.max_epoch
        if is_complete and not trainer.in_epoch and self._far_above_first(trainer.monitors.latest()):
            self._note_divergence()

    def state(self) -> Any:
        """Return what was seen so far."""
        self._note_firsts()
        return {
            "last_step": self._last_step,
            "firsts": dict(self._firsts),
            "starts": dict(self._starts),
            "bests": dict(self._bests),
            "row": self._row,
            "first": self._first,
            "divergence": None if self.divergence is None else asdict(self.divergence),
        }

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self._last_step, self._row, self._first = state["last_step"], state["row"], state["first"]
        self._firsts = dict(state.get("firsts", {}))  # earlier releases had none
        self._starts, self._bests = dict(state["starts"]), dict(state["bests"])
        held = state["divergence"]
        self.divergence = None if held is None else Divergence(**held)

    # ---- judging

    def _judge(self) -> None:
        points = self._points()
        losses = [tag for tag in points if _base(tag) in _LOSS]
        if not losses or points[losses[0]][0] <= self._last_step:
            return
        self._last_step = points[losses[0]][0]
        values = {tag: value for tag, (_, value) in points.items()}
        finite = _finite(points)
        self._note_starts(finite)
        tag = self._bad_loss(losses, values)
        if tag is None:
            self._note_good()
        else:
            self._note_bad(tag, values[tag])
        self._note_bests(finite)

    def _bad_loss(self, losses: list[str], values: Mapping[str, float]) -> str | None:
        """Return the loss that shows that something is wrong, a validation loss first; None where none does."""
        for tag in losses:
            if not math.isfinite(values[tag]):
                return tag
        if isinstance(self.trainer.program, HasRivalLosses) and self.trainer.program.has_rival_losses():
            return None
        far = self._far_above_first(values)
        if far is not None:
            return far
        ratios = {tag: values[tag] / max(self._starts[tag], _LEAST_START) for tag in losses}
        exploded = _EXPLODED_FOR_SURE if self._is_accuracy_kept(values) else _EXPLODED
        for tag in losses:
            if ratios[tag] > exploded and values[tag] > _EXPLODED * self._best(tag):
                return tag
        share, times = _LOST
        is_lost = all(ratios[tag] > share and values[tag] > times * self._best(tag) for tag in losses)
        return losses[0] if is_lost and not self._is_accuracy_kept(values) else None

    def _far_above_first(self, values: Mapping[str, float]) -> str | None:
        """Return the loss that is more than 1,000 times its first value, a validation loss first; None for none."""
        limits = {tag: _FAR_ABOVE_FIRST * max(first, _LEAST_START) for tag, first in self._firsts.items()}
        far = [tag for tag, limit in limits.items() if tag in values and values[tag] > limit]
        return min(far, key=lambda tag: (not _is_validation(tag), tag), default=None)

    def _is_accuracy_kept(self, values: Mapping[str, float]) -> bool:
        tag = next((tag for tag in values if _base(tag) == "accuracy" and tag in self._bests), "")
        if not tag:
            return False
        start, best, now = self._starts[tag], self._bests[tag][0], values[tag]
        is_good, is_near_best = best >= _GOOD_ACCURACY, now >= _KEPT_SHARE * best
        if start >= _KEPT_SHARE * best:  # it began with trained weights, or learned next to nothing
            return is_good and is_near_best
        return now >= (start + best) / 2 and (is_near_best or not is_good)

    def _best(self, tag: str) -> float:
        return self._bests[tag][0] if tag in self._bests else self._starts[tag]

    def _note_bad(self, tag: str, value: float) -> None:
        if self._row <= 0:
            self._row, self._first = 0, None
        self._row += 1
        if self._first is None:
            best, step, epoch = self._bests.get(tag, (None, 0, 0))
            self._first = {
                "tag": tag,
                "value": value if math.isfinite(value) else None,
                "non_finite": "" if math.isfinite(value) else "NaN" if math.isnan(value) else "infinite",
                "learning_rate": self._rate(),
                "step": self.global_step,
                "epoch": self.epoch_num,
                "best": best,
                "best_step": step,
                "best_epoch": epoch,
            }
        if self.divergence is None and (self._row >= self._patience or not math.isfinite(value)):
            self._note_divergence()

    def _note_divergence(self) -> None:
        assert self._first is not None
        self.divergence = Divergence(**self._first, noticed_step=self.global_step)
        self._tell(DIVERGED, self.divergence)
        say(self.trainer, self.divergence.text, level="warning")

    def _rate(self) -> float | None:
        """Return the learning rate of the newest step; a schedule may have set that of the next one already."""
        logged = self.trainer.monitors.latest().get("learning_rate")
        return self.trainer.program.hyperparameters().get("learning_rate") if logged is None else logged

    def _note_good(self) -> None:
        if self._row > 0:
            self._row = 0
        self._row -= 1
        if self.divergence is not None and self._row <= -self._patience:
            self._tell(RECOVERED, self.divergence)
            say(self.trainer, f"The run recovered from its divergence at epoch {self.divergence.epoch}.")
            self.divergence = None

    def _tell(self, state: str, divergence: Divergence) -> None:
        monitors = self.trainer.monitors
        content = {name: value for name, value in asdict(divergence).items() if name != "text"}
        content["noticed_step"] = self.global_step
        monitors.put_event(DivergenceNoticed(time=monitors.now(), state=state, **content))

    # ---- what was seen

    def _points(self) -> dict[str, tuple[int, float]]:
        """Return (step, value) of the newest point of each loss and accuracy, of the validation first."""
        known = {tag: tuple(point) for tag, point in self.trainer.monitors.state().items()}
        judging = [tag for tag in known if _base(tag) in (*_LOSS, "accuracy")]
        return {tag: known[tag] for tag in sorted(judging, key=lambda tag: (not _is_validation(tag), tag))}

    def _note_starts(self, finite: Mapping[str, float]) -> None:
        for tag, value in finite.items():
            self._starts.setdefault(tag, value)
        self._note_firsts()

    def _note_firsts(self) -> None:
        """Note the first finite value of each loss: of a new training, that of its first step.

        Before each checkpoint, too: a resumed attempt no longer has the values that came before it.
        """
        monitors = self.trainer.monitors
        for tag in monitors.latest():
            if _base(tag) in _LOSS and tag not in self._firsts:
                first = next((value for _, value in monitors.get_history(tag) if math.isfinite(value)), None)
                if first is not None:
                    self._firsts[tag] = first

    def _note_bests(self, finite: Mapping[str, float]) -> None:
        for tag, value in finite.items():
            known = self._bests.get(tag)
            is_accuracy = _base(tag) == "accuracy"
            if known is None or (value > known[0] if is_accuracy else value < known[0]):
                self._bests[tag] = [value, self.global_step, self.epoch_num]


def divergence_of(trainer: Trainer) -> Divergence | None:
    """Return the divergence that a trainer's callbacks hold; None where all is well, or nothing watches for one."""
    watching = [each for each in map(innermost, trainer.callbacks) if isinstance(each, DivergenceWatch)]
    return next((each.divergence for each in watching if each.divergence is not None), None)


def _finite(points: Mapping[str, tuple[int, float]]) -> dict[str, float]:
    return {tag: value for tag, (_, value) in points.items() if math.isfinite(value)}


def _base(tag: str) -> str:
    found = _VALIDATION.fullmatch(tag)
    return found.group(1) if found else tag


def _is_validation(tag: str) -> bool:
    return _VALIDATION.fullmatch(tag) is not None
