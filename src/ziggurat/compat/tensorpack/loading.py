"""Older names of loaders and of functions for checkpoints."""

from __future__ import annotations

from typing import Any

from ziggurat.errors import MissingCheckpointError
from ziggurat.tf import logger
from ziggurat.tf.loading import JustCurrentSession, SaverRestore
from ziggurat.tf.sessions import SessionInit
from ziggurat.tf.varmanip import get_checkpoint_path, load_checkpoint_vars

__all__ = [
    "CheckpointReaderAdapter",
    "MismatchLogger",
    "TryResumeTraining",
    "dump_chkpt_vars",
    "get_savename_from_varname",
]

dump_chkpt_vars = load_checkpoint_vars
"""Older name of ``load_checkpoint_vars``."""


def TryResumeTraining() -> SessionInit:  # noqa: N802 - Tensorpack's name
    """Return a loader of the newest checkpoint in the logger's folder; one that loads nothing where there is none."""
    folder = logger.get_logger_dir()
    if folder is None:
        return JustCurrentSession()
    try:
        return SaverRestore(get_checkpoint_path(folder))
    except MissingCheckpointError:
        logger.info("There is no checkpoint in %s.", folder)
        return JustCurrentSession()


class CheckpointReaderAdapter:
    """A reader of checkpoints that takes names with and without ``:0``, and gives them with it.

    Args:
        reader: of ``tf.train.NewCheckpointReader``.
    """

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._shapes = {f"{name}:0": shape for name, shape in reader.get_variable_to_shape_map().items()}

    def get_variable_to_shape_map(self) -> dict[str, Any]:
        """Return name → shape."""
        return self._shapes

    def get_tensor(self, name: str) -> Any:
        """Return the array of a name."""
        return self._reader.get_tensor(name.removesuffix(":0"))

    def has_tensor(self, name: str) -> bool:
        """Return whether there is such a name."""
        return f"{name.removesuffix(':0')}:0" in self._shapes


class MismatchLogger:
    """Says which names are in one place and not in another.

    Args:
        exists: where they are.
        nonexists: where they are not.
    """

    def __init__(self, exists: str, nonexists: str) -> None:
        self._places = exists, nonexists
        self._names: list[str] = []

    def add(self, name: str) -> None:
        """Take a name."""
        self._names.append(name)

    def log(self) -> None:
        """Write a warning, if there are any."""
        if self._names:
            exists, nonexists = self._places
            names = ", ".join(sorted(self._names))
            logger.warning("In the %s but not in the %s: %s", exists, nonexists, names)


def get_savename_from_varname(
    varname: str, varname_prefix: str | None = None, savename_prefix: str | None = None
) -> str:
    """Return the name in a checkpoint of a variable.

    Args:
        varname: name of the variable.
        varname_prefix: what is taken from its beginning.
        savename_prefix: what is put in its place.
    """
    name = varname.removeprefix(f"{varname_prefix}/") if varname_prefix else varname
    return f"{savename_prefix}/{name}" if savename_prefix else name
