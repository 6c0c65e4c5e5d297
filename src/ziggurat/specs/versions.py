"""Upgrades of older specs to the present version: one function for each step between two versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ziggurat.errors import SpecError, nearest_names
from ziggurat.specs.base import SpecModel
from ziggurat.specs.dataset import DatasetSpec
from ziggurat.specs.evaluation import EvaluateSpec, InferSpec
from ziggurat.specs.train import TrainSpec

__all__ = ["SPEC_KINDS", "UPGRADES", "Upgrade", "upgrade"]

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes the content of one version and returns that of the next, without ``version``."""

SPEC_KINDS: Final[dict[str, type[SpecModel]]] = {
    "train": TrainSpec,
    "dataset": DatasetSpec,
    "evaluate": EvaluateSpec,
    "infer": InferSpec,
}
"""Every kind of job that this release knows, with today's model."""

UPGRADES: Final[dict[tuple[str, int], Upgrade]] = {}
"""(kind, version) → the step to version + 1. Version 1 is the first that was released, so there is none yet."""


def upgrade(
    content: Mapping[str, Any],
    *,
    newest: Mapping[str, int] | None = None,
    upgrades: Mapping[tuple[str, int], Upgrade] = UPGRADES,
) -> dict[str, Any]:
    """Return the content in today's version; one that has today's already comes back as it is.

    Args:
        content: a decoded spec of any version.
        newest: today's version of each kind.
        upgrades: the steps.

    Raises:
        SpecError: where the kind is unknown, the version is newer than this release, or no step leads on.
    """
    newest = newest or {kind: model.model_fields["version"].default for kind, model in SPEC_KINDS.items()}
    kind, version = _kind(content, newest), _version(content)
    today = newest[kind]
    if version > today:
        raise SpecError(
            f"This release of Ziggurat knows version {today} of a `{kind}` spec and older.",
            received=f"version {version}",
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
    return current


def _kind(content: Mapping[str, Any], newest: Mapping[str, int]) -> str:
    kind = content.get("kind")
    if isinstance(kind, str) and kind in newest:
        return kind
    known = ", ".join(f"`{name}`" for name in newest)
    if kind is None:
        raise SpecError("A spec must say its `kind`.", advice=f"Known: {known}.", details={"field": "kind"})
    nearest = nearest_names(str(kind), newest)
    advice = f"Did you mean `{nearest[0]}`? " if nearest else ""
    raise SpecError(
        "`kind` must be a kind of job that this release knows.",
        received=kind,
        advice=f"{advice}Known: {known}.",
        details={"field": "kind"},
    )


def _version(content: Mapping[str, Any]) -> int:
    version = content.get("version", 1)
    if isinstance(version, int) and not isinstance(version, bool) and version >= 0:
        return version
    raise SpecError(
        "`version` must be a whole number from 0 on.",
        received=version,
        advice="Leave it out for the first version.",
        details={"field": "version"},
    )
