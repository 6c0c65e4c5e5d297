"""About pages of this installation: version, machine, frameworks, diagnostics, disk usage, licenses."""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from fastapi import Request, Response
from fastapi.responses import PlainTextResponse

from ziggurat.entities.backend_info import backend_infos
from ziggurat.operations import weights
from ziggurat.server.dependencies import AdminUser, StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import NotFoundError
from ziggurat.server.permissions import new_router
from ziggurat.web.caches import of_application
from ziggurat.web.pages.about.licences import licence_text, own_licence, page_licences, python_licences
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.doctor import Finding, examine
from ziggurat.workspace.studio import Studio

__all__ = ["DoctorLook", "disk_use", "router"]

router = new_router()


_WITHIN_S: Final = 5.0
_PARTS: Final = {
    "datasets": "Datasets",
    "jobs": "Trainings and evaluations",
    "weights": "Pretrained weights",
    "uploads": "Uploads without a dataset",
    "cache": "Thumbnails",
    "features": "Features of samples",
    "temporary": "Graphs and measurements",
    ".trash": "Deleted, can be restored",
    "logs": "Logs",
}


@dataclass(frozen=True, kw_only=True)
class DiskPart:
    """A part of the workspace.

    Args:
        folder: its name there.
        title: what is in it.
        size_bytes: of its files.
        files: how many they are.
        is_whole: whether all were looked at; if not, it is at least so much.
    """

    folder: str
    title: str
    size_bytes: int
    files: int
    is_whole: bool


def disk_use(
    root: Path, *, within_s: float = _WITHIN_S, monotonic: Callable[[], float] = time.monotonic
) -> list[DiskPart]:
    """Return the parts of a workspace that are there.

    Args:
        root: folder of the workspace.
        within_s: how long to look at most; what is not reached by then is not counted.
        monotonic: seconds of a clock that never goes back.
    """
    last = monotonic() + within_s
    found = []
    for folder, title in _PARTS.items():
        if (root / folder).is_dir():
            size_bytes, files, is_whole = _measured(root / folder, lambda: monotonic() <= last)
            found.append(DiskPart(folder=folder, title=title, size_bytes=size_bytes, files=files, is_whole=is_whole))
    return found


def _measured(folder: Path, may_go_on: Callable[[], bool]) -> tuple[int, int, bool]:
    size_bytes, files, waiting = 0, 0, [str(folder)]
    while waiting:
        if not may_go_on():
            return size_bytes, files, False
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        size_bytes += entry.stat(follow_symlinks=False).st_size
                        files += 1
        except OSError:  # deleted meanwhile, or not ours to look at
            continue
    return size_bytes, files, True


