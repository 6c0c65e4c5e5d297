"""Built-in executors."""

from ziggurat.jobs.executors.local import LocalExecutor

__all__ = ["LocalExecutor"]
