"""Reference pages: their list, and the check that each matches the code.

``python -m tools.docs_reference`` writes them to ``docs/reference``; with ``--check`` it compares and fails instead.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.docs_contract import contract_page, torch_contract_page
from tools.docs_rest import rest_page
from tools.reference.names import door_page, modules_page
from tools.reference.pages import (
    commands_page,
    docstring_page,
    errors_page,
    events_page,
    operations_page,
    settings_page,
    specs_page,
)
from tools.reference.tensorpack import tensorpack_page
from tools.structure_figures import structure_page

__all__ = ["PAGES", "Page", "main"]

NOTE = "% Made by `python -m tools.docs_reference`. Change the code's docstrings, not this page."


@dataclass(frozen=True)
class Page:
    """One page of the reference.

    Args:
        name: of the file, without its ending.
        module: the page is made where this module exists.
        make: returns the page's text.
    """

    name: str
    module: str
    make: Callable[[], str]


PAGES = [
    Page("commands", "ziggurat.cli.main", lambda: commands_page("ziggurat.cli.main")),
    Page("specs", "ziggurat.specs.describe", specs_page),
    Page(
        "python",
        "ziggurat.interactive",
        lambda: door_page("Python", "ziggurat.interactive", "Every name of `import ziggurat`, by what it is for."),
    ),
    Page("operations", "ziggurat.operations", operations_page),
    Page("structure-figures", "ziggurat", structure_page),
    Page("events", "ziggurat.events", events_page),
    Page("settings", "ziggurat.settings", settings_page),
    Page("errors", "ziggurat.errors", errors_page),
    Page(
        "job-folder",
        "ziggurat.layout",
        lambda: docstring_page("The job folder", "ziggurat.layout", "The one thing that both halves share."),
    ),
    Page(
        "dataflow",
        "ziggurat.dataflow",
        lambda: door_page("Data flow", "ziggurat.dataflow", "Every name of `ziggurat.dataflow`, by what it is for."),
    ),
    Page(
        "datasets",
        "ziggurat.datasets",
        lambda: door_page("Datasets", "ziggurat.datasets", "Every name of `ziggurat.datasets`, by what it is for."),
    ),
    Page(
        "dataset-folder",
        "ziggurat.records.manifest",
        lambda: _fenced_tables(
            modules_page(
                "The folder of a dataset",
                [f"ziggurat.records.{name}" for name in ("manifest", "schema", "objects")],
                "What `manifest.json` says, what the records mean, and the objects in the labels of a detection set. "
                "The other files of the folder stand on the page of the [job folder](job-folder.md).",
            )
        ),
    ),
    Page(
        "imgaug",
        "ziggurat.dataflow.imgaug",
        lambda: door_page(
            "Image augmentation", "ziggurat.dataflow.imgaug", "Every name of `ziggurat.dataflow.imgaug`."
        ),
    ),
    Page(
        "callbacks",
        "ziggurat.callbacks",
        lambda: door_page("Callbacks and monitors", "ziggurat.callbacks", "Every name of `ziggurat.callbacks`."),
    ),
    Page(
        "schedules",
        "ziggurat.schedules",
        lambda: modules_page("Schedules", ["ziggurat.schedules"], "How a hyperparameter changes over time."),
    ),
    Page("rest", "ziggurat.api.app", rest_page),
    Page("network-contract", "ziggurat.backends.tensorflow.tower", contract_page),
    Page("network-contract-pytorch", "ziggurat.backends.torch.tower", torch_contract_page),
    Page(
        "engine",
        "ziggurat.engine.trainer",
        lambda: modules_page(
            "Engine",
            [f"ziggurat.engine.{name}" for name in ("trainer", "program", "backend", "callback", "monitor")],
            "The loop, and the contracts of what it calls.",
        ),
    ),
    Page("tensorpack", "ziggurat.compat.tensorpack.names", tensorpack_page),
]


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or compare them with the code; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare and change nothing")
    parser.add_argument("--folder", type=Path, default=Path("docs/reference"), help="where the pages lie")
    parser.add_argument("--only", metavar="PAGE", choices=[page.name for page in PAGES], help="this page alone")
    options = parser.parse_args(arguments)
    stale = 0
    for page in PAGES:
        if options.only not in (None, page.name) or not _exists(page.module):
            continue
        path: Path = options.folder / f"{page.name}.md"
        text = _made(page)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if before == text:
            continue
        stale += 1
        if options.check:
            _complain(path, before, text)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{path}: written")
    return 1 if stale and options.check else 0


def _exists(module: str) -> bool:
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return False
    return found is not None and found.origin is not None


def _made(page: Page) -> str:
    try:
        return f"{NOTE}\n\n{page.make().strip()}\n"
    except Exception as error:
        error.add_note(f"while the page `{page.name}` of the reference was made")
        raise


def _fenced_tables(text: str) -> str:
    """Return a page whose tables of columns, which Markdown takes for headings, stand as they are."""
    return re.sub(r"^=+ =+\n.*?^=+ =+\n.*?^=+ =+$", r"```text\n\g<0>\n```", text, flags=re.DOTALL | re.MULTILINE)


def _complain(path: Path, before: str, now: str) -> None:
    lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), n=0, lineterm=""))
    first = next((line for line in lines if line.startswith("@@")), "@@ -1")
    line = first.split("-")[1].split(",")[0].split(" ")[0]
    print(f"{path}:{line}: a page of the reference says what the code says. Run `python -m tools.docs_reference`.")
    print("\n".join(lines[2:12]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
