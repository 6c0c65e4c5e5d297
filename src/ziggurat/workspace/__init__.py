"""Use cases shared by shell, REST and pages; ``Workspace`` is what they hold."""

from ziggurat.workspace.job_folders import JobStatus
from ziggurat.workspace.workspace import Workspace, open_folders

__all__ = ["JobStatus", "Workspace", "open_folders"]
