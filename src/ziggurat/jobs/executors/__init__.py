"""Owns the executors that come with Ziggurat."""

from ziggurat.jobs.executors.local import LocalExecutor

__all__ = ["LocalExecutor"]
