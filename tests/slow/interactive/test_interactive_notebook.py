"""The notebook of the examples runs cell by cell, in a workspace folder and in a studio."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import ziggurat as zig

NOTEBOOK = Path(__file__).parents[3] / "examples" / "five_lines.ipynb"


def test_every_cell_runs_and_shows_its_result(home, tmp_path, monkeypatch):
    where = "ZIGGURAT_SERVER" if "://" in home.title else "ZIGGURAT_WORKSPACE"
    monkeypatch.setenv(where, home.title)
    monkeypatch.chdir(tmp_path)
    cells = [each for each in json.loads(NOTEBOOK.read_text())["cells"] if each["cell_type"] == "code"]
    namespace: dict[str, Any] = {}

    shown = [value_of("".join(cell["source"]), namespace) for cell in cells]

    kinds = [zig.Connection, zig.Dataset, zig.Run, zig.Curves, zig.Evaluation, zig.Prediction, zig.Predictions]
    assert [type(each) for each in shown] == [*kinds, zig.Run, zig.Runs]
    assert shown[0].title == home.title
    for each in shown[1:]:
        html = each._repr_html_()
        assert html.startswith('<div class="ziggurat-result">')
        assert "<script" not in html
    assert "Confusion matrix" in shown[4]._repr_html_()
    assert "<svg" in shown[2]._repr_html_()
    assert "data:image/png;base64," in shown[5]._repr_html_()
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def value_of(code: str, namespace: dict[str, Any]) -> Any:
    """Execute a cell; return the value of its last line, as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    exec(compile(tree, "cell", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
