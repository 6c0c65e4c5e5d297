"""Owns the use cases that every face holds; ``Workspace`` is the one object."""

from ziggurat.workspace.job_status import JobStatus
from ziggurat.workspace.workspace import Workspace

__all__ = ["JobStatus", "Workspace"]
