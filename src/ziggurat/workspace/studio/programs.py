"""Use cases of programs that are submitted to the studio: make jobs of them, and show their files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ziggurat.entities import Job
from ziggurat.errors import ProgramCodeError, SpecError, UnknownNameError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec
from ziggurat.workspace.new_jobs import JobMaker, JobRequest
from ziggurat.workspace.programs import (
    ProgramFiles,
    check_program,
    kept_files,
    program_at,
    program_of_job,
    program_of_text,
)
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.paths import Paths

__all__ = ["Programs"]


class Programs:
    """Jobs of kind ``program``.

    Args:
        jobs: of every kind.
        maker: makes new jobs.
        paths: that people may name.
    """

    def __init__(self, jobs: Jobs, maker: JobMaker, paths: Paths) -> None:
        self._jobs = jobs
        self._maker = maker
        self._paths = paths

    def create(self, request: JobRequest, *, text: str = "", source: str = "", owner: str = "") -> Job:
        """Put a program into the queue; it is checked before, and not run.

        Args:
            request: its spec may leave out ``script`` where the files leave no choice; the program of the job
                ``parent`` is taken where neither ``text`` nor ``source`` is given.
            text: of the script.
            source: path of a Python file, a zip archive or a folder on this machine, such as of an upload.
            owner: name of who asks.

        Raises:
            ProgramCodeError: where there is no script, or Python cannot read it; names file and line.
            DataError: where the files are too large, or cannot be read.
            SpecError: where the spec is not valid; it names the field.
            UsageError: where nothing is given, or a path that may not be named.
            JobError: where the parent is not there, or is no program.
        """
        content = {"kind": "program", "version": 1, **request.spec}
        if content["kind"] != "program":
            raise SpecError(f"The spec is of kind {content['kind']}, and a program has one of kind program.")
        script = content.get("script", "")
        if not isinstance(script, str):
            raise SpecError(f"`script` is {script!r}, not text.", details={"field": "script"})
        if script:
            parse_spec(content, source="the request")  # a wrong path is refused as one
        program = self._program(text, source, request.parent, script)
        content["script"] = program.script
        parse_spec(content, source="the request")
        check_program(program)
        complete = dataclasses.replace(request, spec=content, files=program.files)
        return self._maker.make(complete, owner)

    def files(self, job_id: str) -> list[dict[str, Any]]:
        """Return ``name`` and ``size_bytes`` of every file of a program; the script comes first.

        Raises:
            JobError: where there is no such job, or it is no program.
        """
        job = self._jobs.of_kind(job_id, "program")
        script = str(job.spec.get("script", ""))
        found = [
            {"name": name, "size_bytes": path.stat().st_size} for name, path in kept_files(JobFolder(Path(job.folder)))
        ]
        return sorted(found, key=lambda each: (each["name"] != script, each["name"]))

    def text(self, job_id: str, name: str = "") -> str:
        """Return the text of a file of a program; of the script where none is named.

        Raises:
            JobError: where there is no such job, or it is no program.
            UnknownNameError: where it has no such file.
        """
        job = self._jobs.of_kind(job_id, "program")
        wanted = name or str(job.spec.get("script", ""))
        known = dict(kept_files(JobFolder(Path(job.folder))))
        if wanted not in known:
            raise UnknownNameError("file of this program", wanted, known)
        return known[wanted].read_bytes().decode("utf-8-sig", "replace")

    def _program(self, text: str, source: str, parent: str, script: str) -> ProgramFiles:
        if text and source:
            raise UsageError("The program is given both as text and by its place.", advice="Leave one out.")
        if parent:
            before: Mapping[str, Any] = self._jobs.of_kind(parent, "program").spec
            script = script or str(before.get("script", ""))
        if parent and not source:
            kept = program_of_job(self._jobs.folder(parent), script)
            # The text of a clone is its script; the other files stay as they were.
            return ProgramFiles(kept.script, {**kept.files, kept.script: text.encode()}) if text else kept
        if text:
            return program_of_text(text, script or "program.py")
        if source:
            return program_at(self._paths.allowed(source), script)
        raise ProgramCodeError(
            "No program is given: send a Python script.", advice="Send its text, a file, a zip archive or a folder."
        )
