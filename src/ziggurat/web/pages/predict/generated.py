"""What a network that generates makes of a seed and of numbers that are set by hand, for the prediction page."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.errors import UsageError
from ziggurat.web.caches import ImageCache
from ziggurat.web.forms import FieldError, whole_number
from ziggurat.web.pages.predict.view import Question, time_words, values_of
from ziggurat.workspace.studio import Studio

__all__ = ["MOST_SAMPLES", "Generated", "generated_answer"]

MOST_SAMPLES: Final = 64
"""Samples that a page shows at once."""

_MOST_SLIDERS: Final = 8
_MOST_INPUTS: Final = 4
_LIMIT: Final = 3.0
"""Of a slider to both sides: of the standard normal numbers that a seed draws, 99.7 % lie between."""

_MOST_SEED: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Sliders:
    """The sliders of one input of a network.

    Args:
        name: of the input.
        values: of its first numbers.
        drawn: how many numbers behind them the seed decides.
    """

    name: str
    values: Sequence[float]
    drawn: int


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One generated sample.

    Args:
        number: from 1.
        picture: path of the image; empty where it is none.
        outputs: name, shape and the first values of each output, where there is no image.
    """

    number: int
    picture: str
    outputs: Sequence[tuple[str, str, Sequence[float]]]


@dataclass(frozen=True, kw_only=True)
class Generated:
    """What a network made.

    Args:
        samples: in order.
        sliders: for the first numbers of each input.
        seed: that was used.
        step: of the checkpoint.
        epoch: of the checkpoint.
        took: how long the answer took, in words.
    """

    samples: Sequence[Sample]
    sliders: Sequence[Sliders]
    seed: int
    step: int
    epoch: int
    took: str


def generated_answer(studio: Studio, question: Question, typed: Mapping[str, str], kept: ImageCache) -> Generated:
    """Return what a model makes.

    Args:
        studio: where it is.
        question: how it is asked.
        typed: ``seed``, ``count``; with ``by_hand`` also ``input-<n>`` (name) and ``first-<n>-<m>`` (numbers).
        kept: gets the images.

    Raises:
        FieldError: where a number is none.
        ZigguratError: where the model cannot be asked, or takes nothing beside its samples.
    """
    seed = whole_number(typed, "seed", 0, 0, _MOST_SEED)
    count = whole_number(typed, "count", 16, 1, MOST_SAMPLES)
    first = _numbers_by_hand(typed) if typed.get("by_hand") else {}
    began = time.perf_counter()
    asked: dict[str, Any] = {"checkpoint": question.checkpoint, "device": question.device, "drawn": True}
    found = studio.models.generate(question.model, count, seed=seed, first=first or None, **asked)
    return Generated(
        samples=_samples(question.model, found["predictions"], kept),
        sliders=_sliders(found["inputs"], first),
        seed=seed,
        step=found["step"],
        epoch=found["epoch"],
        took=time_words(time.perf_counter() - began),
    )


def _numbers_by_hand(typed: Mapping[str, str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for place in range(_MOST_INPUTS):
        name = typed.get(f"input-{place}")
        fields = [field for row in range(_MOST_SLIDERS) if (field := f"first-{place}-{row}") in typed]
        if name and fields:
            found[name] = [_number(field, typed[field]) for field in fields]
    return found


def _number(field: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) <= _LIMIT:
        rule = f"A number of an input must be from {-_LIMIT:g} to {_LIMIT:g}."
        raise FieldError(field, UsageError(rule, received=f"`{text[:50]}`"))
    return number


def _sliders(inputs: Mapping[str, Mapping[str, Any]], first: Mapping[str, Sequence[float]]) -> list[Sliders]:
    found = []
    for name, spec in inputs.items():
        if not str(spec["dtype"]).startswith(("float", "bfloat")):
            continue
        size = math.prod(spec["shape"])
        shown = min(size, _MOST_SLIDERS)
        values = [*first.get(name, ()), *[0.0] * shown][:shown]
        found.append(Sliders(name=name, values=values, drawn=size - shown))
    return found[:_MOST_INPUTS]


def _samples(model: str, predictions: Sequence[Mapping[str, Any]], kept: ImageCache) -> list[Sample]:
    images = [bytes(each["picture"]) for each in predictions if each.get("picture")]
    place = f"/models/{model}/test/pictures/{kept.keep(*images)}" if images else ""
    found, drawn = [], 0
    for number, each in enumerate(predictions, 1):
        has_picture = bool(each.get("picture"))
        outputs = [] if has_picture else [(name, *values_of(value)) for name, value in each.get("outputs", {}).items()]
        found.append(Sample(number=number, picture=f"{place}/{drawn}" if has_picture else "", outputs=outputs))
        drawn += has_picture
    return found
