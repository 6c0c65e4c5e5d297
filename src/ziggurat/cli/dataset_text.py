"""Owns the sentences and tables in which people read of data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ziggurat.cli.output import table
from ziggurat.workspace.datasets import DatasetRow, Page

__all__ = ["guess_text", "page_text", "rows_text", "show_text"]


def guess_text(found: Sequence[Any]) -> str:
    """Return what importers think of a source."""
    if not found:
        return "No format is recognised; `ziggurat dataset formats` lists those that can be read."
    rows = [(each.format, each.kind, f"{each.confidence:.0%}", each.reason) for each in found]
    return table(rows, ("format", "kind", "sure", "why"))


def rows_text(rows: Sequence[DatasetRow]) -> str:
    """Return a list of data sets."""
    cells = [
        (row.name, row.kind, row.state, _splits(row.splits), str(row.classes), str(row.problems), row.folder)
        for row in rows
    ]
    return table(cells, ("name", "kind", "state", "samples", "classes", "problems", "folder"))


def show_text(content: Mapping[str, Any]) -> str:
    """Return what a data set is."""
    image = content["image"]
    lines = [
        f"{content['name']}: {content['kind']}, {_splits(content['splits'])}",
        f"  folder     {content['folder']}",
        f"  id         {content['id'][:16]}",
    ]
    if content["source"]:
        lines.append(f"  source     {content['source']['uri']} ({content['source']['format']})")
    if image:
        size = f"{image['height_px']} x {image['width_px']}" if image["height_px"] else "of their own sizes"
        colour = {1: "grey", 3: "colour"}.get(image["channels"], "grey and colour")
        lines.append(f"  pictures   {size}, {colour}, {image['encoding']}")
    lines += [f"  made of    {parent['name']}: {' '.join(parent['changes'])}" for parent in content["parents"]]
    lines += [f"  warning    {text}" for text in content["warnings"]]
    if content["test_openings"]:
        lines.append(f"  test       opened {content['test_openings']} times")
    if content["problems"]:
        lines += ["", table([(kind, str(count)) for kind, count in content["problems"].items()], ("problem", "count"))]
    if content["classes"]:
        splits = list(content["splits"])
        found = content["classes"]
        rows = [(str(each["number"]), each["name"], *(str(each[split]) for split in splits)) for each in found]
        lines += ["", table(rows, ("class", "name", *splits))]
    return "\n".join(lines)


def page_text(page: Page, class_names: Sequence[str]) -> str:
    """Return a page of samples."""
    rows: list[tuple[str, ...]] = []
    for entry in page.entries:
        size = f"{entry.height_px} x {entry.width_px}" if entry.height_px else ""
        kinds = ", ".join(sorted({problem.kind for problem in page.problems.get(entry.key, ())}))
        rows.append((f"{entry.split}/{entry.row}", entry.key, _label(entry, class_names), size, kinds))
    first = page.offset + 1 if page.entries else 0
    return (
        table(rows, ("sample", "key", "label", "size", "problems"))
        + f"\n{first} to {page.offset + len(page.entries)} of {page.total}"
    )


def _label(entry: Any, class_names: Sequence[str]) -> str:
    if entry.class_number is not None and 0 <= entry.class_number < len(class_names):
        return class_names[int(entry.class_number)]
    if entry.objects is not None:
        return f"{entry.objects} object{'' if entry.objects == 1 else 's'}"
    text = "" if entry.label is None else str(entry.label)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _splits(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{split} {count}" for split, count in counts.items())
