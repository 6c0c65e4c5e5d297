"""Start of an import in a process of its own: what the shell and the studio share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from ziggurat.settings import Settings
from ziggurat.workspace.frameworks import worker_environment
from ziggurat.workspace.tasks import run_task

__all__ = ["TIME_LIMIT_S", "import_network"]

TIME_LIMIT_S: Final = 600.0
"""Longest time of an import: the comparison of a large network takes a minute on a small machine."""

_COMMAND: Final = (sys.executable, "-m", "ziggurat.compat.import_process")


def import_network(
    settings: Settings, request: Mapping[str, Any], *, time_limit_s: float | None = TIME_LIMIT_S
) -> dict[str, Any]:
    """Import a network of Caffe or Torch; return the report, with ``network``, the text of the network file.

    Args:
        settings: of this process.
        request: ``source``, a path, or ``text`` of a ``.prototxt``, or of a Lua file with ``tool`` as ``torch7``; and
            where they are given ``weights``, ``mean``, ``labels``, ``solver`` (paths), ``until``, ``classes``,
            ``input`` (such as ``1x28x28``), ``usual_input`` (if nothing else says it), ``color``, ``out`` (new folder)
            and ``compare`` (False to leave the comparison out).
        time_limit_s: how long it may take.

    Raises:
        ZigguratError: of the family of the import's own error; ``details["line"]`` is that of the old text.
    """
    return run_task(
        "import_network", request, time_limit_s=time_limit_s, environment=worker_environment(settings), command=_COMMAND
    )
