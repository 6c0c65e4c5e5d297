"""Stand-in for ``wandb`` in programs of a job: logged numbers and images become curves and images of the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ziggurat
from ziggurat.worker.stand_ins import Inert, with_submodules

__all__ = ["Config", "Image", "Run", "Table", "config", "finish", "init", "log", "run", "save", "summary", "watch"]

__version__ = "0.0.0"

with_submodules(__name__)


class Config(dict[str, Any]):
    """Settings of a run, as items and as attributes."""

    def __getattr__(self, name: str) -> Any:
        """Return the item of that name."""
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def update(self, values: Any = (), /, allow_val_change: bool = True, **named: Any) -> None:  # type: ignore[override]
        """Take settings: a mapping, or an object with attributes such as that of argparse."""
        super().update(values if isinstance(values, Mapping) else getattr(values, "__dict__", values), **named)

    def setdefaults(self, values: Any) -> None:
        """Take the settings that are not there."""
        self.update({**dict(values), **self})


class Image:
    """An image to log.

    Args:
        data_or_path: what ``ziggurat.log_image`` takes.
    """

    def __init__(self, data_or_path: Any, *_further: Any, **_named: Any) -> None:
        self.image = data_or_path


class Table:
    """A table; it is not recorded."""

    def __init__(self, *_values: Any, **named: Any) -> None:
        self.columns = named.get("columns") or []
        self.data: list[Any] = list(named.get("data") or [])

    def add_data(self, *row: Any) -> None:
        """Take a row."""
        self.data.append(list(row))


class Run:
    """The run of the job."""

    def __init__(self) -> None:
        self.config = config
        self.summary = summary
        self.id = self.name = "ziggurat"
        self.project = self.entity = self.url = self.dir = ""
        self.step = 0

    def log(self, data: Mapping[str, Any], step: int | None = None, **_named: Any) -> None:
        """Log numbers and images."""
        log(data, step)

    def finish(self, *_values: Any, **_named: Any) -> None:
        """End the run."""

    def watch(self, *_values: Any, **_named: Any) -> None:
        """Do nothing: gradients are not recorded."""

    def define_metric(self, *_values: Any, **_named: Any) -> None:
        """Do nothing: the step of each point is its x-coordinate."""

    def __getattr__(self, name: str) -> Any:
        """Return what does nothing."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(f"wandb.run.{name}")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_exc: object) -> None:
        """End the run."""


config = Config()
summary = Config()
run: Run | None = None
_waiting: dict[str, Any] = {}


def init(*_values: Any, **named: Any) -> Run:
    """Begin the run of the job."""
    global run
    config.update(named.get("config") or {})
    run = Run()
    return run


def log(data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, **_named: Any) -> None:
    """Log numbers as points of curves and ``Image`` as images; without ``commit``, with the next call."""
    _waiting.update(data)
    if commit is False and step is None:
        return
    values, images = dict(_waiting), {}
    _waiting.clear()
    for name, value in list(values.items()):
        if isinstance(value, Table | str | Inert) or value is None:
            del values[name]
        elif isinstance(value, Image) or (isinstance(value, list) and value and isinstance(value[0], Image)):
            images[name] = values.pop(name)
    ziggurat.log(values, step=step)
    for name, value in images.items():
        for number, image in enumerate(value if isinstance(value, list) else [value]):
            ziggurat.log_image(f"{name}/{number}" if isinstance(value, list) else name, image.image, step=step)


def finish(*_values: Any, **_named: Any) -> None:
    """End the run."""


def watch(*_values: Any, **_named: Any) -> list[Any]:
    """Do nothing: gradients are not recorded."""
    return []


def define_metric(*_values: Any, **_named: Any) -> None:
    """Do nothing: the step of each point is its x-coordinate."""


def login(*_values: Any, **_named: Any) -> bool:
    """Do nothing."""
    return True


def save(*_values: Any, **_named: Any) -> list[Any]:
    """Do nothing: files of a program stay in the folder of its job."""
    return []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Inert(f"wandb.{name}")
