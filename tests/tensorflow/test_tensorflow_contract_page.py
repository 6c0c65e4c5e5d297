"""What the page on the contract of network files names is there: names, imports, and its example trains."""

import re
from typing import Any

import numpy as np
import pytest
from digits_jobs import program_of, small_spec

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tools.docs_contract import GIVEN_NAMES, IMPORTS, OLDER_NAMES, PROMISED, contract_page
from ziggurat.backends.tensorflow.network_file import load_network

PAGE = contract_page()
NETWORK = """
class UserModel(Tower):
    inference = loss = None
    value = {}
"""


def seen_by_a_file(expression: str, above: str = "") -> Any:
    """Return the value of an expression in a network file, below some lines of it."""
    return load_network(f"{above}\n{NETWORK.format(expression)}", "network.py").value  # pyright: ignore


@pytest.mark.parametrize("name", GIVEN_NAMES)
def test_a_name_is_there_without_an_import(name: str) -> None:
    assert f"| `{name}` | " in PAGE
    assert seen_by_a_file(name) is not None


@pytest.mark.parametrize("line", IMPORTS)
def test_an_import_gives_what_is_there_without_it(line: str) -> None:
    assert line in PAGE
    imported = re.split(r"\bas |\bimport ", line)[-1]
    for name in imported.split(", "):
        found = seen_by_a_file(name, line)
        if name in GIVEN_NAMES:
            assert found is seen_by_a_file(name)
        assert found is not None


@pytest.mark.parametrize("module", PROMISED)
def test_the_names_of_a_module_are_there(module: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{module}` | `"))
    for name in PROMISED[module].split():
        assert f"`{name}`" in row
        assert seen_by_a_file(f"{module}.{name}") is not None


def test_older_names_are_the_newer_ones() -> None:
    rows = re.findall(r"^\| `(tf\.[\w.]+)` \| `(tf\.[\w.]+)` \|$", PAGE, re.MULTILINE)
    assert set(OLDER_NAMES.items()) < set(rows)
    takes_older_arguments = {"tf.image_summary", "tf.scalar_summary", "tf.histogram_summary"}
    for old, new in rows:
        if old not in takes_older_arguments:
            assert seen_by_a_file(old) is seen_by_a_file(new), old
    assert all(callable(seen_by_a_file(name)) for name in takes_older_arguments)


def test_contrib_has_the_parts_on_the_page() -> None:
    (parts,) = re.findall(r"^It has (`.*`)\.$", PAGE, re.MULTILINE)
    assert len(parts.split(", ")) > 8
    for part in parts.split(", "):
        assert seen_by_a_file(f"tf.contrib.{part.strip('`')}") is not None


@pytest.mark.parametrize("name", re.findall(r"^\| `(tf\.[\w.]+)` \| [A-Z]", PAGE, re.MULTILINE))
def test_what_is_gone_raises_what_the_page_says(name: str) -> None:
    said = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` | ")).split(" | ")[1].rstrip(" |")
    with pytest.raises(Exception, match=re.escape(said)):
        seen_by_a_file(name)


def test_the_example_trains() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    program, data = program_of(small_spec(example))
    costs = [program.step(batch, ("cost", "accuracy"))["cost"] for batch, _ in zip(data.train, range(20), strict=False)]
    assert np.mean(costs[-5:]) < np.mean(costs[:5])
