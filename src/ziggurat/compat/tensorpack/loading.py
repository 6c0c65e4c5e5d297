"""Older names of loaders and of functions for checkpoints."""

from __future__ import annotations

from ziggurat.errors import MissingCheckpointError
from ziggurat.tf import logger
from ziggurat.tf.loading import JustCurrentSession, SaverRestore
from ziggurat.tf.sessions import SessionInit
from ziggurat.tf.varmanip import get_checkpoint_path, load_checkpoint_vars

__all__ = ["TryResumeTraining", "dump_chkpt_vars", "get_savename_from_varname"]

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
