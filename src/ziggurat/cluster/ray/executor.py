"""Studio side of the bridge to a Ray cluster; it loads no Ray."""

from __future__ import annotations

import importlib.util
import sys

from ziggurat.cluster.bridged_executor import BridgedExecutor
from ziggurat.errors import MissingDependencyError
from ziggurat.jobs.executor import ExecutorOptions

__all__ = ["ray_executor"]


def ray_executor(options: ExecutorOptions) -> BridgedExecutor:
    """Return the executor of the Ray cluster at ``10.0.0.1:6379``, say; ``auto`` is the one of this machine.

    Of the environment, workers on the nodes get what begins with ``ZIGGURAT_``.

    Raises:
        MissingDependencyError: if Ray is not installed.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingDependencyError("ray", extra="ray", purpose="jobs on other machines")
    environment, workspace = options.environment, options.workspace
    cache = str(options.cache_gib << 30)
    return BridgedExecutor(
        "ray",
        (sys.executable, "-m", "ziggurat.cluster.ray", options.address or "auto", str(workspace), cache),
        environment,
        variables={name: value for name, value in environment.items() if name.startswith("ZIGGURAT_")},
        workspace=workspace,
        log=workspace / "logs" / "ray.log",
    )
