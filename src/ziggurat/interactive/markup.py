"""HTML of results in a notebook: escaped text, tables, images, bars, and line charts as SVG, all without script."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from PIL import Image, UnidentifiedImageError

__all__ = ["Line", "bars", "block", "facts", "image_tag", "image_url", "line_chart", "series_color", "table"]

_SERIES: Final = ("#3b82c4", "#c98a1b", "#d0447a", "#7c5cd6", "#2b9c8c", "#8a8f98")
"""Colors that are seen on white and on black: a notebook does not say which of both it has."""

_STYLE: Final = """<style>
.ziggurat-result { font: 13px/1.45 system-ui, sans-serif; max-width: 960px }
.ziggurat-result .zr-title { font-weight: 600; margin: 0 0 4px }
.ziggurat-result .zr-soft { opacity: .7 }
.ziggurat-result .zr-row { display: flex; flex-wrap: wrap; gap: 12px 20px; align-items: flex-start; margin: 6px 0 }
.ziggurat-result table { border-collapse: collapse; margin: 4px 0; font-size: 12px }
.ziggurat-result :is(th, td) { padding: 2px 8px; text-align: right; border: 0; background: none }
.ziggurat-result :is(th, td) { border-bottom: 1px solid rgba(128, 128, 128, .3) }
.ziggurat-result th { font-weight: 600 }
.ziggurat-result :is(th, td):first-child { text-align: left }
.ziggurat-result caption { text-align: left; opacity: .7 }
.ziggurat-result figure { margin: 0 }
.ziggurat-result figcaption { font-size: 12px; opacity: .75 }
.ziggurat-result img { display: block; background: rgba(128, 128, 128, .15) }
.ziggurat-result .zr-bar { display: grid; grid-template-columns: minmax(60px, max-content) 120px max-content }
.ziggurat-result .zr-bar { gap: 2px 8px; align-items: center; font-size: 12px }
.ziggurat-result .zr-bar i { display: block; height: 8px; background: #3b82c4; border-radius: 2px }
</style>"""

_WIDTH, _HEIGHT = 300, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 24, 34
_MOST_POINTS: Final = 300
_SMALL_PX: Final = 64


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a chart.

    Args:
        label: name in the legend.
        xs: positions from left to right.
        ys: values; the line has a gap where one is NaN or infinite.
        color: number of its color, see ``series_color``.
    """

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    color: int = 0


def block(title: str, *parts: str) -> str:
    """Return a whole result: a heading with what is below it."""
    return f'<div class="ziggurat-result">{_STYLE}<p class="zr-title">{escape(title)}</p>{"".join(parts)}</div>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values in one line; those without a value are left out."""
    shown = [
        f'<span><span class="zr-soft">{escape(name)}</span> {escape(value)}</span>' for name, value in pairs if value
    ]
    return f'<div class="zr-row">{"".join(shown)}</div>' if shown else ""


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{escape(each)}</th>" for each in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def bars(shares: Iterable[tuple[str, float, str]]) -> str:
    """Return a bar for each name: name, share from 0 to 1, and the text behind the bar."""
    cells = [
        f'<span>{escape(name)}</span><i style="width:{100 * min(max(share, 0), 1):.1f}%"></i>'
        f"<span>{escape(text)}</span>"
        for name, share, text in shares
    ]
    return f'<div class="zr-bar">{"".join(cells)}</div>'


def image_url(content: bytes, *, max_side_px: int = 320) -> tuple[str, int, int]:
    """Return an image as a data URL, with its width and height in px; an empty text for what is no image."""
    try:
        with Image.open(io.BytesIO(content)) as opened:
            image = opened.convert("RGBA" if opened.mode in ("RGBA", "P", "LA") else "RGB")
    except (UnidentifiedImageError, OSError, ValueError):
        return "", 0, 0
    width, height = image.size
    image.thumbnail((max_side_px, max_side_px))
    saved = io.BytesIO()
    image.save(saved, "PNG")
    return f"data:image/png;base64,{base64.b64encode(saved.getvalue()).decode()}", width, height


def image_tag(content: bytes, caption: str = "", *, side_px: int = 160) -> str:
    """Return an image with a caption; a tiny one is enlarged."""
    url, width, height = image_url(content, max_side_px=2 * side_px)
    if not url:
        return f"<figure><figcaption>{escape(caption)}</figcaption></figure>"
    scale = side_px / max(width, height)
    pixels = ";image-rendering:pixelated" if max(width, height) <= _SMALL_PX else ""
    size = f"width:{width * scale:.0f}px;height:{height * scale:.0f}px{pixels}"
    text = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><img alt="{escape(caption)}" src="{url}" style="{size}">{text}</figure>'


def series_color(number: int) -> str:
    """Return the color of a line by its number, from 0."""
    return _SERIES[number % len(_SERIES)]


def line_chart(
    title: str, lines: Sequence[Line], texts: Mapping[str, str] | None = None, *, format_value: Any = None
) -> str:
    """Return a chart as SVG; it takes the color of text from the page around it.

    Args:
        title: heading, also for screen readers.
        lines: lines to draw.
        texts: label of a line → text behind it in the legend, such as its last value.
        format_value: function from a value to the text at the axis; a number with 3 digits by default.
    """
    shown = [(line, _points(line)) for line in lines]
    xs = [x for _, points in shown for x, _ in points]
    ys = [y for _, points in shown for _, y in points]
    said = f'<text x="0" y="12" font-weight="600" fill="currentColor">{escape(title)}</text>'
    if not ys:
        said += f'<text x="{_LEFT}" y="{_HEIGHT / 2:.0f}" fill="currentColor" opacity=".7">no finite value yet</text>'
        return _svg(title, said)
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    pad = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    low, high = low - pad, high + pad
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        share = (x - left) / (right - left) if right > left else 0.5
        return _LEFT + width * share, _TOP + height * (high - y) / (high - low)

    write = format_value or (lambda value: f"{value:.3g}")
    parts = [said]
    for value in (low + pad, high - pad):
        y = place(left, value)[1]
        parts.append(
            f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="currentColor" opacity=".2"/>'
            f'<text x="{_LEFT - 4}" y="{y + 3:.1f}" text-anchor="end" fill="currentColor" opacity=".75">'
            f"{escape(write(value))}</text>"
        )
    for x in dict.fromkeys((left, right)):
        parts.append(
            f'<text x="{place(x, low)[0]:.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle" fill="currentColor" '
            f'opacity=".75">{x:g}</text>'
        )
    parts.append(
        f'<text x="{_LEFT + width / 2}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle" fill="currentColor" '
        'opacity=".75">step</text>'
    )
    at = float(_LEFT)
    for line, points in shown:
        color = series_color(line.color)
        parts.append(f'<path d="{_path(line, points, place)}" fill="none" stroke="{color}" stroke-width="1.6"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}"/>' for x, y in _ends(points, place)]
        text = f"{line.label} {(texts or {}).get(line.label, '')}".strip()
        parts.append(
            f'<path d="M{at:.0f} {_HEIGHT - 7}h12" stroke="{color}" stroke-width="2"/>'
            f'<text x="{at + 16:.0f}" y="{_HEIGHT - 4}" fill="currentColor">{escape(text)}</text>'
        )
        at += 28 + 6.1 * len(text)
    return _svg(title, "".join(parts))


def _svg(title: str, content: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(title)}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="system-ui,sans-serif" font-size="11">{content}</svg>'
    )


def _points(line: Line) -> list[tuple[float, float]]:
    """Return the finite points, evenly thinned."""
    points = [(float(x), float(y)) for x, y in zip(line.xs, line.ys) if math.isfinite(y)]
    if len(points) <= _MOST_POINTS:
        return points
    return [points[round(at * (len(points) - 1) / (_MOST_POINTS - 1))] for at in range(_MOST_POINTS)]


def _path(line: Line, points: Sequence[tuple[float, float]], place: Any) -> str:
    gaps = [float(x) for x, y in zip(line.xs, line.ys) if not math.isfinite(y)]
    found, before = [], -math.inf
    for x, y in points:
        is_new = not found or any(before < gap <= x for gap in gaps)
        found.append(("M" if is_new else "L") + "{:.1f} {:.1f}".format(*place(x, y)))
        before = x
    return "".join(found)


def _ends(points: Sequence[tuple[float, float]], place: Any) -> list[tuple[float, float]]:
    return [place(*points[-1])] if points else []
