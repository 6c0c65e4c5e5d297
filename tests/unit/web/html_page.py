"""HTML of an answer as a tree, for assertions on elements and their states instead of on sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"))
_STEP = re.compile(r"([\w-]+)|#([\w.:-]+)|\.([\w-]+)|\[([\w-]+)(?:(\^?=)\"([^\"]*)\")?\]")


@dataclass
class Element:
    """An element.

    Args:
        tag: its name, in small letters.
        attributes: name → value; of one without a value, the empty text.
        content: elements and texts inside, in order.
    """

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    content: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text inside, with single spaces between words."""
        return re.sub(r"\s+", " ", " ".join(self._texts())).strip()

    def __getitem__(self, attribute: str) -> str:
        return self.attributes[attribute]

    def all(self, selector: str) -> list[Element]:
        """Return the elements inside that fit, as in CSS: ``tag#id.class[name="value"][name^="begin"] tag``."""
        first, *rest = re.findall(r"(?:\[[^\]]*\]|[^\s\[])+", selector)
        found = [each for each in self._elements() if each.fits(first)]
        for step in rest:
            found = list({id(each): each for outer in found for each in outer.all(step)}.values())
        return found

    def one(self, selector: str) -> Element:
        """Return the only element that fits."""
        found = self.all(selector)
        assert len(found) == 1, f"{selector} fits {len(found)} elements of: {self.text[:500]}"
        return found[0]

    def has(self, selector: str) -> bool:
        """Return whether an element fits."""
        return bool(self.all(selector))

    def fits(self, step: str) -> bool:
        """Return whether the element fits a selector without blanks."""
        for tag, name, style, attribute, relation, value in _STEP.findall(step):
            own = self.attributes.get(attribute or ("id" if name else "class"))
            if tag:
                fits = self.tag == tag
            elif name:
                fits = own == name
            elif style:
                fits = style in (own or "").split()
            else:
                begins = own is not None and own.startswith(value)
                fits = own is not None and (not relation or own == value or (relation == "^=" and begins))
            if not fits:
                return False
        return True

    def _elements(self) -> Iterator[Element]:
        for each in self.content:
            if isinstance(each, Element):
                yield each
                yield from each._elements()

    def _texts(self) -> Iterator[str]:
        for each in self.content:
            if isinstance(each, Element):
                yield from each._texts()
            else:
                yield each


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].content.append(made)
        if tag not in _VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].content.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        # Elements such as `p` may end without saying so.
        place = next((index for index in range(len(self.open) - 1, 0, -1) if self.open[index].tag == tag), 0)
        if place:
            del self.open[place:]

    def handle_data(self, data: str) -> None:
        self.open[-1].content.append(data)


def html_of(answer: Any) -> Element:
    """Return the HTML of an answer, or a text of HTML, as an element that holds all others."""
    reader = _Reader()
    reader.feed(answer if isinstance(answer, str) else answer.text)
    reader.close()
    return reader.open[0]


def errors_of(answer: Any) -> list[str]:
    """Return the text of each error that is shown: of alerts, and of the fields that they are about."""
    page = html_of(answer)
    return [each.text for each in (*page.all('[role="alert"]'), *page.all(".problem"))]
