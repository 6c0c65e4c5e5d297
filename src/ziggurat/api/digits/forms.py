"""Parsing of the forms that scripts send: urlencoded or with files, some values in the URL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from ziggurat.workspace.studio.images import PICTURE_BYTES

__all__ = ["Form", "Posted"]


class Form:
    """A form.

    Args:
        values: field → last text, of the address and of the body, which counts more.
        lists: field → all texts.
        files: field → file.
    """

    def __init__(self, values: dict[str, str], lists: dict[str, list[str]], files: dict[str, UploadFile]) -> None:
        self.values = values
        self.lists = lists
        self.files = files

    def ids(self) -> list[str]:
        """Return the ids of jobs that it names."""
        return self.lists.get("job_ids[]") or self.lists.get("job_ids") or []

    def content(self, name: str) -> bytes | None:
        """Return the content of a file, or None where it was not sent."""
        file = self.files.get(name)
        return None if file is None else file.file.read(PICTURE_BYTES)


async def _form(request: Request) -> AsyncIterator[Form]:
    lists: dict[str, list[str]] = {}
    files: dict[str, UploadFile] = {}
    async with request.form() as sent:
        for name, value in [*request.query_params.multi_items(), *sent.multi_items()]:
            if isinstance(value, UploadFile):
                files[name] = value
            else:
                lists.setdefault(name, []).append(value)
        yield Form({name: values[-1] for name, values in lists.items()}, lists, files)


Posted = Annotated[Form, Depends(_form)]
"""The form of a request."""
