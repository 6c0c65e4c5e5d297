"""Tabs of the new-model page for networks of other tools, from the entry-point group ``ziggurat.network_tabs``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ziggurat.entities import Identity
from ziggurat.plugins import available, load
from ziggurat.workspace.studio import Studio

__all__ = ["NETWORK_FILE", "NetworkTab", "TabFile", "network_tabs", "seal"]

NETWORK_FILE: Final = "network"
"""Field of the file whose text goes into the editor."""


@dataclass(frozen=True, kw_only=True)
class TabFile:
    """A file that a conversion takes beside the text.

    Args:
        name: key of its path in the request of a conversion.
        title: label.
        hint: formats, such as ``.caffemodel; optional``.
        accept: ending, or several with commas between.
    """

    name: str
    title: str
    hint: str
    accept: str


@dataclass(frozen=True, kw_only=True)
class NetworkTab:
    """A tab with an editor for a network of another tool.

    Args:
        name: of the tab in addresses and fields.
        title: label of the tab.
        text_title: what the text is called.
        file_name: usual name of such a file.
        files: that can be given; the one named ``network`` is the text itself.
        sample: a short text that shows the form.
        has_python_colors: whether the colors of Python, with comments from ``#`` on, fit the text.
        convert: takes studio, user and request (``text``, ``input``, ``usual_input``, paths of ``files``); returns the
            report of an import with ``network``, the text of the network file, and ``pretrained`` if it has weights.
    """

    name: str
    title: str
    text_title: str
    file_name: str
    files: tuple[TabFile, ...]
    sample: str
    has_python_colors: bool = False
    convert: Callable[[Studio, Identity, Mapping[str, Any]], dict[str, Any]]

    @property
    def text_field(self) -> str:
        """Name of the form's field with the old text."""
        return f"{self.name}_text"

    @property
    def input_field(self) -> str:
        """Name of the form's field with the size of the images."""
        return f"{self.name}_input"


@cache
def network_tabs() -> tuple[NetworkTab, ...]:
    """Return the tabs of all installed packages, by name."""
    names = sorted({plugin.name for plugin in available("network_tabs")})
    return tuple(load("network_tabs", name) for name in names)


def seal(tab: str, old_text: str, network_text: str) -> str:
    """Return a value that tells whether a network file is still what an old text was converted to."""
    whole = "\0".join((tab, *("\n".join(text.split("\r\n")).strip() for text in (old_text, network_text))))
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]
