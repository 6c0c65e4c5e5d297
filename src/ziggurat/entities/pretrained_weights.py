"""Pretrained weights of a workspace: what is known of them, and how a spec names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from ziggurat.errors import ConfigurationError

__all__ = [
    "WEIGHTS_PREFIX",
    "PretrainedWeights",
    "WeightsUser",
    "no_head_to_fit",
    "no_model_to_tune",
    "preprocessing_text",
    "weights_name",
]

WEIGHTS_PREFIX: Final = "weights:"
"""``pretrained`` of a spec begins with it where it names pretrained weights of the workspace."""

_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class PretrainedWeights:
    """Weights that trainings start from, under their published names, such as ``layer1.0.conv1.weight``.

    Args:
        name: of the weights in the workspace; a spec names them ``weights:NAME``.
        title: what people call them.
        network: name of the standard network that they fit; empty if unknown.
        license: such as ``BSD-3-Clause``; empty if unknown.
        source: URL, or a sentence that says where they come from; empty if unknown.
        sha256: checksum of the file in the workspace, in hexadecimal digits.
        source_sha256: checksum of the file as it was published; another one if it had to be converted.
        size_bytes: of the file in the workspace.
        arrays: number of arrays.
        parameters: numbers in all arrays.
        class_count: classes of the last layer; 0 if unknown.
        classes: names of the classes by number; empty if unknown.
        preprocessing: ``mean`` and ``std`` of the colors (images from 0 to 1), ``size`` (height, width) in pixels,
            ``color`` (such as ``RGB``); any may be missing.
        added: when they came into the workspace, in seconds since 1970.
        added_by: name of the user who added them; empty if unknown.
    """

    name: str
    title: str
    network: str = ""
    license: str = ""
    source: str = ""
    sha256: str = ""
    source_sha256: str = ""
    size_bytes: int = 0
    arrays: int = 0
    parameters: int = 0
    class_count: int = 0
    classes: tuple[str, ...] = ()
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    added: float = 0.0
    added_by: str = ""

    @property
    def reference(self) -> str:
        """What stands in a spec as ``pretrained``."""
        return f"{WEIGHTS_PREFIX}{self.name}"

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file beside the weights."""
        return {"version": _VERSION, **asdict(self)}

    @classmethod
    def of_json(cls, content: Any) -> Self:
        """Return what the content of such a file says.

        Raises:
            ValueError: if it is not valid, or of a later version.
        """
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            raise ValueError("not a description of pretrained weights in version 1")
        values = {name: value for name, value in content.items() if name in cls.__dataclass_fields__}
        for name, value in values.items():
            default = cls.__dataclass_fields__[name].default
            kinds = (int, float) if name == "added" else type(default)
            if isinstance(default, str | int | float) and not isinstance(value, kinds):
                raise ValueError(f"`{name}` is {value!r}")
        if not isinstance(values.get("name"), str) or not isinstance(values.get("title"), str):
            raise ValueError("`name` and `title` are texts")
        classes, preprocessing = values.get("classes", ()), values.get("preprocessing", {})
        if not isinstance(classes, list | tuple) or not all(isinstance(each, str) for each in classes):
            raise ValueError("`classes` is a list of names")
        if not isinstance(preprocessing, dict):
            raise ValueError("`preprocessing` is an object")
        return cls(**{**values, "classes": tuple(classes), "preprocessing": preprocessing})


@dataclass(frozen=True, kw_only=True)
class WeightsUser:
    """A training that starts from pretrained weights.

    Args:
        id: of the job, or the path of its folder.
        name: of the job.
        state: a name in ``JOB_STATES``.
    """

    id: str
    name: str
    state: str


def weights_name(pretrained: str | None) -> str:
    """Return the name of the pretrained weights that a spec asks for; empty where it asks for something else."""
    text = pretrained or ""
    return text.removeprefix(WEIGHTS_PREFIX) if text.startswith(WEIGHTS_PREFIX) else ""


def preprocessing_text(preprocessing: Mapping[str, Any]) -> str:
    """Return in words how images are prepared, such as ``RGB, 224 × 224 px, mean 0.5, std 0.5``."""
    parts = [str(preprocessing["color"])] if preprocessing.get("color") else []
    if size := preprocessing.get("size"):
        parts.append(f"{' × '.join(map(str, size))} px")
    parts += [f"{name} {_numbers(preprocessing[name])}" for name in ("mean", "std") if preprocessing.get(name)]
    return ", ".join(parts)


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def no_model_to_tune() -> ConfigurationError:
    """Return the error of a training with ``fine_tuning`` and without ``pretrained``."""
    return ConfigurationError(
        "`fine_tuning` needs a pretrained model.",
        received="`fine_tuning` without `pretrained`",
        advice="Set `pretrained`, such as `weights:resnet18`, or leave `fine_tuning` out.",
    )


def no_head_to_fit(task: str) -> ConfigurationError:
    """Return the error of a training that fits its last layer where a sample has not one class.

    Args:
        task: its title.
    """
    return ConfigurationError(
        "Only for one class for each sample can the last layer be fitted to features.",
        received=f"`fine_tuning.fit_head` for {task}",
        advice="Leave it out.",
    )
