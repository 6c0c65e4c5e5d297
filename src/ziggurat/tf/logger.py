"""The folder of a training, and messages to the person who watches it: Tensorpack's ``logger``, without questions.

A submitted program has the folder of its job: ``set_logger_dir`` keeps that, and says so.
"""

from __future__ import annotations

import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from ziggurat.atomic import storage_errors
from ziggurat.errors import ConfigurationError
from ziggurat.logs import LogSetUp, set_up_logging

__all__ = [
    "auto_set_dir",
    "critical",
    "debug",
    "error",
    "exception",
    "get_logger_dir",
    "info",
    "setLevel",
    "set_logger_dir",
    "use_job_folder",
    "warn",
    "warning",
]

_LOGGER: Final = logging.getLogger("ziggurat.program")

info = _LOGGER.info
warning = _LOGGER.warning
warn = _LOGGER.warning
error = _LOGGER.error
critical = _LOGGER.critical
exception = _LOGGER.exception
debug = _LOGGER.debug
setLevel = _LOGGER.setLevel  # noqa: N816 - the name that logging gives it

_ACTIONS: Final = {"k": "keep", "d": "delete", "b": "backup", "n": "new", "q": "error"}

_folder: Path | None = None
_is_of_job = False
_output: LogSetUp | None = None


def get_logger_dir() -> str | None:
    """Return the folder of the training; None where none was chosen."""
    return None if _folder is None else str(_folder)


def use_job_folder(folder: Path) -> None:
    """Make the folder of a job the only one, whatever the program chooses."""
    global _folder, _is_of_job
    _folder, _is_of_job = folder, True


def set_logger_dir(
    dirname: str | os.PathLike[str],
    action: Literal["keep", "delete", "backup", "new", "error", "k", "d", "b", "n", "q"] | None = None,
) -> None:
    """Choose the folder for logs, curves and checkpoints. Nothing is ever asked.

    Args:
        dirname: the folder; made where it is missing.
        action: what to do where it exists and is not empty: ``keep`` it and write into it, ``delete`` its content,
            rename it as ``backup``, use a ``new`` folder with the time in its name, or raise an ``error``. Their first
            letters will do. None keeps it, and says so.

    Raises:
        ConfigurationError: for an unknown action, and where the folder is in use and the action is ``error``.
        StorageError: where it cannot be made, or not written to.
    """
    global _folder, _output
    if _is_of_job:
        info("This program was submitted: %s is its folder, and not %s.", _folder, dirname)
        return
    folder = Path(dirname).absolute()
    wanted = _ACTIONS.get(action or "", action)
    if wanted not in (None, *_ACTIONS.values()):
        raise ConfigurationError(
            f"`action` is {action!r}, not keep, delete, backup, new or error.", advice="None keeps the folder."
        )
    if folder.is_dir() and any(folder.iterdir()):
        folder = _cleared(folder, wanted or "keep")
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if _output is not None:
        _output.close()
    _output = set_up_logging(stream=sys.stderr, job_log=folder / "log.txt")
    _folder = folder
    info("The training writes to %s.", folder)


def auto_set_dir(action: Any = None, name: str | None = None) -> None:
    """Choose ``train_log/<program>`` below the current folder, with ``:name`` behind it where it is given.

    Args:
        action: as ``set_logger_dir`` takes it.
        name: tells trainings of one program apart.
    """
    program = Path(sys.argv[0] or "program").stem or "program"
    set_logger_dir(Path("train_log") / (program if not name else f"{program}:{name}"), action)


def _cleared(folder: Path, action: str) -> Path:
    """Return the folder to use in place of one that is in use."""
    stamp = datetime.now(UTC).strftime("%m%d-%H%M%S")
    if action == "error":
        raise ConfigurationError(
            f"The folder {folder} of the training is not empty.",
            advice="Choose another folder, or an `action`: keep, delete, backup, new.",
        )
    if action == "new":
        return folder.with_name(f"{folder.name}-{stamp}")
    if action == "backup":
        folder.rename(folder.with_name(f"{folder.name}-before-{stamp}"))
    elif action == "delete":
        _delete_content(folder)
    else:
        info("%s is not empty; the training goes on writing there.", folder)
    return folder


def _delete_content(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
