"""Stand-in for ``mlflow`` in programs of a job: metrics and images that are logged become those of the job."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import ziggurat
from ziggurat.worker.stand_ins import Inert, with_submodules

__all__ = [
    "ActiveRun", "active_run", "end_run", "log_image", "log_metric", "log_metrics", "log_param", "log_params",
    "set_experiment", "set_tracking_uri", "start_run",
]  # fmt: skip

__version__ = "0.0.0"

with_submodules(__name__)


class ActiveRun:
    """The run of the job."""

    def __init__(self) -> None:
        self.info = SimpleNamespace(run_id="ziggurat", experiment_id="0", run_name="ziggurat", artifact_uri="")
        self.data = SimpleNamespace(params=_params, metrics={}, tags={})

    def __enter__(self) -> ActiveRun:
        return self

    def __exit__(self, *_exc: object) -> None:
        """End the run."""


_params: dict[str, Any] = {}


def start_run(*_values: Any, **_named: Any) -> ActiveRun:
    """Begin the run of the job."""
    return ActiveRun()


def active_run() -> ActiveRun:
    """Return the run of the job."""
    return ActiveRun()


def end_run(*_values: Any, **_named: Any) -> None:
    """End the run."""


def log_metric(key: str, value: Any, step: int | None = None, **_named: Any) -> None:
    """Add a point to a curve."""
    ziggurat.log({key: value}, step=step)


def log_metrics(metrics: Mapping[str, Any], step: int | None = None, **_named: Any) -> None:
    """Add a point to each curve."""
    ziggurat.log(metrics, step=step)


def log_image(image: Any, artifact_file: str | None = None, key: str = "", step: int | None = None, **_n: Any) -> None:
    """Add an image."""
    ziggurat.log_image(key or artifact_file or "image", image, step=step)


def log_param(key: str, value: Any, **_named: Any) -> Any:
    """Keep a parameter of the run."""
    _params[key] = value
    return value


def log_params(params: Mapping[str, Any], **_named: Any) -> None:
    """Keep parameters of the run."""
    _params.update(params)


def set_tag(key: str, value: Any, **_named: Any) -> Any:
    """Do nothing: the job has the tags that it was submitted with."""
    return value


def set_tags(*_values: Any, **_named: Any) -> None:
    """Do nothing: the job has the tags that it was submitted with."""


def set_experiment(*_values: Any, **_named: Any) -> None:
    """Do nothing: the job belongs to a project of the studio."""


def set_tracking_uri(*_values: Any, **_named: Any) -> None:
    """Do nothing: the studio tracks the job."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Inert(f"mlflow.{name}")
