"""Preview of the learning-rate schedule: the rates that the engine will set, and a summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ziggurat.errors import SpecError, UsageError
from ziggurat.schedules.curves import Schedule
from ziggurat.schedules.registry import make_schedule
from ziggurat.specs import TrainSpec, parse_spec

__all__ = ["MOST_POINTS", "draft_of_training", "rate_curve"]

MOST_POINTS: Final = 10_000
"""A curve has no more points than this."""

_PLACEHOLDERS: Final = {"network": "mlp", "data": "digits"}
"""What stands for the fields that must be given, while a form is being filled in and a curve needs none of them."""


def draft_of_training(spec: Mapping[str, Any]) -> TrainSpec:
    """Return the spec of a training that is being put together; network and data may still be missing.

    Args:
        spec: decoded JSON of a spec of any version.

    Raises:
        SpecError: where what is there is not valid; it names the field.
    """
    whole = {"kind": "train", "version": 1, **spec}
    if whole["kind"] != "train":
        raise SpecError("A training has a spec of kind train.", received=whole["kind"])
    missing = {name: value for name, value in _PLACEHOLDERS.items() if not whole.get(name)}
    draft = parse_spec({**whole, **missing}, source="the request")
    assert isinstance(draft, TrainSpec)
    return draft


def rate_curve(spec: Mapping[str, Any], *, points: int = 300, steps_per_epoch: int | None = None) -> dict[str, Any]:
    """Return the learning rate over a whole training, by the functions that the engine itself calls.

    Args:
        spec: decoded JSON of a spec; network and data may still be missing.
        points: how many at most, from 2 on; a training with fewer steps has one for each.
        steps_per_epoch: steps in an epoch, where the spec does not say them; None if unknown.

    Returns:
        ``epochs``: epochs that are done before a step; ``rates``: of that step; ``sentence``. Where the number of steps
        is not known, the points lie at equal distances from the first step to the end.

    Raises:
        SpecError: where what is there is not valid; it names the field.
        UsageError: where a number is out of its range.
    """
    if not 2 <= points <= MOST_POINTS:
        raise UsageError(f"A curve has from 2 to {MOST_POINTS} points.", received=str(points))
    if steps_per_epoch is not None and steps_per_epoch < 1:
        raise UsageError("An epoch has at least one step.", received=str(steps_per_epoch))
    asked = draft_of_training(spec)
    schedule = make_schedule(asked.schedule.policy, **asked.schedule.model_dump(exclude={"policy"}))
    per_epoch = asked.steps_per_epoch or steps_per_epoch
    places = _equal_places(points) if per_epoch is None else _places_of_steps(points, asked.epochs * per_epoch)
    rates = [asked.learning_rate * schedule(progress) for progress in places]
    return {
        "epochs": [asked.epochs * progress for progress in places],
        "rates": rates,
        "sentence": _sentence(asked, schedule, rates),
    }


def _equal_places(points: int) -> list[float]:
    return [number / (points - 1) for number in range(points)]


def _places_of_steps(points: int, total_steps: int) -> list[float]:
    """Return the progress of steps that are spread over a training, the first and the last among them."""
    if total_steps <= points:
        return [step / total_steps for step in range(total_steps)]
    last = total_steps - 1
    return [round(number * last / (points - 1)) / total_steps for number in range(points)]


def _sentence(spec: TrainSpec, schedule: Schedule, rates: list[float]) -> str:
    first, last, most = rates[0], rates[-1], max(rates)
    policy = f"With the policy `{spec.schedule.policy}`"
    if min(rates) == most:
        return f"{policy} the rate stays at {most:g} from the first step to the last."
    course = f"{policy} the rate begins at {first:g} and ends at {last:g}"
    if most > max(first, last):
        course += f", at most {most:g}"
    warm_up = spec.schedule.warm_up_percent
    if warm_up:
        peak = spec.learning_rate * schedule(warm_up / 100)
        course += f"; it climbs to {peak:g} in the first {warm_up:g} % ({spec.epochs * warm_up / 100:g} epochs)"
    return f"{course}."
