"""Source previews of the dataset form: a cache of recent ones with their images, and a concurrency limit."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.errors import DataError, MissingEntryError
from ziggurat.web.caches import BoundedCache
from ziggurat.web.pages.dataset.samples import Shape, mask_png, shape_of
from ziggurat.workspace.previews import split_of
from ziggurat.workspace.studio.dataset_estimates import source_bytes

__all__ = ["Preview", "Previews", "SupersededError"]

_UNSEEN: Final = ("name", "heartbeat_s", "hung_after_s", "store", "workers", "mean", "near_duplicates", "check")
"""Fields that change nothing of what is shown."""

_MOST: Final = 16
_MOST_FORMS: Final = 1000
_FRESH_S: Final = 300.0
_AT_ONCE: Final = 2
_PATIENCE_S: Final = 30.0
_WITHOUT_FILES: Final = ("table", "text-classification")


class SupersededError(DataError):
    """The form has changed meanwhile: this preview is no longer needed."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What was seen of a source.

    Args:
        token: names it in the addresses of its images.
        found: as the studio's ``datasets.preview`` returns it, without the images.
        pictures: PNG of each sample; None where it has none.
        made: seconds of the clock.
        masks: PNG of each sample's mask, to lie on its image; None where it has none.
        shapes: of each sample: the objects in its image.
        took_s: how long it took to read.
        source_bytes: size of the source; None where that is unknown.
    """

    token: str
    found: Mapping[str, Any]
    pictures: tuple[bytes | None, ...]
    made: float
    masks: tuple[bytes | None, ...] = ()
    shapes: tuple[tuple[Shape, ...], ...] = ()
    took_s: float = 0.0
    source_bytes: int | None = None

    @property
    def kind(self) -> str:
        """Kind of the dataset."""
        return self.found["kind"]

    @property
    def counts(self) -> Mapping[str, Any]:
        """Samples of each split, ``total``, and ``is_complete``."""
        return self.found["counts"]

    @property
    def objects(self) -> int | None:
        """Objects in all images; None where there are none, or where they are not counted yet."""
        counts = [each["count"] for each in self.found["classes"]]
        return None if self.kind != "detection" or not counts or None in counts else sum(counts)

    @property
    def used_classes(self) -> list[Mapping[str, Any]]:
        """The classes that have samples, or of which that is not known."""
        return [each for each in self.found["classes"] if each["count"] != 0]

    @property
    def empty_classes(self) -> list[str]:
        """Names of the classes without samples."""
        return [each["name"] for each in self.found["classes"] if each["count"] == 0]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Width and height of the images that are shown, the most frequent first."""
        found = Counter((each["width_px"], each["height_px"]) for each in self.found["samples"] if each["width_px"])
        return [size for size, _ in found.most_common()]

    @property
    def most(self) -> int:
        """Samples of the largest class; 1 at least."""
        return max([each["count"] or 0 for each in self.found["classes"]], default=1) or 1

    @property
    def has_pictures(self) -> bool:
        """Whether a sample has an image."""
        return any(picture is not None for picture in self.pictures)

    def leak_warning(self) -> str:
        """Return a sentence where images are divided at random though their names suggest that some belong together.

        Samples of tables and texts have numbers of rows for names, which say nothing.
        """
        if not self.found["is_random"] or self.found["kind"] in _WITHOUT_FILES:
            return ""
        paths = [PurePosixPath(str(sample["key"])) for sample in self.found["samples"]]
        stems = Counter((path.parent, re.sub(r"[-_. ]?\d+$", "", path.stem)) for path in paths)
        named = {place: count for place, count in stems.items() if place[1] and not split_of(place[1])}
        folders = len({place for place, _ in named})
        if len(named) <= folders or len(paths) < 2 * len(named):
            return ""
        first = max(named, key=lambda place: named[place])[1]
        return (
            f"Several file names begin alike, as in “{first}…”: perhaps frames of one video or images of one thing. "
            "The random split puts them on both sides. Choose the method “By file name”."
        )


