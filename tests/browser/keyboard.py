"""Keyboard navigation for browser tests: focus named elements, checking that the focus is visible."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

__all__ = ["Focus", "Keyboard"]

_FOCUS = """() => {
    const element = document.activeElement;
    if (!element || element === document.body || element === document.documentElement) return null;
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    const isBox = element.matches("input[type=radio], input[type=checkbox]");
    const frame = isBox ? element.closest(".segmented > label, .option, .segment, .chip") : null;
    const shown = [element, frame, frame?.querySelector("label")].filter(Boolean).map((each) => getComputedStyle(each));
    const text = (nodes) => nodes.map((node) => node.textContent).join(" ");
    const named = (element.getAttribute("aria-labelledby") ?? "").split(" ").filter(Boolean);
    const name = element.getAttribute("aria-label")
        || text(named.map((id) => document.getElementById(id)).filter(Boolean))
        || text([...(element.labels ?? [])]) || element.textContent || element.value || "";
    return {
        id: element.id,
        tag: element.localName,
        name: name.trim().replace(/\\s+/g, " "),
        is_seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
        is_marked: shown.some((each) => each.outlineStyle !== "none" || each.boxShadow !== "none"),
        in_dialog: Boolean(element.closest("dialog")),
    };
}"""


@dataclass(frozen=True)
class Focus:
    """What has the focus.

    Args:
        id: of the element.
        tag: of the element.
        name: by which people know it.
        is_seen: whether it stands in the window.
        is_marked: whether one sees that it has the focus.
        in_dialog: whether it is part of a dialog.
    """

    id: str
    tag: str
    name: str
    is_seen: bool
    is_marked: bool
    in_dialog: bool


class Keyboard:
    """The keys of a page; nothing here uses the mouse.

    Args:
        page: that is gone through.
    """

    def __init__(self, page: Page) -> None:
        self._page = page

    def focus(self) -> Focus | None:
        """Return what has the focus; None where it is at the whole page."""
        found: dict[str, Any] | None = self._page.evaluate(_FOCUS)
        return None if found is None else Focus(**found)

    def held(self) -> Focus:
        """Return what has the focus, which must be something that one sees and that is marked."""
        found = self.focus()
        assert found is not None, "the focus is lost to the whole page"
        assert found.is_seen, f"the focus is out of sight: {found}"
        assert found.is_marked, f"one does not see the focus: {found}"
        return found

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self._page.keyboard.press(key)

    def write(self, text: str) -> None:
        """Write over what stands in the field that has the focus."""
        self.press("Control+a")
        self._page.keyboard.type(text)

    def reach(self, name: str, *, tag: str = "", key: str = "Tab", most: int = 150) -> Focus:
        """Press a key until what has a name has the focus, which must be seen at every step.

        Args:
            name: pattern of the whole name.
            tag: of the element; empty for any.
            key: ``Tab``, ``Shift+Tab`` or an arrow.
            most: presses.
        """
        passed: list[str] = []
        for _ in range(most):
            self.press(key)
            if self.focus() is None:  # from the end of a page the focus goes through the browser's own controls
                passed.append("(page)")
                assert passed.count("(page)") < 3, f"{name!r} was not reached; passed: {passed}"
                continue
            found = self.held()
            if re.fullmatch(name, found.name) and tag in ("", found.tag):
                return found
            passed.append(found.name[:40])
        raise AssertionError(f"{name!r} was not reached; passed: {passed}")

    def round(self, most: int = 60) -> list[Focus]:
        """Return what Tab goes through until it is where it was."""
        first, passed = self.held(), []
        for _ in range(most):
            self.press("Tab")
            found = self.focus()
            if found is None:
                continue
            passed.append(found)
            if found == first:
                return passed
        raise AssertionError(f"Tab never came back to {first.name!r}")
