"""Page of the machines: nodes with their places and jobs, and the queue with the reason of each job."""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response

from ziggurat.layout import RAY_TOKEN_FILE
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.machines.view import differing_versions, node_views
from ziggurat.web.rendering import page

__all__ = ["router"]

router = new_router()

_QUEUED: Final = 20


@router.get("/machines", include_in_schema=False)
def machines(request: Request, studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the page; it works without scripts."""
    nodes, queue = studio.jobs.nodes(), studio.jobs.queue_page(_QUEUED)
    return page(
        request,
        "machines/page.html",
        nodes=node_views(nodes, studio.jobs.running()),
        problem=studio.jobs.node_problem(),
        differing=differing_versions(nodes),
        queue=queue.jobs,
        waiting=queue.total,
        expected={job.id: studio.jobs.expected_start(job.id) for job in queue.jobs},
        address=studio.settings.ray_address,
        token=str(studio.root / RAY_TOKEN_FILE),
    )
