"""Interactive shell in a running training process, opened at the end of an epoch."""

from __future__ import annotations

import code
import pdb
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from ziggurat.engine.callback import Callback, NeedsFolder
from ziggurat.engine.monitor import say
from ziggurat.errors import UnknownNameError
from ziggurat.layout import JobFolder

__all__ = ["InjectShell"]


class InjectShell(Callback, NeedsFolder):
    """Opens a shell at the end of an epoch when a certain file exists; there ``trainer`` is the trainer.

    Training goes on when the shell is left and opens it again after the next epoch, until the file is removed. It is
    removed at the end. A training without a terminal says so instead of waiting.

    Args:
        file: the file; a relative name is taken in the folder of the job where ``bind_folder`` gave one, and in the
            current folder otherwise.
        shell: ``ipython`` (Python's own where IPython is not installed), ``python`` or ``pdb``.
        stdin: where the person types; None for the standard input.
        open_shell: another shell; takes a dict of names.
    """

    def __init__(
        self,
        file: str | Path = "INJECT_SHELL.tmp",
        shell: str = "ipython",
        *,
        stdin: TextIO | None = None,
        open_shell: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        if shell not in _SHELLS:
            raise UnknownNameError("shell", shell, _SHELLS)
        self.path = Path(file)
        self._stdin = stdin
        self._open = open_shell or _SHELLS[shell]
        self._is_told = False

    def use_folder(self, folder: JobFolder) -> None:
        """Look for a relative name in this job."""
        self.path = folder.path / self.path

    def trigger(self) -> None:
        """Open the shell where the file is there."""
        if not self.path.exists():
            return
        stdin = self._stdin or sys.stdin
        if stdin is not None and stdin.isatty():
            self._open({"trainer": self.trainer, "self": self})
        elif not self._is_told:
            self._is_told = True
            say(
                self.trainer,
                f"{self.path.name} asks for a shell, but standard input is not a terminal.",
                level="warning",
            )

    def after_train(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def _open_ipython(names: dict[str, Any]) -> None:
    try:
        from IPython import embed  # pyright: ignore[reportMissingImports]
    except ImportError:
        _open_python(names)
    else:
        embed(user_ns=names, colors="neutral")


def _open_python(names: dict[str, Any]) -> None:
    code.interact(banner="The training waits; `trainer` is the trainer. Ctrl-D lets it go on.", local=names)


def _open_pdb(names: dict[str, Any]) -> None:
    trainer = names["trainer"]  # noqa: F841 - for the person to look at
    pdb.set_trace()


_SHELLS: dict[str, Callable[[dict[str, Any]], object]] = {
    "ipython": _open_ipython,
    "python": _open_python,
    "pdb": _open_pdb,
}
