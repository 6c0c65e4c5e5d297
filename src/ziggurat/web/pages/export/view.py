"""View model of the model export page: archive, exports with their parity check, and publishing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.entities.backend_info import ExportFormat
from ziggurat.errors import JobError, ZigguratError
from ziggurat.formatting import plural
from ziggurat.workspace.checkpoints import checkpoint_choices
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.exports import EXPORTS_FOLDER, Export, export_formats, obeys
from ziggurat.workspace.studio.models import PublishedModel
from ziggurat.workspace.studio.serving import ServerState

__all__ = ["ARCHIVES", "FIRST_TYPED", "ExportLook", "TakeAway", "field_of", "take_away"]

ARCHIVES: Final = (
    ("tar.gz", "tar.gz, compressed"),
    ("zip", "zip"),
    ("tar.bz2", "tar.bz2, compressed best and slowest"),
    ("tar", "tar, not compressed"),
)
"""Kinds of archives: value and text of each."""

FIRST_TYPED: Final[Mapping[str, str]] = {
    "format": "",
    "export_checkpoint": "",
    "preprocessing": "inside",
    "publish_checkpoint": "",
    "name": "",
    "notes": "",
}
"""What stands in the forms at first."""


_PREPROCESSING: Final = {
    "image": "Crop, mean and whitening; default inside: the model takes plain images from 0 to 255.",
    "row": "Scaling of numbers; default inside: the model takes the values of the columns.",
    "text": "Words become numbers beside the model in both cases, by predict.py.",
}
"""What a network takes → what its preprocessing is, and where it goes by default."""

_BODIES: Final = {
    "image": "-F image=@image.png",
    "row": """--json '{"rows": [{"COLUMN": 1}]}'""",
    "text": """--json '{"texts": ["a text"]}'""",
}
"""What a network takes → options of curl that send it."""

_PYTHON: Final = {
    "image": ('files={"image": open("image.png", "rb")}', '"image.png"'),
    "row": ('json={"rows": [{"COLUMN": 1}]}', '{"COLUMN": 1}'),
    "text": ('json={"texts": ["a text"]}', '"a text"'),
}
"""What a network takes → arguments of ``httpx.post``, and of ``ExportedModel.predict``."""

_USUAL_URL: Final = "http://127.0.0.1:8600"


@dataclass(frozen=True, kw_only=True)
class ExportLook:
    """An export as it is shown.

    Args:
        export: it.
        title: what people call its format.
        parity: its proof; empty while there is none.
        samples: ``100 samples of the split val``; empty while there is none.
        serve_lines: title and text of commands that serve it, and ask it; empty if its format is not served.
        server: how its server on this machine is; None if none was started.
        is_outdated: whether it obeys other thresholds than the model does now.
    """

    export: Export
    title: str
    parity: Mapping[str, Any]
    samples: str
    serve_lines: tuple[tuple[str, str], ...] = ()
    is_outdated: bool = False
    server: ServerState | None = None


@dataclass(frozen=True, kw_only=True)
class TakeAway:
    """What the page shows.

    Args:
        job: a training.
        checkpoints: (value, text) of the best, which has no name, and then of each, the newest first.
        formats: that its framework writes.
        exports: newest first.
        published: models that it was published as.
        why_not_published: why it cannot be published now; empty where it can.
        preprocessing: what the choice of its place means for what the network takes.
    """

    job: Job
    checkpoints: list[tuple[str, str]]
    formats: tuple[ExportFormat, ...]
    exports: list[ExportLook]
    published: list[PublishedModel]
    why_not_published: str
    preprocessing: str

    @property
    def is_waiting(self) -> bool:
        """Whether an export is under way."""
        return any(each.export.is_under_way for each in self.exports)

    @property
    def is_changing(self) -> bool:
        """Whether an export is under way, or a server runs."""
        return self.is_waiting or any(each.server and each.server.state != "failed" for each in self.exports)


def take_away(studio: Studio, job_id: str) -> TakeAway:
    """Return what is shown of a training.

    Raises:
        JobError: where there is no such job, or it is no training.
    """
    job = studio.jobs.get(job_id)
    if job.kind != "train":
        raise JobError(f"{job_id} is of kind {job.kind}; only trained models are exported here.")
    formats = export_formats(job)
    titles = {each.name: each.title for each in formats}
    checkpoints = checkpoint_choices(job)
    is_busy = job.is_active or job.state == "queued"
    kind = _input_kind(studio, job_id) if checkpoints else "image"
    return TakeAway(
        job=job,
        checkpoints=checkpoints,
        formats=formats,
        exports=[_look(studio, job, each, titles, kind) for each in studio.exports.of_job(job_id)],
        published=studio.published.of_job(job_id),
        preprocessing=_PREPROCESSING[kind],
        why_not_published="A model is published when its training has ended." if is_busy else "",
    )


def _input_kind(studio: Studio, job_id: str) -> str:
    try:
        return studio.models.inputs(job_id).kind
    except ZigguratError:  # of a task that is not installed; what is exported already can be downloaded all the same
        return "image"


def field_of(error: ZigguratError, action: str) -> str:
    """Return the field at which an error of a form is shown; empty where it is none of a field."""
    named = error.details.get("field")
    if isinstance(named, str) and named in FIRST_TYPED:
        return named
    if error.code in ("checkpoint", "missing_checkpoint"):
        return f"{action}_checkpoint"
    return "format" if action == "export" and error.code == "unknown_name" else ""


def _serve_lines(job: Job, export: Export, kind: str, url: str) -> tuple[tuple[str, str], ...]:
    """Return title and text of the command that serves an export, of those that ask its server, and of Python that
    needs none; nothing for formats that are not served.
    """
    if export.format != "onnx":
        return ()
    folder = f"{job.folder}/{EXPORTS_FOLDER}/{export.name}"
    asked, given = _PYTHON[kind]
    ask = f'import httpx; print(httpx.post("{url}/predict", {asked}).json())'
    load = f"import ziggurat as zig; print(zig.load({folder!r}).predict({given}))"
    lines = [("curl", f"curl {_BODIES[kind]} {url}/predict"), ("Python", ask), ("Python, without a server", load)]
    return ("Elsewhere", f"ziggurat serve {shlex.quote(folder)}"), *lines


def _look(studio: Studio, job: Job, export: Export, titles: Mapping[str, str], kind: str) -> ExportLook:
    server = studio.serving.state(job.id, export.name)
    url = (server.url if server and server.state != "failed" else "") or _USUAL_URL
    parity = export.result.get("parity", {})
    samples = f"{plural(parity['samples'], 'sample')} of the split {export.result['split']}" if parity else ""
    return ExportLook(
        export=export,
        title=titles.get(export.format, export.format),
        parity=parity,
        samples=samples,
        serve_lines=_serve_lines(job, export, kind, url),
        server=server,
        is_outdated=export.state == "done" and not obeys(export, job),
    )
