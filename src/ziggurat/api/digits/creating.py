"""DIGITS routes for creating classification datasets and models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, Final

from fastapi import Response

from ziggurat.api.digits.dataset_form import dataset_spec
from ziggurat.api.digits.fields import Fields, FormError
from ziggurat.api.digits.forms import Form, Posted
from ziggurat.api.digits.model_form import model_request
from ziggurat.api.digits.shapes import dataset_shape, model_shape
from ziggurat.api.responses import answer
from ziggurat.api.schemas import Json
from ziggurat.entities import Job
from ziggurat.errors import ConfigurationError, DataError, UsageError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.permissions import new_router
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.training_checks import problem_sentence

__all__ = ["router"]

router = new_router(tags=["digits"])

_FIELDS: Final = {"data.source": "dataset", "network.name": "standard_networks", "backend": "framework"}
"""Field of a spec → field of DIGITS's form, where that has another name."""

_LISTS: Final = ("train_images", "val_images", "test_images", "labels_file")


@router.post("/datasets/images/classification.json", response_model=Json)
def create_dataset(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Make a classification dataset of DIGITS's fields; a wrong one is answered by 400 and ``errors`` by field."""

    def make() -> Any:
        fields = Fields({**form.values, **_uploaded(studio, form)})
        spec = dataset_spec(fields, studio.paths)
        fields.check()
        job = studio.datasets.create(JobRequest(spec=spec, project=fields.text("group_name")), owner=who.name)
        studio.people.note(who, "dataset.create", job.id)
        return dataset_shape(studio, job)

    return _made(make)


@router.post("/models/images/classification.json", response_model=Json)
def create_model(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Make a classification model of DIGITS's fields, or ``jobs`` where lists of values make several."""

    def make() -> Any:
        fields = Fields(form.values)
        request = model_request(fields, studio)
        fields.check()
        jobs = studio.training.create(request, owner=who.name)
        shapes = [_noted(studio, who, job) for job in jobs]
        return shapes[0] if len(shapes) == 1 else {"jobs": shapes}

    return _made(make)


def _made(make: Callable[[], Any]) -> Response:
    try:
        return answer(make())
    except FormError as error:
        return answer({"errors": error.errors}, 400)
    except ZigguratError as error:
        if "problems" not in error.details and not isinstance(error, (ConfigurationError, DataError, UsageError)):
            raise
        return answer({"errors": _errors_of(error)}, 400)


def _errors_of(error: ZigguratError) -> dict[str, list[str]]:
    """Return field of the form → messages."""
    listed = error.details.get("problems") or ()
    if len(listed) < 2:
        field = str(error.details.get("field", "form"))
        return {_FIELDS.get(field, field): [str(error)]}
    found: dict[str, list[str]] = {}
    for each in listed:
        place = str(each["field"])
        found.setdefault(_FIELDS.get(place, place), []).append(problem_sentence(each))
    return found


def _noted(studio: Studio, who: Any, job: Job) -> dict[str, Any]:
    studio.people.note(who, "training.create", job.id)
    return model_shape(studio, job)


def _uploaded(studio: Studio, form: Form) -> dict[str, str]:
    """Keep lists that came with the form, and return the fields that name them as files of the server."""
    values: dict[str, str] = {}
    upload = ""
    for name in _LISTS:
        content = form.content(f"textfile_{name}")
        if content is None:
            continue
        with studio.uploads.add(f"{name}.txt", upload) as incoming:
            incoming.write(content)
        result = incoming.result()
        upload = result.id
        values[f"textfile_local_{name}"] = str(PurePosixPath(result.source) / f"{name}.txt")
    return {**values, "textfile_use_local_files": "y"} if values else {}
