"""Plot of the learning-rate schedule: polylines in a box, with axis labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["rate_picture"]

_WIDTH: Final = 560
_HEIGHT: Final = 190
_LEFT: Final = 62
_BOTTOM: Final = 28
_TOP: Final = 10
_RIGHT: Final = 14
_TABLE_ROWS: Final = 11


def rate_picture(curves: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the numbers of the image.

    Args:
        curves: name and what ``Training.rate_curve`` returned; one for each rate of a sweep.

    Returns:
        ``width``, ``height``, ``box``, ``lines`` (``name``, ``points`` of an SVG polyline, ``number``), ``ticks_x`` and
        ``ticks_y`` (place and text), ``table`` (epoch and the rate of each curve) and ``names``.
    """
    most = max(max(curve["rates"]) for _, curve in curves) or 1.0
    epochs = max(curve["epochs"][-1] for _, curve in curves) or 1.0
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "box": (_LEFT, _TOP, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM),
        "names": [name for name, _ in curves],
        "lines": [
            {"name": name, "points": _points(curve, epochs, most), "number": number % 6 + 1}
            for number, (name, curve) in enumerate(curves)
        ],
        "ticks_x": [(_x(epochs * part / 4, epochs), f"{epochs * part / 4:.3g}") for part in range(5)],
        "ticks_y": [(_y(most * part / 2, most), f"{most * part / 2:.3g}") for part in range(3)],
        "table": _table([curve for _, curve in curves]),
    }


def _points(curve: Mapping[str, Any], epochs: float, most: float) -> str:
    pairs = zip(curve["epochs"], curve["rates"], strict=True)
    return " ".join(f"{_x(epoch, epochs):.1f},{_y(rate, most):.1f}" for epoch, rate in pairs)


def _x(epoch: float, epochs: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * epoch / epochs


def _y(rate: float, most: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * rate / most


def _table(curves: Sequence[Mapping[str, Any]]) -> list[tuple[float, list[float]]]:
    count = min(len(curve["epochs"]) for curve in curves)
    places = sorted({round(number * (count - 1) / (_TABLE_ROWS - 1)) for number in range(_TABLE_ROWS)})
    return [(curves[0]["epochs"][place], [curve["rates"][place] for curve in curves]) for place in places]
