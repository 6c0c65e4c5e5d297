"""Previews before a job is created: the content of a source, and the learning-rate schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import split_of
from ziggurat.entities.leftovers import temporary_folder
from ziggurat.errors import ConfigurationError, DataError, NetworkCodeError, SpecError, UsageError
from ziggurat.schedules.curves import Schedule
from ziggurat.schedules.registry import make_schedule
from ziggurat.specs import DatasetSpec, TrainSpec, parse_spec
from ziggurat.workspace.datasets import stored_source
from ziggurat.workspace.tasks import Tasks

__all__ = ["MOST_SAMPLES", "MOST_SCANNED", "draft_of_training", "preview_dataset", "rate_curve", "split_of"]

MOST_SAMPLES: Final = 200
"""Samples that are shown at most."""

MOST_SCANNED: Final = 100_000
"""Samples and problems after which the walk through a source ends, unless another is given."""

MOST_POINTS: Final = 10_000
"""A curve has no more points than this."""

_LONGEST_S: Final = 120.0

_GRACE_S: Final = 30.0
"""How long the process may go on after its time, for code that cannot be interrupted."""

_PLACEHOLDERS: Final = {"network": "mlp", "data": "digits"}
"""What stands for the fields that must be given, while a form is being filled in and a curve needs none of them."""


def preview_dataset(
    tasks: Tasks,
    spec: Mapping[str, Any],
    *,
    samples: int = 24,
    time_limit_s: float = 10.0,
    at_most: int = MOST_SCANNED,
    offered: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return what is in a source, as far as it can be seen in a given time.

    Args:
        tasks: run the look.
        spec: decoded JSON of the spec of a dataset; all but ``source`` may be missing.
        samples: how many are shown.
        time_limit_s: how long to look.
        at_most: samples and problems after which the walk ends.
        offered: folders below which files may be read; None for all.

    Returns:
        What ``ziggurat.worker.commands.dataset_previews.preview_dataset`` returns.

    Raises:
        SpecError: where the spec, the format or an option is wrong; ``details["field"]`` names it.
        DataError: where the source is not there, is somewhere else, is not recognized, or takes too long to open.
        UsageError: where a number is out of its range.
    """
    _check("samples", samples, 0, MOST_SAMPLES)
    _check("time_limit_s", time_limit_s, 0.1, _LONGEST_S)
    _check("at_most", at_most, 1, 10_000_000)
    asked = parse_spec({"kind": "dataset", "version": 1, **spec}, source="the request")
    if not isinstance(asked, DatasetSpec):
        raise SpecError(f"The spec is of kind {asked.kind}, and a dataset has one of kind dataset.")
    content = asked.model_copy(update={"source": stored_source(asked.source)}).model_dump(mode="json")
    with temporary_folder("preview") as folder:
        request = {
            "spec": content,
            "samples": samples,
            "time_limit_s": time_limit_s,
            "at_most": at_most,
            "folder": str(folder),
            "offered": None if offered is None else list(offered),
        }
        try:
            return tasks.preview_dataset(request, time_limit_s=time_limit_s + _GRACE_S)
        except NetworkCodeError as error:  # the word of tasks for one that does not end
            raise DataError(
                f"`{asked.source}` takes too long to look at: more than {time_limit_s + _GRACE_S:g} s.",
                advice="Make the dataset without a look at it, or name a part of the source.",
            ) from error
        except ConfigurationError as error:
            raise _as_spec_error(error) from None


def _as_spec_error(error: ConfigurationError) -> ConfigurationError:
    """Return the error of another process as what it was there: only its family comes across."""
    if error.code != SpecError.code:
        return error
    received = {} if error.received is None else {"received": error.received}
    return SpecError(error.rule, advice=error.advice, details=error.details, **received)


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise UsageError(f"`{name}` is {value:g}, not from {least:g} to {most:g}.")


def draft_of_training(spec: Mapping[str, Any]) -> TrainSpec:
    """Return the spec of a training that is being put together; network and data may still be missing.

    Args:
        spec: decoded JSON of a spec of any version.

    Raises:
        SpecError: where what is there is not valid; it names the field.
    """
    whole = {"kind": "train", "version": 1, **spec}
    if whole["kind"] != "train":
        raise SpecError(f"The spec is of kind {whole['kind']}, and a training has one of kind train.")
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
        raise UsageError(f"A curve of {points} points is asked for; it has from 2 to {MOST_POINTS}.")
    if steps_per_epoch is not None and steps_per_epoch < 1:
        raise UsageError(f"`steps_per_epoch` is {steps_per_epoch}: an epoch has at least one step.")
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
