"""Every Python block of the pages runs, in the order of its page; every command that a page names exists."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.nightly import some_nightly
from ziggurat.cli.main import root

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(REPOSITORY)
    for page in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    if "_build" not in page.parts
)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(text, *languages):
    """Yield (line of the first line, code) of the fenced blocks in these languages."""
    for match in FENCE.finditer(text):
        if match[1] in languages:
            yield text.count("\n", 0, match.start(2)) + 1, match[2]


def script_of(text):
    """Return the page's program: its blocks on the lines where the page has them, so that a traceback fits the page."""
    lines = [""] * (text.count("\n") + 1)
    for start, code in blocks(text, "python"):
        if not code.startswith("# not run: "):
            lines[start - 1 : start - 1 + code.count("\n")] = code.splitlines()
    return "\n".join(lines).rstrip() + "\n"


def needs_of(text):
    """Return the packages that ``<!-- needs: torch, tensorflow -->`` names."""
    return [name.strip() for found in re.findall(r"<!-- needs: (.*?) -->", text) for name in found.split(",")]


TEXTS = {str(page): (REPOSITORY / page).read_text() for page in PAGES}
SCRIPTS = {name: script for name, text in TEXTS.items() if (script := script_of(text)).strip()}
FIRST_PROGRAMS = ("docs/tutorials/your-first-pytorch-program.md", "docs/tutorials/a-training-program.md")
"""The pages whose programs start a framework on the build server too; those of the others do so at night."""


def run(script, folder, *options):
    path = folder / "page.py"
    path.write_text(script)
    return subprocess.run(
        [sys.executable, *options, path.name],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
    )


def is_long(page):
    return bool(needs_of(TEXTS[page])) and page not in FIRST_PROGRAMS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", some_nightly(SCRIPTS, nightly=[page for page in SCRIPTS if is_long(page)]))
def test_the_blocks_of_a_page_run(page, tmp_path):
    needs = needs_of(TEXTS[page])
    missing = [name for name in needs if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{page} needs {', '.join(missing)}")
    # A framework's own imports may warn; a page that needs none has no excuse.
    done = run(SCRIPTS[page], tmp_path, *([] if needs else ["-W", "error"]))
    assert done.returncode == 0, f"{page}, lines as on the page:\n{done.stderr}"


@pytest.mark.parametrize("page", TEXTS)
def test_every_make_target_that_a_page_names_exists(page):
    makefile = (REPOSITORY / "Makefile").read_text()
    named = re.findall(r"(?:^|`)make ([a-z]+)", TEXTS[page], re.MULTILINE)
    unknown = [target for target in named if not re.search(rf"^{target}:", makefile, re.MULTILINE)]
    assert unknown == []


@pytest.mark.parametrize("page", TEXTS)
def test_every_command_that_a_page_shows_exists(page):
    for _line, code in blocks(TEXTS[page], "bash", "sh", "shell"):
        for words in re.findall(r"^(?:\$ )?ziggurat ([^#\n]*)", code, re.MULTILINE):
            command, context = root, click.Context(root)
            for word in words.split():
                if not isinstance(command, click.Group) or not word[0].isalpha():
                    break
                assert word in command.list_commands(context), f"{page}: ziggurat {words}"
                command = command.get_command(context, word)


def test_a_traceback_names_the_line_of_the_page(tmp_path):
    text = "# Page\n\n```python\nvalue = 0\n```\n\nText.\n\n```python\n1 / value\n```\n"
    done = run(script_of(text), tmp_path)
    assert done.returncode == 1
    assert 'page.py", line 10, in <module>' in done.stderr


def test_a_block_that_is_not_run_says_why():
    text = "```python\n# not run: needs four machines\nserve()\n```\n"
    assert script_of(text).strip() == ""
