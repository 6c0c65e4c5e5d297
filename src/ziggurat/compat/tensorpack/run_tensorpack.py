"""Execution of a Tensorpack program as the main program of a process.

``python -m ziggurat.compat.tensorpack.run_tensorpack SCRIPT``. The program finds our trainers, callbacks, layers and
data flows under Tensorpack's names, and TensorFlow 1 under its own. What is different is said on standard error, at the
end.
"""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from ziggurat.backends.tensorflow.namespace.proxy import users_frame
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tensorpack import compat, hook
from ziggurat.compat.tensorpack.notes import LEFT_OUT, NOTES
from ziggurat.compat.tensorpack.open_files import made_again_in_workers
from ziggurat.compat.tf1.files import ScriptFiles
from ziggurat.compat.tf1.report import Report
from ziggurat.compat.tf1.run_script import run_script
from ziggurat.dataflow.parallel.process_pool import import_first
from ziggurat.errors import ZigguratError
from ziggurat.tf.inputs.base import more_components_left_out

__all__ = ["main", "run_tensorpack"]

_COMMAND: Final = "ziggurat run-tensorpack"
_IN_WORKER: Final = "ziggurat.compat.tensorpack.in_worker"


class ProgramReport(Report):
    """What was adapted for a program, and which names of Tensorpack it uses that behave differently here.

    Args:
        script: its path, as the user wrote it.
        stream: where it is written; standard error if not given.
    """

    def __init__(self, script: str, stream: TextIO | None = None) -> None:
        super().__init__(script, stream, _COMMAND)
        self._program = Path(script)

    def summary(self) -> str:
        """Return the adapted names, and a line for each name of Tensorpack that is different or left out."""
        used = self._identifiers()
        lines = [f"  {name}: {note}" for name, note in sorted({**LEFT_OUT, **NOTES}.items()) if name in used]
        if not lines:
            return super().summary()
        count = "1 name" if len(lines) == 1 else f"{len(lines)} names"
        text = "\n".join(lines)
        return f"{super().summary()}{_COMMAND}: {count} of Tensorpack with a difference:\n{text}\n"

    def _identifiers(self) -> set[str]:
        """Return every name in the program's own file."""
        try:
            tree = ast.parse(self._program.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError):
            return set()
        found: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.alias):
                found.add(node.name.rsplit(".", 1)[-1])
        return found


def run_tensorpack(path: str, arguments: Sequence[str] = ()) -> int:
    """Execute a Tensorpack program as ``__main__`` and return its exit code.

    Args:
        path: the program; ``sys.argv[0]`` of it.
        arguments: the rest of ``sys.argv``.

    Raises:
        UsageError: where there is no such file.
    """
    return run_script(path, arguments, report=ProgramReport(path), surroundings=_with_tensorpack)


def main(words: Sequence[str] | None = None) -> int:
    """Execute the program that the command line names; return its exit code.

    Args:
        words: the program and its arguments; those of the process if not given.
    """
    script, *arguments = (sys.argv[1:] if words is None else words) or [""]
    try:
        return run_tensorpack(script, arguments)
    except ZigguratError as error:
        sys.stderr.write(f"Error: {error}\n")
        return error.exit_code


@contextmanager
def _with_tensorpack(files: ScriptFiles) -> Iterator[None]:
    """Let the program import Tensorpack, whose ``tfv1`` is what it gets for TensorFlow."""
    before: Any = compat.tfv1
    compat.tfv1 = files.tensorflow
    hook.install()
    with (
        more_components_left_out(),
        import_first(_IN_WORKER),
        made_again_in_workers(),
        _values_of_variables(),
        _statistics_as_list(),
        warnings.catch_warnings(),
    ):
        # The older forms of names are what such a program is made of.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="ziggurat")
        try:
            yield
        finally:
            compat.tfv1 = before
            hook.uninstall()


@contextmanager
def _values_of_variables() -> Iterator[None]:
    """Let the program get the value of a variable by ``get_tensor_by_name("NAME:0")``, and not its handle."""
    graph: Any = tf.Graph
    by_name = graph.get_tensor_by_name

    def get_tensor_by_name(self: Any, name: str) -> Any:
        found = by_name(self, name)
        frame = sys._getframe(1)
        if found.dtype != tf.resource or users_frame(frame) is not frame:
            return found
        variables = self.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
        return next((each.value() for each in variables if getattr(each, "handle", None) is found), found)

    graph.get_tensor_by_name = get_tensor_by_name
    try:
        yield
    finally:
        graph.get_tensor_by_name = by_name


@contextmanager
def _statistics_as_list() -> Iterator[None]:
    """Let the program read by ``json.load`` the lines of a ``stats.json`` as the list that Tensorpack wrote."""
    load = json.load

    def load_list(file: Any, **options: Any) -> Any:
        text = file.read()
        if Path(str(getattr(file, "name", ""))).name == "stats.json" and text.lstrip().startswith("{"):
            return [json.loads(line, **options) for line in text.splitlines() if line.strip()]
        return json.loads(text, **options)

    json.load = load_list
    try:
        yield
    finally:
        json.load = load


if __name__ == "__main__":
    sys.exit(main())
