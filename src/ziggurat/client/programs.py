"""Client of programs that are submitted to a studio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ziggurat.client.connection import Connection, given
from ziggurat.workspace.programs import check_program, packed, program_at, program_origin

__all__ = ["ProgramClient"]


class ProgramClient:
    """The programs of a studio.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def submit(
        self,
        program: Path | str,
        arguments: Sequence[str] = (),
        *,
        script: str = "",
        spec: Mapping[str, Any] | None = None,
        **request: Any,
    ) -> dict[str, Any]:
        """Send a program of this machine, and put it into the queue; return the job.

        It is read and checked here first: nothing is sent of one that Python cannot read. Its path, and the commit of
        its Git repository, are noted in the spec as ``origin``.

        Args:
            program: a Python file, a zip archive or a folder.
            arguments: what follows the script on its command line.
            script: file that runs, of an archive or folder with several.
            spec: further fields of a spec of kind ``program``: ``name``, ``gpus``, ``memory_gb``, ``seed``, …
            request: ``project``, ``tags``, ``notes``, ``priority``.

        Raises:
            ProgramCodeError: where there is no script, or Python cannot read it; names file and line.
            DataError: where the files are too large, or cannot be read.
        """
        files = program_at(Path(program), script)
        check_program(files)
        content = {"kind": "program", "version": 1, **(spec or {})}
        content |= {"script": files.script, "arguments": [str(each) for each in arguments]}
        content.setdefault("origin", program_origin(Path(program))[:2000])
        name = f"{Path(program).resolve().stem or 'program'}.zip"
        upload = self._connection.ask("POST", "/uploads", params={"name": name}, content=packed(files))
        try:
            body = {"spec": content, "source": upload["source"], **given(request)}
            return self._connection.ask("POST", "/programs", json=body)
        finally:
            self._connection.ask("DELETE", f"/uploads/{upload['id']}", params={"forever": True})

    def create(self, spec: Mapping[str, Any], **request: Any) -> dict[str, Any]:
        """Put a program into the queue; return the job.

        Args:
            spec: of kind ``program``.
            request: one of ``text``, ``source`` (a path of the studio's machine) and ``parent`` (a program whose files
                are taken); ``project``, ``tags``, ``notes``, ``priority``.
        """
        whole = {"kind": "program", "version": 1, **spec}
        return self._connection.ask("POST", "/programs", json={"spec": whole, **given(request)})

    def check(self, text: str) -> list[dict[str, Any]]:
        """Return why Python cannot read a script, without running it; nothing where it can."""
        return self._connection.ask("POST", "/programs/check", json={"text": text})["findings"]

    def files(self, job_id: str) -> list[dict[str, Any]]:
        """Return ``name`` and ``size_bytes`` of every file of a program; the script comes first."""
        return self._connection.ask("GET", f"/programs/{job_id}/files")

    def text(self, job_id: str, name: str = "") -> str:
        """Return the text of a file of a program; of the script where none is named."""
        return self._connection.ask("GET", f"/programs/{job_id}/text", params={"name": name})["text"]