class Previews:
    """The last previews.

    Args:
        look: returns what is in a source: the studio's ``datasets.preview``.
        clock: seconds.
    """

    def __init__(
        self, look: Callable[[Mapping[str, Any]], Mapping[str, Any]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._clock = clock
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._made: BoundedCache[Preview] = BoundedCache(_MOST)
        self._newest: BoundedCache[int] = BoundedCache(_MOST_FORMS)

    def of(self, content: Mapping[str, Any], form_id: str = "", *, again: bool = False) -> Preview:
        """Return what is in the source of a spec.

        Args:
            content: of the spec, as JSON values.
            form_id: of the form that asks; where it asks again meanwhile, this question is given up.
            again: whether to look even where the same was looked at a short time ago.

        Raises:
            SupersededError: where the form asked again.
            DataError: as the studio does, and where too many look at once.
        """
        seen, key = _asked(content)
        ticket = self._ticket(form_id)
        if not again and (found := self._fresh(key)):
            return found
        if not self._room.acquire(timeout=_PATIENCE_S):
            raise DataError("At most two previews run at a time.", advice="Others are running; try again in a minute.")
        try:
            if form_id and self.questions(form_id) != ticket:
                raise SupersededError("The form has changed meanwhile.")
            found = None if again else self._fresh(key)
            if found is None:
                began = self._clock()
                looked = self._look(seen)
                # Another request may have looked meanwhile: images that are shown already keep their addresses.
                found = None if again else self._fresh(key)
                found = found or self._kept(key, looked, str(seen.get("source", "")), began)
        finally:
            self._room.release()
        return found

    def known(self, content: Mapping[str, Any]) -> Preview | None:
        """Return what was seen of the source of a spec a short time ago; None where it was not looked at."""
        return self._fresh(_asked(content)[1])

    def picture(self, token: str, number: int, *, is_mask: bool = False) -> bytes:
        """Return an image of a preview that is still kept.

        Args:
            token: of the preview.
            number: of the sample, from 0.
            is_mask: whether the mask that lies on it is wanted.

        Raises:
            MissingEntryError: where it is not.
        """
        found = self._made.find(lambda each: secrets.compare_digest(each.token, token))
        pictures = () if found is None else found.masks if is_mask else found.pictures
        picture = pictures[number] if number < len(pictures) else None
        if picture is None:
            raise MissingEntryError("This image is no longer in memory.", advice="Refresh the preview.")
        return picture

    def questions(self, form_id: str) -> int:
        """Return how often a form has asked."""
        return self._newest.get(form_id) or 0

    def _ticket(self, form_id: str) -> int:
        with self._lock:
            ticket = self.questions(form_id) + 1
            self._newest.put(form_id, ticket)
            return ticket

    def _fresh(self, key: str) -> Preview | None:
        found = self._made.get(key)
        return None if found is None or self._clock() - found.made > _FRESH_S else found

    def _kept(self, key: str, found: Mapping[str, Any], source: str, began: float) -> Preview:
        pictures = tuple(base64.b64decode(each["png"]) if each["png"] else None for each in found["samples"])
        seen = ("png", "mask_png", "objects")
        samples = [{name: value for name, value in each.items() if name not in seen} for each in found["samples"]]
        masks, before = _masks(found), self._made.get(key)
        # The same images keep their addresses: a page that shows them, or comes back from the history, still asks.
        is_same = before is not None and (before.pictures, before.masks) == (pictures, masks)
        made = Preview(
            token=before.token if before is not None and is_same else secrets.token_urlsafe(16),
            found={**found, "samples": samples},
            pictures=pictures,
            made=self._clock(),
            masks=masks,
            shapes=tuple(_shapes(each["objects"] or ()) for each in found["samples"]),
            took_s=self._clock() - began,
            source_bytes=source_bytes(Path(source)) if os.path.exists(source) else None,
        )
        self._made.put(key, made)
        return made


def _asked(content: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return what of a spec changes its preview, and the key of that."""
    seen = {name: value for name, value in content.items() if name not in _UNSEEN}
    return seen, hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()


def _masks(found: Mapping[str, Any]) -> tuple[bytes | None, ...]:
    """Return the masks of the samples in colors."""
    return tuple(
        mask_png(_decoded(each["mask_png"]), found["colours"], found["ignore_class"], is_clear=True)
        if each["mask_png"]
        else None
        for each in found["samples"]
    )


def _decoded(text: str) -> np.ndarray:
    pixels = cv2.imdecode(np.frombuffer(base64.b64decode(text), np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels is not None
    return pixels


def _shapes(objects: Sequence[Mapping[str, Any]]) -> tuple[Shape, ...]:
    return tuple(shape_of(number, each, each["name"]) for number, each in enumerate(objects, 1))
