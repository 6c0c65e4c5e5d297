"""Parser for the directory listings that web servers such as Apache and nginx generate."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

__all__ = ["IndexEntry", "parse_index"]


class IndexEntry(NamedTuple):
    """One entry of a page.

    Args:
        name: of a file or folder, without what URLs escape.
        url: of it.
        is_folder: whether it is a folder.
        note: what the page says behind it: date and size, as the server writes them.
    """

    name: str
    url: str
    is_folder: bool
    note: str = ""


def parse_index(page: str, url: str) -> list[IndexEntry]:
    """Return the entries of a page, sorted by name; those that sort the list or lead up or elsewhere are left out.

    Args:
        page: HTML.
        url: of the page, after all redirects.
    """
    parser = _Links()
    parser.feed(page)
    parser.close()
    found = {}
    for reference, note in parser.links:
        entry = _entry(reference, note, url)
        if entry is not None:
            found.setdefault((entry.name, entry.is_folder), entry)
    return [found[name] for name in sorted(found)]


def _entry(reference: str, note: str, url: str) -> IndexEntry | None:
    try:
        target = urldefrag(urljoin(url, reference)).url
        parts, base = urlsplit(target), urlsplit(url)
    except ValueError:
        return None
    folder = base.path.rpartition("/")[0] + "/"
    inside = parts.path.startswith(folder) or unquote(parts.path).startswith(unquote(folder))
    if (parts.scheme, parts.netloc) != (base.scheme, base.netloc) or parts.query or not inside:
        return None
    rest = unquote(parts.path)[len(unquote(folder)) :]
    name = rest.rstrip("/")
    if name in ("", ".", "..") or "/" in name or "\0" in name or "\\" in name:
        return None
    return IndexEntry(name, target, rest.endswith("/"), " ".join(note.split()))


class _Links(HTMLParser):
    """Collects links, each with the text that follows it up to the next one."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[tuple[str, str]] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            reference = dict(attrs).get("href")
            self._is_inside = True
            if reference:
                self.links.append((reference.strip(), ""))

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "a"

    def handle_data(self, data: str) -> None:
        if self.links and not self._is_inside:
            reference, note = self.links[-1]
            self.links[-1] = (reference, (note + data)[:500])
