"""Predictions of a run: one for each input, with what every task says under its own name."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, overload

from PIL import Image

from ziggurat.formatting import as_number, as_percent, plural
from ziggurat.interactive.frames import frame
from ziggurat.interactive.markup import bars, block, image_tag, image_url, table

__all__ = ["Box", "ClassScore", "Prediction", "Predictions"]

_SIDE_PX: Final = 200
_SMALL_SIDE_PX: Final = 96
_MOST_SHOWN: Final = 24
_LEAST_SCORE: Final = 0.3
"""Least score of the boxes that are drawn; all are in ``boxes``."""


@dataclass(frozen=True)
class ClassScore:
    """Class with its probability, or with its share of the pixels of a mask.

    Args:
        label: name of the class.
        share: probability or share, from 0 to 1.
    """

    label: str
    share: float


@dataclass(frozen=True)
class Box:
    """Object that was found in an image.

    Args:
        label: name of its class.
        score: confidence, from 0 to 1.
        left: left edge, in px of the image.
        top: upper edge, in px.
        right: right edge, in px.
        bottom: lower edge, in px.
    """

    label: str
    score: float
    left: float
    top: float
    right: float
    bottom: float


class Prediction:
    """Prediction for one input.

    Args:
        data: answer for the input, JSON values, as the task of the run gives it.
        given: input: content of an image file, row of a table, or text.
        picture: predicted mask or image as PNG; None if the prediction is no image.

    Attributes:
        data: the whole answer.
        given: the input.
    """

    def __init__(self, data: Mapping[str, Any], given: Any, picture: bytes | None = None) -> None:
        self.data = dict(data)
        self.given = given
        self._picture = picture

    @property
    def source(self) -> str:
        """Path of the file, or number of the input."""
        return str(self.data.get("file", ""))

    @property
    def classes(self) -> list[ClassScore]:
        """Classes, the most likely or the largest first; empty for other tasks."""
        rows = self.data.get("classes") or self.data.get("labels") or []
        return [ClassScore(str(row["class"]), float(row.get("probability", row.get("share", 0.0)))) for row in rows]

    @property
    def label(self) -> str | None:
        """Name of the most likely class, or of the one that an operating point decides for; None for other tasks."""
        if "decision" in self.data:
            return self.data["decision"]["class"]
        return self.classes[0].label if self.classes and "size" not in self.data and "labels" not in self.data else None

    @property
    def labels(self) -> list[str]:
        """Names of all predicted labels of a network for several labels; else that of ``label``."""
        rows = self.data.get("labels")
        if rows is None:
            return [] if self.label is None else [self.label]
        return [str(row["class"]) for row in rows if row["predicted"]]

    @property
    def probability(self) -> float | None:
        """Probability of ``label``, from 0 to 1; None for other tasks, and if it is not among ``classes``."""
        return next((each.share for each in self.classes if each.label == self.label), None)

    @property
    def boxes(self) -> list[Box]:
        """Objects that were found, the most confident first; empty for other tasks."""
        return [
            Box(str(row["class"]), float(row["score"]), *map(float, row["box"])) for row in self.data.get("boxes", [])
        ]

    @property
    def values(self) -> dict[str, float]:
        """Name → number that was predicted; empty for other tasks."""
        return {str(row["name"]): float(row["value"]) for row in self.data.get("values", [])}

    @property
    def picture(self) -> Image.Image | None:
        """Predicted mask in the colors of the classes, or predicted image; None for other tasks."""
        return None if self._picture is None else Image.open(io.BytesIO(self._picture))

    def __repr__(self) -> str:
        return f"Prediction({self._text()})"

    def _text(self) -> str:
        if self.label is not None:
            return f"{self.label!r} {as_percent(self.probability)}"
        if "decision" in self.data:
            return "undecided"
        if "labels" in self.data:
            return ", ".join(map(repr, self.labels)) or "no label"
        if "boxes" in self.data:
            best = ", ".join(f"{box.label} {as_percent(box.score)}" for box in self.boxes[:3])
            return plural(len(self.boxes), "box", "boxes") + (f": {best}" if best else "")
        if self.values:
            return ", ".join(f"{name} {as_number(value)}" for name, value in self.values.items())
        if self.classes:
            return "mask: " + ", ".join(f"{each.label} {as_percent(each.share)}" for each in self.classes[:3])
        return ", ".join(name for name in self.data if name not in ("file", "note", "picture"))

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each class, box or value.

        Raises:
            MissingDependencyError: if pandas is not installed.
        """
        return frame([vars(each) for each in (self.boxes or self.classes)] or [self.values])

    def _repr_html_(self) -> str:
        return block(self._text(), self.card())

    def card(self, side_px: int = _SIDE_PX, most: int = 10) -> str:
        """Return the input with its prediction, as HTML.

        Args:
            side_px: longer side of images.
            most: number of classes and boxes that are named.
        """
        parts = [self._given_html(side_px)]
        if self._picture is not None:
            parts.append(image_tag(self._picture, "prediction", side_px=side_px))
        shares = [(each.label, each.share, as_percent(each.share)) for each in self.classes]
        shares += [(box.label, box.score, as_percent(box.score)) for box in self.boxes if box.score >= _LEAST_SCORE][
            :10
        ]
        if shares:
            parts.append(bars(shares[:most]))
        elif self.values:
            parts.append(table([(name, as_number(value)) for name, value in self.values.items()], ("", "predicted")))
        note = f'<p class="zr-soft">{escape(str(self.data["note"]))}</p>' if self.data.get("note") else ""
        return f'<div class="zr-row">{"".join(parts)}</div>{note}'

    def _given_html(self, side_px: int) -> str:
        if isinstance(self.given, bytes):
            return self._image_html(side_px)
        if isinstance(self.given, Mapping):
            return table(
                [(str(name), "" if value is None else str(value)) for name, value in self.given.items()],
                ("column", "value"),
            )
        return f"<blockquote>{escape(str(self.given)[:600])}</blockquote>"

    def _image_html(self, side_px: int) -> str:
        """Return the image, with the boxes over it."""
        boxes = [box for box in self.boxes if box.score >= _LEAST_SCORE]
        url, width, height = image_url(self.given, max_side_px=2 * side_px)
        if not boxes or not url:
            return image_tag(self.given, side_px=side_px)
        scale = side_px / max(width, height)
        colors = {row["class"]: row.get("color", "#d0447a") for row in self.data["boxes"]}
        drawn = "".join(
            f'<rect x="{box.left:.1f}" y="{box.top:.1f}" width="{box.right - box.left:.1f}" '
            f'height="{box.bottom - box.top:.1f}" fill="none" stroke="{escape(colors[box.label])}" '
            f'stroke-width="{2 / scale:.2f}"><title>{escape(box.label)} {as_percent(box.score)}</title></rect>'
            for box in boxes
        )
        label = f"{plural(len(boxes), 'box', 'boxes')} of a confidence from {_LEAST_SCORE:.0%}"
        return (
            f'<figure><svg role="img" aria-label="{label}" width="{width * scale:.0f}" height="{height * scale:.0f}" '
            f'viewBox="0 0 {width} {height}"><image href="{url}" width="{width}" height="{height}"/>{drawn}</svg>'
            f"<figcaption>{label}</figcaption></figure>"
        )


