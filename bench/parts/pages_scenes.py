"""Pages and actions that the page benchmark measures, and their figures next to those of the baseline."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.parts.chromium import Chromium
from bench.parts.pages_browser import Tab, Visit
from bench.parts.pages_floor import bare
from bench.parts.studio_workspace import Workspace

__all__ = ["Figures", "Scene", "measure", "scenes"]

_CURVES: Final = "marked('curves drawn')"
_PICTURES: Final = (
    "Math.max(...[...new Set([...document.querySelectorAll('#tiles image')].map((e) => e.href.baseVal))]"
    ".map((each) => performance.getEntriesByName(new URL(each, location).href)[0]?.responseEnd))"
)
"""Tiles are parts of sheets, which are images of SVG: a sheet has come when its answer has."""
_BEFORE: Final = "/datasets"
"""The page whose links are followed."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One page, or one act on it.

    Args:
        name: how the report calls it.
        path: of the page, with its query.
        shown: an expression of JavaScript: when all was there that one sees at first, in ms of the page's timeline.
        act: what is pressed, or the field whose form is sent; empty where the page itself is measured.
        value: for the field.
        changes: the element whose text the act changes.
    """

    name: str
    path: str
    shown: str = "1"
    act: str = ""
    value: str | None = None
    changes: str = "#results tbody"


@dataclass(kw_only=True)
class Figures:
    """What was measured of one scene.

    Args:
        name: of the scene.
        page_bytes: size of the page or part, not compressed.
        cold: visits with an empty cache.
        warm: visits with a full one, or acts.
        followed: visits with a full one by a link on another page of the studio.
        floor_cold: visits of the bare page with an empty cache.
        floor_warm: the same with a full one; for acts, fetching the bare part.
        floor_followed: visits of the bare page by a link on a bare page.
    """

    name: str
    page_bytes: int = 0
    cold: list[Visit] = field(default_factory=list)
    warm: list[Visit] = field(default_factory=list)
    followed: list[Visit] = field(default_factory=list)
    floor_cold: list[Visit] = field(default_factory=list)
    floor_warm: list[Visit] = field(default_factory=list)
    floor_followed: list[Visit] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values; lists that are empty are left out."""
        sides = {name: value for name, value in vars(self).items() if isinstance(value, list)}
        told = {side: _summary(visits) for side, visits in sides.items() if visits}
        return {"name": self.name, "page_bytes": self.page_bytes, **told}


def scenes(workspace: Workspace, explored: str, samples: int) -> list[Scene]:
    """Return what is looked at.

    Args:
        workspace: of the studio.
        explored: id of the dataset whose samples are looked at.
        samples: that it has.
    """
    explore = f"/datasets/{explored}/explore"
    return [
        Scene(name="home", path="/"),
        Scene(name="home: find a word", path="/", act="#q", value="flowers"),
        Scene(name="home: learning_rate > 0.01", path="/", act="#q", value="learning_rate > 0.01"),
        Scene(
            name="home: sort by a curve",
            path="/?column=validation/accuracy",
            act='[id="sort-validation/accuracy"]',
        ),
        Scene(name="home: next page", path="/?kind=all", act="#page-after"),
        Scene(name="job", path=f"/models/{workspace.ended[0]}", shown=_CURVES),
        Scene(name="job with a long curve", path=f"/models/{workspace.long[0]}", shown=_CURVES),
        Scene(name="explorer, from the middle", path=f"{explore}?offset={samples // 2}", shown=_PICTURES),
        Scene(
            name="explorer: next page",
            path=f"{explore}?offset={samples // 2 + 50}",
            shown=_PICTURES,
            act="#found a[rel=next]",
            changes="#found .pager",
        ),
    ]


def measure(opened: Chromium, address: str, floor: tuple[str, Path], scene: Scene, figures: Figures, warm: int) -> None:
    """Look at one scene: with an empty cache, then with a full one, from a bookmark and by a link; the floor beside.

    Args:
        opened: the browser.
        address: of the studio.
        floor: address of the floor, and the folder that it serves.
        scene: what is looked at.
        figures: that grow.
        warm: how often with a full cache.
    """
    tab, bare_tab = Tab(opened, scene.shown), Tab(opened)
    try:
        first = tab.visit(address + scene.path)
        beside = _floor_page(floor, tab.content())
        if not scene.act:
            figures.page_bytes = len(tab.content().encode())
            figures.cold.append(first)
            figures.floor_cold.append(bare_tab.visit(beside))
        for _ in range(warm):
            if scene.act:
                tab.visit(address + scene.path)
                figures.warm.append(tab.act(scene.act, scene.value, scene.changes))
                figures.page_bytes = len(tab.content().encode())
                bare_tab.visit(beside)
                figures.floor_warm.append(bare_tab.fetch(_floor_page(floor, tab.content(), "part.html")))
            else:
                figures.warm.append(tab.visit(address + scene.path))
                figures.floor_warm.append(bare_tab.visit(beside))
                figures.followed.append(tab.follow(address + scene.path, address + _BEFORE))
                figures.floor_followed.append(bare_tab.follow(beside, f"{beside}?before"))
    finally:
        tab.close()
        bare_tab.close()


def _floor_page(floor: tuple[str, Path], content: str, name: str = "page.html") -> str:
    address, folder = floor
    (folder / name).write_text(bare(content))
    return f"{address}/{name}"


def _summary(visits: Sequence[Visit]) -> dict[str, Any]:
    interactive = sorted(each.interactive_ms for each in visits)
    return {
        "interactive_ms": interactive,
        "p95_interactive_ms": interactive[min(len(interactive) - 1, int(0.95 * len(interactive)))],
        "median_interactive_ms": statistics.median(interactive),
        "median_painted_ms": statistics.median(each.painted_ms for each in visits),
        "median_shown_ms": statistics.median(each.shown_ms for each in visits),
        "median_transferred_bytes": statistics.median(each.transferred_bytes for each in visits),
    }
