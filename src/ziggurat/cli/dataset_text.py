"""Text output for datasets: sentences and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ziggurat.cli.output import table
from ziggurat.workspace.datasets import DatasetRow, Page

__all__ = [
    "format_text",
    "formats_text",
    "guess_text",
    "page_text",
    "problems_text",
    "rows_text",
    "samples_text",
    "show_text",
]


def guess_text(found: Any) -> str:
    """Return what importers think of a source, and which guess `dataset create` takes."""
    nearest = "".join(f"\n{each}." for each in found.obstacles)
    if not found.guesses:
        return f"No format is recognized; `ziggurat dataset formats` lists those that can be read.{nearest}"
    rows = [(each.format, each.kind, f"{each.confidence:.0%}", _why(each)) for each in found.guesses]
    shown = table(rows, ("format", "kind", "sure", "why"))
    if found.chosen is None:
        return f"{shown}\nNone is taken by itself: choose one with `dataset create --format NAME`.{nearest}"
    where = f", for the folder {found.chosen.folder}, which alone holds data" if found.chosen.folder else ""
    return f"{shown}\n`dataset create` takes {found.chosen.format}{where}." if where else shown


def formats_text(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the formats that can be read and written."""
    rows = [
        (each["name"], each["title"], ", ".join(each["kinds"]), ", ".join(each["exports"]) or "-") for each in found
    ]
    return table(rows, ("format", "title", "kinds that are read", "kinds that are written"))


def format_text(one: Mapping[str, Any]) -> str:
    """Return one format with its options."""
    rows = [(each["name"], each["type"], json.dumps(each["default"]), each["help"]) for each in one["options"]]
    text = f"{one['title']}\n\n{table(rows, ('option', 'type', 'default', 'help'))}"
    names = ", ".join(one["export_options"])
    return f"{text}\n\nOptions of `ziggurat dataset export --format {one['name']}`: {names}." if names else text


def rows_text(rows: Sequence[DatasetRow]) -> str:
    """Return a list of datasets."""
    cells = [
        (row.name, row.kind, row.state, _splits(row.splits), str(row.classes), str(row.problems), row.folder)
        for row in rows
    ]
    return table(cells, ("name", "kind", "state", "samples", "classes", "problems", "folder"))


def show_text(content: Mapping[str, Any]) -> str:
    """Return what a dataset is."""
    image = content["image"]
    lines = [
        f"{content['name']}: {content['kind']}, {_splits(content['splits'])}",
        f"  folder     {content['folder']}",
        f"  id         {content['id'][:16]}",
        f"  stored in  {', '.join(content['stores'])}",
    ]
    if content["source"]:
        lines.append(f"  source     {content['source']['uri']} ({content['source']['format']})")
    if image:
        one_size = image["height_px"] and image["width_px"]
        size = f"{image['height_px']} x {image['width_px']}" if one_size else "of their own sizes"
        color = {1: "gray", 3: "color"}.get(image["channels"], "gray and color")
        lines.append(f"  images   {size}, {color}, {image['encoding']}")
    lines += [f"  made of    {parent['name']}: {' '.join(parent['changes'])}" for parent in content["parents"]]
    lines += [f"  warning    {text}" for text in content["warnings"]]
    if content["test_openings"]:
        times = "once" if content["test_openings"] == 1 else f"{content['test_openings']} times"
        lines.append(f"  test       opened {times}")
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
    shown = table(rows, ("sample", "key", "label", "size", "problems"))
    return f"{shown}\n{_place(page.offset, len(rows), page.total)}"


def problems_text(found: Sequence[Any], counts: Mapping[str, int], kind: str | None, offset: int) -> str:
    """Return some of the problems of a source, and how many there are."""
    rows = [(each.kind, each.key, "left out" if each.left_out else "", each.reason) for each in found]
    total = sum(counts.values()) if kind is None else counts.get(kind, 0)
    text = f"{table(rows, ('kind', 'key', '', 'reason'))}\n{_place(offset, len(rows), total)}"
    kinds = ", ".join(counts)
    return text if total or not kinds else f"{text}\nKinds of problems here: {kinds}."


def samples_text(page: Page, class_names: Sequence[str], *, by_problem: bool) -> str:
    """Return a page of samples, and where those are that a problem kept out."""
    text = page_text(page, class_names)
    if page.total or not by_problem:
        return text
    return f"{text}\nSamples that were left out are listed by: ziggurat dataset problems FOLDER"


def _why(guess: Any) -> str:
    where = f" (in the folder {guess.folder})" if guess.folder else ""
    lost = f"; would lose {guess.loses}" if guess.loses else ""
    return f"{guess.reason}{where}{lost}"


def _label(entry: Any, class_names: Sequence[str]) -> str:
    if entry.class_number is not None and 0 <= entry.class_number < len(class_names):
        return class_names[int(entry.class_number)]
    if entry.objects is not None:
        return f"{entry.objects} object{'' if entry.objects == 1 else 's'}"
    text = "" if entry.label is None else str(entry.label)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _place(offset: int, shown: int, total: int) -> str:
    return f"{offset + 1} to {offset + shown} of {total}" if shown else f"none of {total}"


def _splits(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{split} {count}" for split, count in counts.items())