class Predictions(Sequence[Prediction]):
    """Predictions for several inputs, in their order.

    Args:
        items: predictions.
    """

    def __init__(self, items: Sequence[Prediction]) -> None:
        self._items = list(items)

    @overload
    def __getitem__(self, index: int) -> Prediction: ...

    @overload
    def __getitem__(self, index: slice) -> Predictions: ...

    def __getitem__(self, index: int | slice) -> Prediction | Predictions:
        """Return one prediction, or those of a slice."""
        return Predictions(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self._items)

    def __repr__(self) -> str:
        shown = ", ".join(each._text() for each in self._items[:3])
        return f"Predictions({len(self._items)}: {shown}{', …' if len(self._items) > 3 else ''})"

    def to_pandas(self) -> Any:
        """Return a DataFrame: a row for each input, or for each box, with ``source`` as the first column.

        Raises:
            MissingDependencyError: if pandas is not installed.
        """
        rows: list[dict[str, Any]] = []
        for each in self._items:
            if "boxes" in each.data:
                rows += [{"source": each.source, **vars(box)} for box in each.boxes]
            elif each.label is not None:
                rows.append({"source": each.source, "label": each.label, "probability": each.probability})
            elif "labels" in each.data:
                rows.append({"source": each.source, "labels": each.labels})
            else:
                rows.append({"source": each.source, **(each.values or {row.label: row.share for row in each.classes})})
        columns = ["source", *Box.__dataclass_fields__] if rows == [] else None
        return frame(rows, columns)

    def _repr_html_(self) -> str:
        cards = "".join(each.card(_SMALL_SIDE_PX, 3) for each in self._items[:_MOST_SHOWN])
        more = len(self._items) - _MOST_SHOWN
        rest = f'<p class="zr-soft">and {more} more</p>' if more > 0 else ""
        return block(plural(len(self._items), "prediction"), f'<div class="zr-row">{cards}</div>', rest)
