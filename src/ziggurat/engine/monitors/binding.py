"""Default paths of callbacks and monitors: without an explicit path, they write to the job folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ziggurat.engine.callback import Callback, ProxyCallback
from ziggurat.errors import UsageError
from ziggurat.layout import JobFolder

__all__ = ["NeedsFolder", "bind_folder", "innermost", "missing_folder"]


class NeedsFolder:
    """A callback or monitor that keeps files, and may be made without saying where: ``ModelSaver()``."""

    def use_folder(self, folder: JobFolder) -> None:
        """Keep the files in the folder of this job, unless a place was given before."""
        raise NotImplementedError


def bind_folder(callbacks: Iterable[Callback], folder: JobFolder | Path) -> None:
    """Give every callback and monitor without a place of its own the folder of the job.

    Call it before the trainer is set up; ``default_monitors(folder)`` needs no call.

    Args:
        callbacks: callbacks, monitors, and wrappers around them.
        folder: the folder of the job.
    """
    job_folder = folder if isinstance(folder, JobFolder) else JobFolder(Path(folder))
    for callback in callbacks:
        inside: Any = innermost(callback)
        if isinstance(inside, NeedsFolder):
            inside.use_folder(job_folder)


def innermost(callback: Callback) -> Callback:
    """Return the callback inside all wrappers."""
    *_, last = _unwrapped(callback)
    return last


def missing_folder(owner: object) -> UsageError:
    """Return the error of a callback that was not told where to write."""
    name = type(owner).__name__
    return UsageError(
        f"{name} needs a folder to write to.",
        advice=f"Give it one, or call `place(callbacks, folder)` before training to give every callback its "
        f"place in a job folder. In a job of the studio {name} has one.",
    )


def _unwrapped(callback: Callback) -> Iterator[Callback]:
    yield callback
    while isinstance(callback, ProxyCallback):
        callback = callback.callback
        yield callback