@router.get("/about", include_in_schema=False)
def about(request: Request, studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the page; what takes seconds to find out is asked for after it."""
    return _page(request, studio)


@router.get("/about/frameworks", include_in_schema=False)
def frameworks(request: Request, studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the state of each framework, found in separate processes; the first check takes seconds."""
    studio.machine.frameworks.find()
    if is_part(request):
        return part(request, "about/frameworks.html", frameworks=_frameworks(studio))
    return _page(request, studio)


@router.post("/about/frameworks", include_in_schema=False)
def look_again(request: Request, studio: StudioDep, _who: AdminUser) -> Response:
    """Check each framework again, after something was installed."""
    studio.machine.frameworks.forget()
    return frameworks(request, studio, _who)


@router.get("/about/doctor", include_in_schema=False)
def doctor(request: Request, studio: StudioDep, _who: AdminUser) -> Response:
    """Return what ``ziggurat doctor`` found so far."""
    look = doctor_look(request)
    if is_part(request):
        return part(request, "about/doctor.html", is_looking=look.is_looking, findings=look.findings)
    return _page(request, studio)


@router.post("/about/doctor", include_in_schema=False)
def start_doctor(request: Request, studio: StudioDep, _who: AdminUser) -> Response:
    """Start the diagnostics; they take longer than a request should, so it does not wait for them."""
    doctor_look(request).start()
    return doctor(request, studio, _who) if is_part(request) else see_other(request, "/about/doctor")


@router.get("/about/disk", include_in_schema=False)
def disk(request: Request, studio: StudioDep, _who: ViewerUser) -> Response:
    """Return how much of the disk each part of the workspace uses."""
    parts = disk_use(studio.root)
    if is_part(request):
        return part(request, "about/disk.html", parts=parts)
    return _page(request, studio, parts=parts)


@router.post("/about/disk/features/delete", include_in_schema=False)
def delete_features(request: Request, studio: StudioDep, who: TrainerUser) -> Response:
    """Delete the stored features of samples."""
    weights.delete_features(studio, who)
    return disk(request, studio, who) if is_part(request) else see_other(request, "/about/disk")


@router.get("/about/licences", include_in_schema=False)
def licences(request: Request, _studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the licenses of everything that Ziggurat is made with."""
    own, python, pages = own_licence(), python_licences(), page_licences()
    return page(request, "about/licences.html", own=own, python=python, pages=pages)


@router.get("/about/licences/{where}/{name:path}", include_in_schema=False)
def licence(
    request: Request, _studio: StudioDep, _who: ViewerUser, where: Literal["python", "pages"], name: str
) -> Response:
    """Return the text of a license."""
    known = (own_licence(), *python_licences()) if where == "python" else page_licences()
    found = next((each for each in known if each.name == name), None)
    if found is None:
        raise NotFoundError(f"There is no package `{name[:200]}`.", advice="Check the list.")
    text = licence_text(found) or "The package comes without a license text."
    if is_part(request):
        return part(request, "about/licence.html", text=text)
    return PlainTextResponse(text, headers={"X-Content-Type-Options": "nosniff", "Vary": "HX-Request"})


def _page(request: Request, studio: Studio, **found: Any) -> Response:
    look = doctor_look(request)
    return page(
        request,
        "about/page.html",
        is_looking=look.is_looking,
        findings=look.findings,
        machine=studio.machine.strip(),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        workspace=str(studio.root),
        frameworks=_frameworks(studio),
        **{"parts": None, **found},
    )


def _frameworks(studio: Studio) -> list[dict[str, str]] | None:
    """Return the state of each framework; None before the first check."""
    known = studio.machine.frameworks.known
    if known is None:
        return None
    found = {each.backend: each.sentence for each in known}
    return [
        {"name": info.title, "sentence": found.get(name, info.unavailable), "summary": info.summary}
        for name, info in backend_infos().items()
    ]


_LOG: Final = logging.getLogger(__name__)


class DoctorLook:
    """Diagnostics in a thread of their own; findings can be read at any time. Any thread may call any method.

    Args:
        examine: yields what is found.
    """

    def __init__(self, examine: Callable[[], Iterable[Finding]]) -> None:
        self._examine = examine
        self._lock = threading.Lock()
        self._findings: list[Finding] | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_looking(self) -> bool:
        """Whether the diagnostics run."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def findings(self) -> list[Finding] | None:
        """What the newest diagnostics found so far; None before the first."""
        found = self._findings
        return None if found is None else list(found)

    def start(self) -> None:
        """Start the diagnostics, unless they run already."""
        with self._lock:
            if self.is_looking:
                return
            self._findings = []
            self._thread = threading.Thread(target=self._look, args=(self._findings,), name="doctor", daemon=True)
            self._thread.start()

    def _look(self, found: list[Finding]) -> None:
        try:
            found.extend(self._examine())
        except Exception as error:  # what was found until then is still worth reading
            _LOG.exception("the diagnostics failed")
            found.append(Finding("studio", "doctor", "problem", f"The remaining checks could not run: {error}"))


def doctor_look(request: Request) -> DoctorLook:
    """Return that of the application."""
    settings = request.app.state.studio.settings
    return of_application(request, "doctor_look", lambda: DoctorLook(lambda: examine(settings)))
