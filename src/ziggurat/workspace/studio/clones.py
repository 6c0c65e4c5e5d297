"""Request that created a job, ready to be changed and sent again."""

from __future__ import annotations

import copy
from typing import Any

from ziggurat.entities import Job
from ziggurat.errors import JobError
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.new_jobs import JobRequest

__all__ = ["clone_request"]


def clone_request(jobs: Jobs, job_id: str) -> JobRequest:
    """Return the request that would make a job again; its parent is that job.

    Places that came from other jobs are named by the ids of these, so that they are found where they are now.

    Raises:
        JobError: where there is none of that id.
    """
    job = jobs.get(job_id)
    spec: dict[str, Any] = copy.deepcopy(dict(job.spec))
    found = [other for other in (_find(jobs, each) for each in job.depends_on) if other is not None]
    dataset = next((other.id for other in found if other.kind == "dataset"), "")
    model = next((other for other in found if other.kind == "train"), None)
    if dataset and isinstance(spec.get("data"), dict):
        spec["data"].pop("source", None)
    checkpoint = ""
    if model is not None:
        checkpoint = str(spec.pop("pretrained", None) or "").removeprefix(model.folder).rpartition("checkpoints/")[2]
    return JobRequest(
        spec=spec,
        dataset=dataset,
        model=model.id if model is not None else "",
        checkpoint=checkpoint,
        project=job.project,
        tags=job.tags,
        notes=job.notes,
        priority=job.priority,
        parent=job.id,
    )


def _find(jobs: Jobs, job_id: str) -> Job | None:
    try:
        return jobs.get(job_id)
    except JobError:  # deleted since
        return None
