"""Reading and writing of specs: JSON or YAML of any version, upgraded to the present one."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ziggurat.atomic import atomic_write_text
from ziggurat.errors import SpecError, nearest_names
from ziggurat.layout import present_paths, workspace_of
from ziggurat.specs.base import STORED, SpecModel
from ziggurat.specs.dataset import DatasetSpec
from ziggurat.specs.describe import describe_fields
from ziggurat.specs.embedding import EmbedSpec
from ziggurat.specs.evaluation import EvaluateSpec, InferSpec
from ziggurat.specs.problems import spec_error
from ziggurat.specs.program import ProgramSpec
from ziggurat.specs.train import TrainSpec

__all__ = [
    "SPEC_KINDS",
    "UPGRADES",
    "Spec",
    "load_spec",
    "load_train_spec",
    "parse_spec",
    "read_content",
    "save_spec",
    "spec_json",
    "upgrade",
]


_NO_PATHS: Final = ("name", "network")
"""Fields that may look like paths of the workspace and are none: the text of a network file stands in the spec."""

Spec = TrainSpec | DatasetSpec | EvaluateSpec | InferSpec | ProgramSpec | EmbedSpec
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
            f"{path} is a job of kind {spec.kind}; a trained network is in the folder of a training job.",
            advice="Name the folder, the id or the name of a training.",
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
        raise SpecError(f"The spec is a {type(content).__name__}, not a JSON object.", advice=f"Look at {source}.")
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
        raise SpecError(f"The spec {path} cannot be read: {error.strerror}.", advice="Check the path.") from None
    except ValueError as error:
        raise SpecError(f"The spec {path} is not JSON: {str(error).rstrip('.')}.", advice="Mend it there.") from None
    if not isinstance(content, dict):
        raise SpecError(f"The spec {path} holds a {type(content).__name__}, not a JSON object.")
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


Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes the content of one version and returns that of the next, without ``version``."""

SPEC_KINDS: Final[dict[str, type[SpecModel]]] = {
    "train": TrainSpec,
    "dataset": DatasetSpec,
    "evaluate": EvaluateSpec,
    "infer": InferSpec,
    "program": ProgramSpec,
    "embed": EmbedSpec,
}
"""Every kind of job that this release knows, with today's model."""

UPGRADES: Final[dict[tuple[str, int], Upgrade]] = {}
"""(kind, version) → the step to version + 1. Version 1 is the first that was released, so there is none yet."""


RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "train": {
        "accumulate": "gradient_accumulation_steps",
        "average_weights": "ema_decay",
        "checkpoints.keep_every_hours": "checkpoints.keep_checkpoint_every_n_hours",
    }
}
"""Kind → former path of a field → its path now. No step between two versions can say this: people leave the version
out, and the paths also come alone, as flags, in sweeps, in filters, and as fields of a form."""


def present_path(path: str, kind: str = "train") -> str:
    """Return the path that a field has now."""
    return RENAMED.get(kind, {}).get(path, path)


def known_paths(path: str, kind: str = "train") -> tuple[str, ...]:
    """Return all paths of a field, now and in earlier releases; those of no renamed field are the path itself."""
    now = present_path(path, kind)
    return now, *(old for old, new in RENAMED.get(kind, {}).items() if new == now)


def former_names(content: Mapping[str, Any]) -> dict[str, str]:
    """Return former path → path now of the fields that a decoded spec names as an earlier release did."""
    renamed = RENAMED.get(str(content.get("kind", "train")), {})
    return {old: new for old, new in renamed.items() if _holds(content, old)}


def present_names(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the decoded spec with the names that its fields have now; the same object where it has them already."""
    found = former_names(content)
    return _renamed(content, {old: new.rpartition(".")[2] for old, new in found.items()}) if found else content


def check_named_once(paths: Collection[str], kind: str = "train") -> None:
    """Refuse paths that name a field twice.

    Raises:
        SpecError: where a field is named both as it is now and as it was formerly.
    """
    for old, new in RENAMED.get(kind, {}).items():
        if old in paths and new in paths:
            raise SpecError(
                f"Both `{old}` and `{new}` are given, and `{old}` is the former name of `{new}`.",
                advice=f"Leave out `{old}`.",
                details={"field": new},
            )


def _holds(content: Any, path: str) -> bool:
    name, _, rest = path.partition(".")
    if not isinstance(content, Mapping) or name not in content:
        return False
    return not rest or _holds(content[name], rest)


def _renamed(content: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    current: dict[str, Any] = {}
    for name, value in content.items():
        below = {path.partition(".")[2]: new for path, new in names.items() if path.startswith(f"{name}.")}
        current[names.get(name, name)] = _renamed(value, below) if below else value
    return current


def upgrade(
    content: Mapping[str, Any],
    *,
    newest: Mapping[str, int] | None = None,
    upgrades: Mapping[tuple[str, int], Upgrade] = UPGRADES,
) -> dict[str, Any]:
    """Return the content in today's version and with the names of today.

    Args:
        content: a decoded spec of any version.
        newest: today's version of each kind.
        upgrades: the steps.

    Raises:
        SpecError: where the kind is unknown, the version is newer than this release, no step leads on, or a field has
            both its names.
    """
    newest = newest or {kind: model.model_fields["version"].default for kind, model in SPEC_KINDS.items()}
    kind, version = _kind(content, newest), _version(content)
    today = newest[kind]
    if version > today:
        raise SpecError(
            f"The `{kind}` spec is of version {version}; this release of Ziggurat knows version {today} and older.",
            advice="Use a newer release of Ziggurat.",
            details={"field": "version"},
        )
    current = dict(content)
    for step in range(version, today):
        if (kind, step) not in upgrades:
            raise SpecError(
                f"A `{kind}` spec of version {step} cannot be read any more.",
                advice="Write the spec anew; `ziggurat spec schema` lists the fields.",
                details={"field": "version"},
            )
        current = {**upgrades[kind, step](current), "kind": kind, "version": step + 1}
    check_named_once([path for both in RENAMED.get(kind, {}).items() for path in both if _holds(current, path)], kind)
    return dict(present_names(current))


def _kind(content: Mapping[str, Any], newest: Mapping[str, int]) -> str:
    kind = content.get("kind")
    if isinstance(kind, str) and kind in newest:
        return kind
    known = ", ".join(f"`{name}`" for name in newest)
    if kind is None:
        raise SpecError("The spec does not say its `kind`.", advice=f"Known: {known}.", details={"field": "kind"})
    nearest = nearest_names(str(kind), newest)
    advice = f"Did you mean `{nearest[0]}`? " if nearest else ""
    raise SpecError(
        f"`{kind}` is not a kind of job that this release knows.",
        advice=f"{advice}Known: {known}.",
        details={"field": "kind"},
    )


def _version(content: Mapping[str, Any]) -> int:
    version = content.get("version", 1)
    if isinstance(version, int) and not isinstance(version, bool) and version >= 0:
        return version
    raise SpecError(
        f"`version` is {version}; it must be a whole number from 0 on.",
        advice="Leave it out for the first version.",
        details={"field": "version"},
    )
