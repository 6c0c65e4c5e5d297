"""``tools.docs_reference`` notices a page that the code has left behind, and turns docstrings into Markdown."""

import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tools.reference.describe import dataclass_table, signature_text
from tools.reference.markdown import first_sentence, render

REPOSITORY = Path(__file__).parents[2]


def docs_reference(*options):
    command = [sys.executable, "-m", "tools.docs_reference", *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_a_page_that_is_not_up_to_date_is_named_with_its_line(tmp_path):
    options = ("--only", "errors", "--folder", str(tmp_path))
    assert docs_reference(*options) == (0, f"{tmp_path / 'errors.md'}: written\n")
    assert docs_reference(*options, "--check") == (0, "")

    page = tmp_path / "errors.md"
    lines = page.read_text().splitlines(keepends=True)
    page.write_text("".join([*lines[:2], "# Mistakes\n", *lines[3:]]))
    code, output = docs_reference(*options, "--check")
    assert code == 1
    assert f"{page}:3: a page of the reference says what the code says." in output
    assert "-# Mistakes\n+# Errors\n" in output


def test_a_page_that_is_missing_is_named(tmp_path):
    code, output = docs_reference("--only", "events", "--folder", str(tmp_path), "--check")
    assert code == 1
    assert "events.md" in output
    assert not (tmp_path / "events.md").exists()


def test_a_docstring_becomes_markdown():
    text = """Give one number.

It looks like this::

    cost  0.5

    error  0.1

Args:
    tag: name of the <curve>,
        with its group.
    value, weight: numbers.

Returns:
    the number, ``a < b``.

>>> 1 + 1
2"""
    assert (
        render(text)
        == """Give one number.

It looks like this:

```text
cost  0.5

error  0.1
```

**Arguments**

- `tag`: name of the &lt;curve>, with its group.
- `value, weight`: numbers.

**Returns**

- the number, ``a < b``.

```pycon
>>> 1 + 1
2
```"""
    )
    assert first_sentence(text) == "Give one number."


class Mode(Enum):
    FAST = 1


def act(mode: Mode = Mode.FAST, *, name: str = "it's", call: object = print) -> "Path | None":
    """Act."""


def test_a_signature_has_no_addresses_and_no_names_of_modules():
    written = """(mode: Mode = Mode.FAST, *, name: str = "it's", call: object = print) -> Path | None"""
    assert signature_text(act) == written


@dataclass
class Point:
    """One place.

    Args:
        x: from the left, in px.
    """

    x: int
    y: "float | None" = None


def test_the_fields_of_a_dataclass_become_a_table():
    assert dataclass_table(Point).splitlines()[2:] == [
        "| `x` | `int` |  | from the left, in px. |",
        "| `y` | `float \\| None` | `None` |  |",
    ]
