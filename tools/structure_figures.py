"""Figures of the structure, for the page of the reference: counted in the source, with the limits of the walks."""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Final

from tools.reference.markdown import table
from tools.source_tree import SourceFile, read_package

__all__ = ["WALKS", "structure_page"]

WALKS: Final = {"images": 173, "request": 72, "prediction": 56}
"""Walk → own modules that it may enter; a limit only falls, and never by joining files."""

_ABOUT: Final = {
    "images": "80 images to a dataset, one epoch by the NumPy backend to `events.jsonl`",
    "request": "a training request from the page to the queue",
    "prediction": "one image predicted from the page, in the studio",
}

_INTRO = """Counted in the source. `make check` fails where this page is not true (`make fix` counts anew); a test takes
the three walks and holds them to their limits. A module counts as entered when one of its functions runs outside of an
import, in any process of the walk. Lines are rounded to 1,000, modules to 10, so that the page changes seldom."""


def structure_page() -> str:
    """Return the page."""
    files, _ = read_package(Path(__file__).resolve().parents[1])
    own = [each for each in files if not each.is_network]
    lines = [each.text.count("\n") for each in own]
    rows = [
        ("modules, without the network files of the zoo", f"{round(len(own), -1):,}"),
        ("lines", f"{round(sum(lines), -3):,}"),
        ("lines of a module, median", f"{round(median(lines), -1):g}"),
        ("lines of comments", f"{100 * sum(map(_comments, own)) / sum(lines):.1f} %"),
        ("families: three or more modules of a package whose names begin alike", str(_families(own))),
        *((f"own modules entered: {_ABOUT[name]}", f"at most {limit}") for name, limit in WALKS.items()),
    ]
    return "\n\n".join(["# Structure in figures", _INTRO, table(("figure", "now"), rows)])


def _comments(file: SourceFile) -> int:
    return sum(token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(file.text).readline))


def _families(files: Iterable[SourceFile]) -> int:
    counts: Counter[tuple[str, str]] = Counter()
    for each in files:
        package, _, name = each.module.rpartition(".")
        if "_" in name and not each.is_package:
            counts[package, name.partition("_")[0]] += 1
    return sum(count >= 3 for count in counts.values())
