"""DIGITS routes for predictions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fastapi import Response

from ziggurat.api.responses import answer
from ziggurat.compat.digits.forms import Form, Posted, checkpoint_of_epoch
from ziggurat.compat.digits.paths import json_route
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.server.dependencies import ImageViewerUser, StudioDep
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.images import read_pictures

__all__ = ["router"]

router = new_router(tags=["digits"])

_TOP: Final = 5
_ALL: Final = 1_000_000
_AT_ONCE: Final = 64
_LINE: Final = re.compile(r"(.*\S)\s+(-?\d+)")
_WEB: Final = ("http://", "https://")
_Row = tuple[str, dict[str, Any]]


@json_route(router, "POST", "/models/images/classification/classify_one")
def classify_one(studio: StudioDep, _who: ImageViewerUser, form: Posted) -> Response:
    """Return ``predictions``: the five likeliest classes of ``image_file``, ``image_path`` or ``image_url``, in %.

    As in DIGITS they are what the network gives; no threshold of an operating point changes them.
    """
    return answer({"predictions": _percent(_one(studio, form, _TOP))})


@json_route(router, "POST", "/models/images/classification/classify_many")
def classify_many(studio: StudioDep, _who: ImageViewerUser, form: Posted) -> Response:
    """Return ``classifications``: path → the five likeliest classes, of the images in ``image_list``.

    As in DIGITS they are what the network gives; no threshold of an operating point changes them.
    """
    return answer({"classifications": {name: _percent(row) for name, row in _many(studio, form, _TOP)}})


@json_route(router, "POST", "/models/images/classification/top_n")
def top_n(studio: StudioDep, _who: ImageViewerUser, form: Posted) -> Response:
    """Return ``top_n``: class → the ``top_n`` (9) paths of ``image_list`` with the highest percentages."""
    count = form.values.get("top_n", "") or "9"
    if not count.isdecimal() or not 1 <= int(count) <= 1000:
        raise UsageError("`top_n` is a number from 1 to 1000.", received=count[:40])
    found: dict[str, list[tuple[float, str]]] = {}
    for name, row in _many(studio, form, _ALL):
        for label, share in _percent(row):
            found.setdefault(label, []).append((share, name))
    best = {label: sorted(each, reverse=True)[: int(count)] for label, each in sorted(found.items())}
    return answer({"top_n": {label: [[name, share] for share, name in each] for label, each in best.items()}})


@json_route(router, "POST", "/models/images/generic/infer_one")
def infer_one(studio: StudioDep, _who: ImageViewerUser, form: Posted) -> Response:
    """Return ``outputs``: name → numbers, of ``image_file``, ``image_path`` or ``image_url``.

    A detector's outputs are rows ``[left, top, right, bottom, confidence]`` in px of the image: ``bbox-list``, or
    ``bbox-list-class0``, ``bbox-list-class1``, … where there are several classes.
    """
    return answer({"outputs": _numbers(_one(studio, form, _ALL), _class_count(studio, form))})


@json_route(router, "POST", "/models/images/generic/infer_many")
def infer_many(studio: StudioDep, _who: ImageViewerUser, form: Posted) -> Response:
    """Return ``outputs``: path → name → numbers, of the images in ``image_list``."""
    classes = _class_count(studio, form)
    return answer({"outputs": {name: _numbers(row, classes) for name, row in _many(studio, form, _ALL)}})


def _one(studio: Studio, form: Form, top: int) -> dict[str, Any]:
    job_id, checkpoint = _model(studio, form)
    found = studio.models.predict(job_id, [_picture(studio, form)], top=top, checkpoint=checkpoint)
    if found["failures"]:
        raise UsageError(found["failures"][0]["message"])
    return found["predictions"][0]


def _picture(studio: Studio, form: Form) -> tuple[str, bytes]:
    content, path, url = form.content("image_file"), form.values.get("image_path", ""), form.values.get("image_url", "")
    if content:
        return "image_file", content
    if url or path.lower().startswith(_WEB):  # DIGITS took an address as path
        return studio.web_pictures.fetch(url or path)
    if not path:
        raise UsageError("The request has no image: neither `image_file` nor `image_path` nor `image_url`.")
    return read_pictures(studio.paths, [path])[0]


def _many(studio: Studio, form: Form, top: int) -> Iterator[_Row]:
    """Yield path and prediction of each image of the list; those that cannot be read are left out."""
    job_id, checkpoint = _model(studio, form)
    names = _listed(form)
    for start in range(0, len(names), _AT_ONCE):
        pictures = [each for name in names[start : start + _AT_ONCE] for each in _readable(studio, form, name)]
        if pictures:
            found = studio.models.predict(job_id, pictures, top=top, checkpoint=checkpoint)
            yield from ((each["file"], each) for each in found["predictions"])


def _listed(form: Form) -> list[str]:
    content = form.content("image_list")
    if content is None:
        raise UsageError("The request has no file `image_list`.")
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines() if line.strip()]
    names = [found[1] if (found := _LINE.fullmatch(line)) else line for line in lines]
    limit = form.values.get("num_test_images", "")
    return list(dict.fromkeys(names[: int(limit)] if limit.isdecimal() and len(limit) < 10 else names))


def _readable(studio: Studio, form: Form, name: str) -> list[tuple[str, bytes]]:
    folder = form.values.get("image_folder", "").rstrip("/")
    path = name if name.startswith("/") or not folder else f"{folder}/{name}"
    try:
        return [(name, content) for _, content in read_pictures(studio.paths, [path])]
    except ZigguratError:
        return []


def _model(studio: Studio, form: Form) -> tuple[str, str]:
    job_id = studio.jobs.get(form.values.get("job_id", "")).id
    return job_id, checkpoint_of_epoch(studio, job_id, form.values.get("snapshot_epoch", ""))


def _percent(row: dict[str, Any]) -> list[tuple[str, float]]:
    if "classes" not in row:
        raise UsageError("The model is no classifier.", advice="Use the routes below /models/images/generic.")
    return [(each["class"], round(100 * each["probability"], 2)) for each in row["classes"]]


def _class_count(studio: Studio, form: Form) -> int:
    """Return how many classes the data of the model has."""
    return len(studio.models.inputs(_model(studio, form)[0]).schema.class_names)


def _numbers(row: dict[str, Any], classes: int) -> dict[str, Any]:
    if "boxes" in row:
        names = ["bbox-list"] if classes == 1 else [f"bbox-list-class{number}" for number in range(classes)]
        rows: dict[str, list[list[float]]] = {name: [] for name in names}
        for each in row["boxes"]:
            rows[names[each["number"]]].append([*each["box"], each["score"]])
        return rows
    if "classes" in row:
        return {"softmax": [each["probability"] for each in sorted(row["classes"], key=lambda each: each["number"])]}
    return {name: each["values"] for name, each in row["outputs"].items()}
