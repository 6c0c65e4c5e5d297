"""No code outside `ziggurat.tasks` decides by the name of a task: what depends on a task is asked of it."""

import ast
from pathlib import Path

import ziggurat
from ziggurat.records.schema import KINDS
from ziggurat.tasks import tasks

SOURCE = Path(ziggurat.__file__).parent
NAMES = set(tasks()) - set(KINDS)  # what is also a kind of dataset may be compared as that


def constants(node):
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def compared_names(text):
    """Return (line, name) of each comparison, choice by membership, match or key with the name of a task."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare | ast.MatchValue):
            found += [(node.lineno, name) for name in constants(node) & NAMES]
        elif isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            found += [(node.lineno, name) for name in keys & NAMES if len(keys & NAMES) > 1]
    return found


def test_task_names_are_compared_in_tasks_only():
    files = [path for path in SOURCE.rglob("*.py") if "tasks" not in path.relative_to(SOURCE).parts[:1]]
    found = {
        f"{path.relative_to(SOURCE)}:{line}": name
        for path in files
        for line, name in compared_names(path.read_text(encoding="utf-8"))
    }
    assert found == {}


def test_a_planted_comparison_is_seen():
    assert compared_names("if job.task == 'classification':\n    pass") == [(1, "classification")]
    assert compared_names("T = {'regression': 1, 'pairs': 2}") == [(1, name) for name in ("regression", "pairs")] or (
        len(compared_names("T = {'regression': 1, 'pairs': 2}")) == 2
    )
    assert compared_names("if kind == 'segmentation':\n    pass") == []
