"""Images in a request: as parts of a form, as paths on this machine, or by URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, File, Form, UploadFile
from starlette.datastructures import UploadFile as SentFile

from ziggurat.errors import UsageError
from ziggurat.server.dependencies import StudioDep
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.images import MOST_PICTURES, PICTURE_BYTES, read_pictures
from ziggurat.workspace.studio.videos import MOST_VIDEOS, frames_of_file, frames_of_upload, is_video

__all__ = ["Pictures", "SomePictures", "check_some", "posted_pictures"]


def posted_pictures(
    studio: Studio, files: Sequence[SentFile], paths: Sequence[str], url: str = "", *, takes_videos: bool = False
) -> list[tuple[str, bytes]]:
    """Return name and content of each image; those that were sent come first, the one with an address last.

    Args:
        studio: where they are read.
        files: sent with the request.
        paths: on this machine.
        url: fetched; empty for none.
        takes_videos: whether a file that is taken for a video stands for its frames.

    Raises:
        UsageError: where there is none, there are too many, one is too large, or a path or address may not be named.
        DataError: where nothing or no image comes from the address.
    """
    count = len(files) + len(paths) + bool(url)
    if not count:
        check_some(())
    if count > MOST_PICTURES:
        raise UsageError(f"{count} images are sent at once; {MOST_PICTURES} is the most.")
    videos = sum(is_video(name) for name in (*(file.filename or "" for file in files), *paths)) if takes_videos else 0
    if videos > MOST_VIDEOS:
        raise UsageError(f"{videos} videos are sent at once; {MOST_VIDEOS} is the most.")
    found: list[tuple[str, bytes]] = []
    for number, file in enumerate(files, 1):
        name = file.filename or f"image {number}"
        if takes_videos and is_video(name):
            found += frames_of_upload(studio.tasks, name, file.file)
        else:
            found.append((name, _content(file)))
    for name in paths:
        if takes_videos and is_video(name):
            found += frames_of_file(studio.tasks, name, studio.paths.allowed(name))
        else:
            found += read_pictures(studio.paths, [name])
    found += [studio.web_pictures.fetch(url)] if url else []
    if len(found) > MOST_PICTURES:
        raise UsageError(
            f"{len(found)} images are sent at once, frames of videos included; {MOST_PICTURES} is the most."
        )
    return found


def check_some(pictures: Sequence[tuple[str, bytes]]) -> None:
    """Refuse a request without images.

    Raises:
        UsageError: where there is none.
    """
    if not pictures:
        raise UsageError("A request has images: `files` of a form, `paths`, or a `url`.", received="none")


def _posted(
    studio: StudioDep,
    files: Annotated[list[UploadFile], File(description="Pictures.")] = [],  # noqa: B006 - never changed
    paths: Annotated[list[str], Form(description="Images below the folders that `/paths` offers.")] = [],  # noqa: B006
    url: Annotated[str, Form(description="Address of an image, which the studio fetches.", max_length=4096)] = "",
) -> list[tuple[str, bytes]]:
    return posted_pictures(studio, files, paths, url)


def _posted_or_none(
    studio: StudioDep,
    files: Annotated[list[UploadFile], File(description="Images, or short videos.")] = [],  # noqa: B006 - never changed
    paths: Annotated[list[str], Form(description="The same, below the folders that `/paths` offers.")] = [],  # noqa: B006
    url: Annotated[str, Form(description="Address of an image, which the studio fetches.", max_length=4096)] = "",
) -> list[tuple[str, bytes]]:
    return posted_pictures(studio, files, paths, url, takes_videos=True) if files or paths or url else []


SomePictures = Annotated[list[tuple[str, bytes]], Depends(_posted_or_none)]
"""The same of a route that also takes something else; empty where there are none."""

Pictures = Annotated[list[tuple[str, bytes]], Depends(_posted)]
"""Name and content of each image of a form."""


def _content(file: SentFile) -> bytes:
    content = file.file.read(PICTURE_BYTES + 1)
    if len(content) > PICTURE_BYTES:
        raise UsageError(f"`{file.filename}` is too large: an image has at most {PICTURE_BYTES >> 20} MiB.")
    return content
