"""Form that submits a program: what was typed or sent, and the request that it makes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from starlette.datastructures import FormData

from ziggurat.errors import DataError, ProgramCodeError, UsageError, ZigguratError
from ziggurat.web.forms import FieldError, at_field, priority_of, sent_files, take_files, typed_texts, whole_number
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio

__all__ = [
    "FIELDS",
    "ProgramForm",
    "cloned_form",
    "drop_upload",
    "read_form",
    "request_of",
    "submitted_field",
    "take_upload",
]

FIELDS: Final = (
    "name", "arguments", "script", "gpus", "nodes", "memory_gb", "seed", "capture", "project", "tags", "priority",
)  # fmt: skip
_ORIGINS: Final = ("file", "text")
_ENDINGS: Final = (".py", ".zip")
_MOST_GPUS: Final = 64


@dataclass
class ProgramForm:
    """What stands in the form.

    Args:
        typed: field → text.
        origin: ``file`` or ``text``: where the program is.
        text: of the script.
        source: path of what was uploaded before; empty for nothing.
        parent: id of the program that this is a clone of; empty for none.
    """

    typed: dict[str, str] = field(default_factory=dict)
    origin: str = "file"
    text: str = ""
    source: str = ""
    parent: str = ""

    def __getitem__(self, name: str) -> str:
        """Return the text of a field."""
        return self.typed.get(name, "")

    @property
    def uploaded(self) -> str:
        """Name of what was uploaded before; empty for nothing."""
        place = Path(self.source) if self.source else None
        if place is None or not place.exists():
            return ""
        if place.is_dir():
            return next((each.name for each in sorted(place.iterdir())), "")
        return place.name


def cloned_form(studio: Studio, job_id: str) -> ProgramForm:
    """Return the form of a clone: everything as the program was submitted.

    Raises:
        JobError: where there is no such job, or it is no program.
    """
    job = studio.jobs.of_kind(job_id, "program")
    spec = job.spec
    typed = {
        "name": job.name,
        "arguments": shlex.join(spec.get("arguments", ())),
        "script": str(spec.get("script", "")),
        "gpus": str(spec.get("gpus") or ""),
        "nodes": str(spec["nodes"]) if spec.get("nodes", 1) > 1 else "",
        "memory_gb": f"{spec['memory_gb']:g}" if spec.get("memory_gb") else "",
        "seed": str(spec.get("seed") or ""),
        "capture": ", ".join(spec.get("capture", ())),
        "project": job.project,
        "tags": ", ".join(job.tags),
        "priority": str(job.priority or ""),
    }
    return ProgramForm(typed, "text", studio.programs.text(job_id), parent=job_id)


def read_form(studio: Studio, sent: FormData) -> ProgramForm:
    """Return what was typed; ``take_upload`` takes the file."""
    typed = {name: text for name, text in typed_texts(sent).items() if name in FIELDS}
    origin, text = str(sent.get("origin", "")), str(sent.get("text", "")).replace("\r\n", "\n")
    hidden = typed_texts(sent)
    form = ProgramForm(typed, origin if origin in _ORIGINS else "file", text, parent=hidden.get("parent", ""))
    form.source = _kept_upload(studio, hidden.get("source", ""))
    return form


def take_upload(studio: Studio, sent: FormData, form: ProgramForm) -> None:
    """Keep the file that was sent with the form, if there is one.

    Raises:
        FieldError: where it is neither a script nor a zip archive.
    """
    files = sent_files(sent, "file") if form.origin == "file" else []
    if not files:
        return
    name = str(files[0].filename)
    if not name.lower().endswith(_ENDINGS):
        error = UsageError(
            f"`{name}` is neither a Python file nor a zip archive.",
            advice="Choose a file that ends in `.py` or `.zip`.",
        )
        raise FieldError("file", error)
    form.source = at_field("file", take_files, studio, files[:1])


def drop_upload(studio: Studio, form: ProgramForm) -> None:
    """Delete what was uploaded, once the job has its files."""
    if form.source:
        studio.uploads.remove(Path(form.source).resolve().relative_to(studio.uploads.folder.resolve()).parts[0])


def request_of(form: ProgramForm) -> JobRequest:
    """Return the request that the form makes.

    Raises:
        FieldError: names the field that is wrong.
    """
    spec: dict[str, Any] = {"arguments": at_field("arguments", _words, form["arguments"])}
    spec["gpus"] = whole_number(form.typed, "gpus", 0, 0, _MOST_GPUS)
    spec["nodes"] = whole_number(form.typed, "nodes", 1, 1, _MOST_GPUS)
    spec["seed"] = whole_number(form.typed, "seed", 0, 0, 2**32 - 1)
    spec["memory_gb"] = at_field("memory_gb", _number, form["memory_gb"])
    spec["capture"] = [each.strip() for each in form["capture"].split(",") if each.strip()]
    for name in ("name", "script"):
        if form[name].strip():
            spec[name] = form[name].strip()
    return JobRequest(
        spec=spec,
        project=form["project"].strip(),
        tags=tuple(each.strip() for each in form["tags"].split(",") if each.strip()),
        priority=at_field("priority", priority_of, form["priority"]),
        parent=form.parent,
    )


def submitted_field(error: ZigguratError, form: ProgramForm) -> str:
    """Return the field of the form that an error of the submission belongs to."""
    named = str(error.details.get("field", ""))
    if named in FIELDS:
        return named
    return form.origin if isinstance(error, ProgramCodeError | DataError | UsageError) else ""


def _kept_upload(studio: Studio, source: str) -> str:
    """Return the place of an upload that an earlier try has sent; empty where it is none."""
    place = Path(source) if source else None
    is_upload = place is not None and place.resolve().is_relative_to(studio.uploads.folder.resolve())
    return source if place is not None and is_upload and place.exists() else ""


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"The arguments have a quotation mark without a counterpart: {text[:200]}.",
            advice=f"{str(error).capitalize()}.",
        ) from None


def _number(text: str) -> float:
    text = text.strip()
    try:
        value = float(text) if text else 0.0
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100_000:
        raise UsageError(
            "Memory is a number of gigabytes from 0.", received=text[:50], advice="Write it as in 8 or 1.5."
        )
    return value
