"""Route ``/metrics``: the studio in numbers, as Prometheus reads them (text format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastapi import Request, Response

from ziggurat import __version__
from ziggurat.server.dependencies import StudioDep
from ziggurat.server.errors import HTTPError, NotLoggedInError
from ziggurat.server.middleware import RequestCounts
from ziggurat.server.permissions import anyone, identity_of, new_router

__all__ = ["router"]

router = new_router(tags=["studio"])

_MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics", dependencies=[anyone()], response_class=Response, summary="Metrics for Prometheus")
def metrics(request: Request, studio: StudioDep) -> Response:
    """Return jobs by state, queue, machine and requests as Prometheus reads them.

    Answered to programs with a token, and to any program of this machine if the studio listens on it alone.
    """
    # A session is not enough: pages need no such route, and a scraper has no cookie.
    if identity_of(request).by != "token" and not request.app.state.gate.is_local(request):
        raise HTTPError(
            NotLoggedInError(
                "The request has no token and is not from this machine: metrics need one of both.",
                advice="Send a token as `Authorization: Bearer zig_…`; the scope `read` is enough.",
            )
        )
    totals, strip = studio.jobs.totals(), studio.machine.strip()
    text = _text([*_jobs(totals.states), *_machine(strip), *_requests(request.app.state.request_counts)])
    return Response(text, media_type=_MEDIA_TYPE)


_DEVICE: Final = {"load_ratio": "load", "memory_total_bytes": "memory_bytes", "memory_free_bytes": "free_bytes"}
"""End of a name → field of a device."""

_Sample = tuple[str, str, Mapping[str, Any], float]
"""Name, type, labels and value."""


def _jobs(states: Mapping[str, int]) -> Iterable[_Sample]:
    yield "ziggurat_info", "gauge", {"version": __version__}, 1
    for state, count in states.items():
        yield "ziggurat_jobs", "gauge", {"state": state}, count
    yield "ziggurat_queue_jobs", "gauge", {}, states.get("queued", 0)


def _machine(strip: Mapping[str, Any]) -> Iterable[_Sample]:
    yield "ziggurat_cpu_load_ratio", "gauge", {}, strip["cpu"]["load"]
    yield "ziggurat_cpu_cores", "gauge", {}, strip["cpu"]["cores"]
    for name in ("memory", "disk"):
        for part in ("total_bytes", "free_bytes"):
            yield f"ziggurat_{name}_{part}", "gauge", {}, strip[name][part]
    yield "ziggurat_disk_reserve_bytes", "gauge", {}, strip["disk"]["reserve_bytes"]
    for name, field in _DEVICE.items():
        for device in strip["devices"]:
            if device[field] is not None:
                labels = {"device": device["index"], "name": device["name"]}
                yield f"ziggurat_gpu_{name}", "gauge", labels, device[field]


def _requests(counts: RequestCounts) -> Iterable[_Sample]:
    answers = dict(counts.answers)
    for (method, status), count in sorted(answers.items()):
        yield "ziggurat_http_requests_total", "counter", {"method": method, "status": status}, count
    yield "ziggurat_http_request_seconds_total", "counter", {}, round(counts.seconds, 6)


def _text(samples: Iterable[_Sample]) -> str:
    lines, last = [], ""
    for name, kind, labels, value in samples:
        if name != last:
            lines.append(f"# TYPE {name} {kind}")
            last = name
        shown = ",".join(f'{key}="{_escaped(str(part))}"' for key, part in labels.items())
        lines.append(f"{name}{{{shown}}} {value}" if shown else f"{name} {value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
