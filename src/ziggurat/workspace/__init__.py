"""Use cases shared by shell, REST and pages; ``Workspace`` is the entry point."""

from ziggurat.workspace.job_folders import JobStatus
from ziggurat.workspace.workspace import Workspace

__all__ = ["JobStatus", "Workspace"]
