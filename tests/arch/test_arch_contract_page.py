"""The page on the contract of network files is made from the source alone, and leaves nothing out."""

import ast
import subprocess
import sys
from pathlib import Path

from tools.docs_contract import contract_page
from tools.reference.source import attributes_in, call_text, class_in, functions_in, table_in

REPOSITORY = Path(__file__).parents[2]
BACKEND = REPOSITORY / "src/ziggurat/backends/tensorflow"

SOURCE = ast.parse(
    '''
class Shape:
    """A shape."""

    sides: int = 4
    """How many."""

    def area(self, height: float, width: float = 1.0) -> float:
        """Return it."""

names: dict[str, str] = {"a": "one", "b": str}
'''
)


def test_no_framework_is_needed():
    code = "import sys, tools.docs_contract as t; t.contract_page(); print('tensorflow' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "False\n"


def test_every_public_name_of_digits_is_on_the_page():
    page = contract_page()
    tree = ast.parse((BACKEND / "digits.py").read_text())
    (listed,) = [node.value for node in tree.body if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node)]
    names = ast.literal_eval(listed)
    assert len(names) > 15
    assert [name for name in names if name not in page] == []


def test_every_member_of_tower_is_in_its_table():
    page = contract_page()
    members = ["inference", "loss", "x", "y", "input_shape", "nclasses", "is_training", "is_inference", "summaries"]
    for name in [*members, "disableAutoDataParallelism"]:
        assert f"\n| `{name}` | " in page
    assert "### `gradientUpdate`\n\n```text\ngradientUpdate(grads)\n```" in page
    assert "### `fineTuneHook`\n\n```text\nfineTuneHook(net)\n```" in page
    assert "newest_x" not in page


def test_what_is_gone_says_what_to_use():
    row = (
        "| `tf.estimator` | TensorFlow dropped estimators: a `UserModel` with `inference` and `loss` does their work. |"
    )
    assert row in contract_page()


def test_a_source_is_read_without_being_imported():
    shape = class_in(SOURCE, "Shape")
    assert list(attributes_in(shape)) == [("sides", "How many.")]
    assert [call_text(function) for function in functions_in(shape)] == ["area(height, width=1.0)"]
    assert table_in(SOURCE, "names") == {"a": "one", "b": ""}
