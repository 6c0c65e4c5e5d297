"""The names that the editor completes, and those that an error is compared with, are those of the contract."""

from __future__ import annotations

import re
from pathlib import Path

from ziggurat.errors import NetworkCodeError
from ziggurat.web.pages.new_model.looks import network_problem

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reference/network-contract.md").read_text(encoding="utf-8")
NAMES = (ROOT / "frontend/src/islands/editor/names.js").read_text(encoding="utf-8")


def _members() -> set[str]:
    tower = PAGE.partition("## `UserModel(Tower)`")[2].partition("### `@model_property`")[0]
    return {*re.findall(r"^\| `(\w+)` \|", tower, re.MULTILINE), *re.findall(r"^### `(\w+)`", tower, re.MULTILINE)}


def test_the_editor_completes_members_and_helpers_of_contract() -> None:
    written = set(re.findall(r"^const self = \{(.*?)^\};", NAMES, re.MULTILINE | re.DOTALL))
    (members,) = written
    assert set(re.findall(r"^  (\w+):", members, re.MULTILINE)) == _members()
    helpers = {name for name in re.findall(r"`digits\.(\w+)`", PAGE) if not name.startswith("GraphKeys")}
    assert helpers <= set(re.findall(r"^  (\w+):", NAMES, re.MULTILINE))


def test_a_misspelt_member_gets_the_nearest_name() -> None:
    assert len(_members()) == 19
    for member in _members() - {"x", "y"}:
        error = NetworkCodeError(f"It failed: AttributeError: 'UserModel' object has no attribute '{member}_'.")
        assert f"`self.{member}`" in network_problem(error, "")["advice"]


def test_an_error_without_a_known_line_has_none() -> None:
    error = NetworkCodeError("It failed.", received="somewhere", details={"line": 9})
    found = network_problem(error, "one\ntwo\n")
    assert (found["line"], found["lines"], found["rule"]) == (None, [], "It failed (received: somewhere).")
