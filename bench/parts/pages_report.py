"""Report of the page benchmark: one row per page, next to the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.parts.pages_scenes import Figures

__all__ = ["PagesReport"]

_HEAD = (
    "| page | kB | cold: usable ms | painted | shown | kB over the network | floor ms | times floor"
    " | warm: usable ms | p95 | painted | shown | kB | floor ms | times floor"
    " | by a link: usable ms | p95 | painted | floor ms | times floor |"
)


@dataclass
class PagesReport:
    """The whole benchmark.

    Args:
        title: what was measured.
        notes: what one must know to judge.
        pages: the figures of each page or act.
        cpu_ms: page → CPU time of the server for one request of it.
        left_out: why nothing was measured; empty where it was.
    """

    title: str
    notes: list[str] = field(default_factory=list)
    pages: list[Figures] = field(default_factory=list)
    cpu_ms: dict[str, float] = field(default_factory=dict)
    left_out: str = ""

    def text(self) -> str:
        """Return the report for people; its table is Markdown."""
        lines = [self.title, *(f"- {note}" for note in self.notes)]
        if self.left_out:
            return "\n".join([*lines, f"Left out: all pages ({self.left_out})"])
        lines += ["", _HEAD, f"|---{'|--:' * 19}|", *(_line(each.as_dict()) for each in self.pages)]
        if self.cpu_ms:
            each_page = ", ".join(f"{name} {cpu_ms:.1f} ms" for name, cpu_ms in self.cpu_ms.items())
            lines += ["", f"CPU time of the server for one request: {each_page}"]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        pages = [each.as_dict() for each in self.pages]
        told = {"title": self.title, "notes": self.notes, "left_out": self.left_out}
        return told | {"pages": pages, "server_cpu_ms": self.cpu_ms}


def _line(page: Mapping[str, Any]) -> str:
    warm, warm_floor = page["warm"], page["floor_warm"]
    cells = [page["name"], f"{page['page_bytes'] / 1e3:.0f}"]
    cells += _side(page["cold"], page["floor_cold"]) if "cold" in page else ["–"] * 6
    shown = _side(warm, warm_floor)
    cells += [shown[0], f"{warm['p95_interactive_ms']:.0f}", *shown[1:]]
    if "followed" in page:
        usable, painted, _, _, *beside = _side(page["followed"], page["floor_followed"])
        cells += [usable, f"{page['followed']['p95_interactive_ms']:.0f}", painted, *beside]
    else:
        cells += ["–"] * 5
    return f"| {' | '.join(cells)} |"


def _side(page: Mapping[str, Any], floor: Mapping[str, Any]) -> list[str]:
    ratio = page["median_interactive_ms"] / floor["median_interactive_ms"]
    times_ms = (page[f"median_{name}_ms"] for name in ("interactive", "painted", "shown"))
    figures = (*times_ms, page["median_transferred_bytes"] / 1e3, floor["median_interactive_ms"])
    return [*(f"{figure:.0f}" for figure in figures), f"{ratio:.1f}"]
