"""Tab "Program" of a job page: the files of a program, and the text of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.layout import JobFolder
from ziggurat.workspace.programs import kept_files
from ziggurat.workspace.studio import Studio

__all__ = ["ProgramView", "program_text", "program_view"]

_MOST_BYTES: Final = 1_000_000
_MOST_FILES: Final = 200


@dataclass(frozen=True, kw_only=True)
class ProgramView:
    """What is shown of a program.

    Args:
        files: ``name`` and ``size_bytes`` of its first 200 files; the script comes first.
        further: how many files are not listed.
        name: of the file that is shown.
        text: of it; None where it is no text, too long, or gone.
    """

    files: list[dict[str, Any]]
    further: int
    name: str
    text: str | None


def program_view(studio: Studio, job: Job, name: str = "") -> ProgramView | None:
    """Return what is shown of the program of a job; None for jobs of other kinds.

    Args:
        studio: where the job is.
        job: it.
        name: of the file to show; the script where there is none of that name.
    """
    if job.kind != "program":
        return None
    files = studio.programs.files(job.id)
    known = [each["name"] for each in files]
    chosen = name if name in known else str(job.spec.get("script", ""))
    return ProgramView(
        files=files[:_MOST_FILES], further=max(0, len(files) - _MOST_FILES), name=chosen, text=program_text(job, chosen)
    )


def program_text(job: Job, name: str) -> str | None:
    """Return the text of a file that came with a program; None where it is no text, too long, or not there."""
    path = dict(kept_files(JobFolder(Path(job.folder)))).get(name)
    if path is None or path.stat().st_size > _MOST_BYTES:
        return None
    content = path.read_bytes()
    try:
        return None if b"\0" in content else content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
