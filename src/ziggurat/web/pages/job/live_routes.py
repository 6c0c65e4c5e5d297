"""Parts of a job's page that show what it records while it runs, and the images of its sample predictions."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Request, Response

from ziggurat.entities.sample_predictions import MOST_SAMPLES
from ziggurat.errors import NotThereError
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.job.live_view import LiveView
from ziggurat.web.rendering import is_part, part, see_other
from ziggurat.workspace.found_masks import mask_bytes

__all__ = ["router"]

router = new_router()

_PARTS: Final = {
    "machine-load": "job/machine_load.html",
    "sample-predictions": "job/sample_predictions.html",
    "events": "job/events.html",
    "images": "job/images.html",
}
_SAFE: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache"}
_KEPT: Final = {"Cache-Control": "private, max-age=86400"}


@router.get("/jobs/{job_id}/live/{name}", include_in_schema=False)
def live_part(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, name: str) -> Response:
    """Return one part of the page, as it is now; without scripts, the page itself."""
    if not is_part(request) or name not in _PARTS:
        return see_other(request, f"/jobs/{job_id}")
    try:
        job = studio.jobs.get(job_id)
    except NotThereError:  # deleted while this page was open: the rest of the page says so
        return Response(status_code=204)
    return part(request, _PARTS[name], job=job, live=LiveView(studio, job))


@router.get("/jobs/{job_id}/images/{name}", include_in_schema=False)
def logged_image(
    studio: StudioDep, _who: ViewerUser, job_id: str, name: Annotated[str, Path(max_length=200)]
) -> Response:
    """Return an image that the job logged."""
    return Response(studio.outputs.image(job_id, name), media_type="image/png", headers=_SAFE)


@router.get("/jobs/{job_id}/sample-predictions/{number}.png", include_in_schema=False)
def sample_image(
    studio: StudioDep, _who: ViewerUser, job_id: str, number: Annotated[int, Path(ge=0, lt=MOST_SAMPLES)]
) -> Response:
    """Return the image of a sample that is in no dataset of the studio."""
    return Response(studio.outputs.sample_image(job_id, number), media_type="image/png", headers=_KEPT)


@router.get("/jobs/{job_id}/sample-predictions/{number}/{name}.png", include_in_schema=False)
def sample_mask(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    number: Annotated[int, Path(ge=0, lt=MOST_SAMPLES)],
    name: Annotated[str, Path(pattern=r"^(actual|\d{1,18})$")],
) -> Response:
    """Return the true mask of a sample, or that which was predicted at a step."""
    found = studio.outputs.sample_predictions(job_id)
    if number >= len(found.samples):
        return Response(status_code=404)
    if name == "actual":
        kept = found.samples[number].label
    else:
        kept = next((each["predictions"][number] for each in found.records if each["step"] == int(name)), None)
    content = mask_bytes(kept.get("mask")) if isinstance(kept, dict) else b""
    if not content:
        return Response(status_code=404)
    return Response(content, media_type="image/png", headers={**_KEPT, "X-Content-Type-Options": "nosniff"})
