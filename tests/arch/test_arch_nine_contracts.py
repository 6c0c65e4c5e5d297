"""Every framework passes all nine contracts of training: the suite has them all, and no framework leaves one out."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.nine_contracts import CONTRACTS, HELD_BY, NineContracts

REPOSITORY = Path(__file__).parents[2]


def test_the_suite_has_every_contract() -> None:
    numbers = {int(name.split("_")[2]) for name in dir(NineContracts) if name.startswith("test_contract_")}
    assert numbers == {*CONTRACTS} == {*range(1, 10)}


def test_every_framework_passes_the_whole_suite() -> None:
    assert {*HELD_BY} == {"null", "tensorflow", "torch"}
    for framework, path in HELD_BY.items():
        tree = ast.parse((REPOSITORY / path).read_text())
        suites = [
            node
            for node in tree.body
            if isinstance(node, ast.ClassDef) and "NineContracts" in [ast.unparse(base) for base in node.bases]
        ]
        assert suites, path
        for suite in suites:
            assert suite.name.startswith("Test"), "so that it is collected"
            changed = [node.name for node in suite.body if isinstance(node, ast.FunctionDef)]
            assert [name for name in changed if name.startswith("test_")] == []
        assert f"name = {framework!r}".replace("'", '"') in (REPOSITORY / path).read_text()
