"""Spec files: reading with upgrade and validation, canonical JSON, atomic writing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ziggurat.atomic import atomic_write_text
from ziggurat.errors import SpecError
from ziggurat.layout import present_paths, workspace_of
from ziggurat.specs.base import STORED
from ziggurat.specs.dataset import DatasetSpec
from ziggurat.specs.describe import describe_fields
from ziggurat.specs.evaluation import EvaluateSpec, InferSpec
from ziggurat.specs.problems import spec_error
from ziggurat.specs.train import TrainSpec
from ziggurat.specs.versions import SPEC_KINDS, upgrade

__all__ = ["Spec", "load_spec", "load_train_spec", "parse_spec", "read_content", "save_spec", "spec_json"]

_NO_PATHS: Final = ("name", "network")
"""Fields that may look like paths of the workspace and are none: the text of a network file stands in the spec."""

Spec = TrainSpec | DatasetSpec | EvaluateSpec | InferSpec
"""The spec of any kind of job."""


def load_spec(path: Path) -> Spec:
    """Read a spec of any version that this release knows.

    In the spec of a job, paths into its workspace are those of now, also where the workspace was moved or copied.

    Raises:
        SpecError: where the file is not there, is no JSON, or is not valid; it names the field.
    """
    content, workspace = read_content(path), workspace_of(path.parent)
    present = content if workspace is None else _moved_along(content, workspace)
    return parse_spec(present, source=str(path), is_stored=True)


def _moved_along(content: dict[str, Any], workspace: Path) -> dict[str, Any]:
    return {name: value if name in _NO_PATHS else present_paths(value, workspace) for name, value in content.items()}


def load_train_spec(path: Path) -> TrainSpec:
    """Read the spec of a training job.

    Raises:
        SpecError: as ``load_spec``, and where it is the spec of another kind of job.
    """
    spec = load_spec(path)
    if not isinstance(spec, TrainSpec):
        raise SpecError(
            "A trained network is in the folder of a training job.",
            received=f"{path}, a job of kind {spec.kind}",
            advice="Name the folder that was given to: ziggurat train --out FOLDER.",
        )
    return spec


def parse_spec(content: Any, *, source: str = "", is_stored: bool = False) -> Spec:
    """Return the spec of decoded JSON of any version.

    Args:
        content: what ``json.loads`` gave.
        source: where it came from, for the error.
        is_stored: whether it is read back from a job, which rules that are newer than the job do not refuse.

    Raises:
        SpecError: where it is not valid; it names the field.
    """
    if not isinstance(content, Mapping):
        raise SpecError("A spec must be a JSON object.", received=type(content).__name__, advice=f"Look at {source}.")
    current = upgrade(content)
    model: Any = SPEC_KINDS[current["kind"]]
    try:
        return model.model_validate(current, context=STORED if is_stored else None)
    except ValidationError as error:
        raise spec_error(error, current, source, describe_fields(model)) from None


def read_content(path: Path) -> dict[str, Any]:
    """Return the decoded JSON object of a file, of whatever version.

    Raises:
        SpecError: where the file cannot be read or is no JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(
            f"The spec {path} must be a readable file.", received=error.strerror, advice="Check the path."
        ) from None
    except ValueError as error:
        raise SpecError(f"The spec {path} must be JSON.", received=str(error), advice="Mend it there.") from None
    if not isinstance(content, dict):
        raise SpecError(f"The spec {path} must hold a JSON object.", received=type(content).__name__)
    return content


def spec_json(spec: Spec) -> str:
    """Return the canonical JSON: the same spec always gives the same text, every field with its value."""
    return json.dumps(spec.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def save_spec(spec: Spec, path: Path) -> None:
    """Write the canonical JSON so that a reader, or a kill, sees the whole file or none.

    Raises:
        StorageError: where it cannot be written; what was there stays.
    """
    atomic_write_text(path, spec_json(spec), "The spec")
