"""Functions of a Python session: train a network, open a run or a dataset, and list runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.errors import ConfigurationError, DataError, UnknownNameError, UsageError
from ziggurat.interactive.datasets import Dataset
from ziggurat.interactive.exported import ExportedModel, is_export
from ziggurat.interactive.folder_home import FolderHome
from ziggurat.interactive.home import Home
from ziggurat.interactive.homes import current_home
from ziggurat.interactive.progress import say
from ziggurat.interactive.run import Run, Runs, finish
from ziggurat.interactive.sources import MadeFiles, files_of, stamp_of
from ziggurat.settings import load_settings
from ziggurat.specs import DatasetSpec, TrainSpec, assign, describe_fields, present_path
from ziggurat.workspace.recipe_fields import fill_recipe
from ziggurat.workspace.training_checks import DIGITS

__all__ = ["dataset", "load", "runs", "train"]

_TRAIN, _DATASET = "train", "dataset"
_MADE_NAME: Final = "from Python"


def train(
    data: Any,
    network: str | Path | None = None,
    epochs: int | None = None,
    *,
    framework: str | None = None,
    name: str | None = None,
    out: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Train a network in a process of its own, and return the run when it is done.

    The recommended recipe for the data fills everything that is not given.

    Args:
        data: dataset, or what ``dataset`` opens or makes one of without further settings: a name, ``digits``, a folder
            of images, a file, arrays.
        network: name of a standard network, such as ``resnet18``, or a Python file; the recommended one by default.
        epochs: number of epochs.
        framework: ``tensorflow`` or ``torch``; by default the one that is installed and knows the network.
        name: name of the run; network and data by default.
        out: new folder of the run; by default one in the workspace. A studio chooses it itself.
        progress: whether the recipe and a bar are shown.
        settings: further fields of a train spec, such as ``learning_rate=0.01``, ``optimizer="adam"``,
            ``pretrained=run``, and parts of them, such as ``schedule__gamma=0.5``.

    Raises:
        ConfigurationError: if a setting or a name is not known, or the network does not fit the data.
        DataError: if the data cannot be read.
        TrainingError: if the training diverges or cannot go on; other errors as they end the worker.
        KeyboardInterrupt: after Ctrl-C, once a checkpoint is saved; ``resume`` of the run goes on with it.
    """
    home, source = _data(data, progress=progress)
    content: dict[str, Any] = {"kind": _TRAIN, "version": 1}
    pretrained = settings.pop("pretrained", None)
    model = pretrained.id if isinstance(pretrained, Run) else ""
    given = {"network": network, "epochs": epochs, "backend": framework, "name": name}
    given["pretrained"] = None if model else pretrained
    given = {path: value for path, value in given.items() if value is not None} | settings
    paths = _assigned(content, given, TrainSpec)
    recipe = home.recipe(source, _network(network, framework))
    if recipe is None:
        raise ConfigurationError(
            f"`{source}` cannot be trained on: no network takes its kind of data.", advice="Choose other data."
        )
    filled = fill_recipe(content, paths, recipe)
    place = None if out is None else Path(out).expanduser()
    if place is not None and not isinstance(home, FolderHome):
        raise UsageError(
            f"out={str(out)!r} is given, and a studio chooses the folder of a run itself.", advice="Leave out `out`."
        )
    job = home.create_training(content, source, model, place)
    chosen = ", ".join(f"{path} {value}" for path, value in filled.items())
    say(f"Recommended recipe: {chosen}", is_shown=progress and bool(filled))
    finish(home, job, progress=progress)
    return Run(home, job)


def load(run: str | Path) -> Any:
    """Open a run or an exported model.

    Args:
        run: name or id of a run, of equal names the newest; the path of its folder; the address of its page; the name
            of a published model; or the path of an export.

    Returns:
        ``Run``, or of an export ``ExportedModel``.

    Raises:
        MissingJobError: if there is none; the message has the nearest names.
        UsageError: if it is a dataset.
    """
    text, home = str(run), current_home()
    folder = Path(text).expanduser()
    if is_export(folder):
        return ExportedModel(folder)
    if (folder / "spec.json").is_file():
        home = home if isinstance(home, FolderHome) else FolderHome(load_settings())
    job = home.find(text, _TRAIN)
    kind = home.state(job).kind
    if kind == _DATASET:
        raise UsageError(f"`{text}` is a dataset, and no run.", advice=f"Open it with: ziggurat.dataset({text!r})")
    return Run(home, job)


def dataset(source: Any, *, name: str | None = None, progress: bool = True, **settings: Any) -> Dataset:
    """Open a dataset by its name, or make one of files or arrays; what was made of the same files is taken again.

    Args:
        source: name, id or folder of a dataset, or ``digits``; or a file, folder, archive or URL of any format that
            ``ziggurat dataset formats`` lists; or ``(images, labels)``, images (N, H, W) or (N, H, W, C) uint8; or a
            DataFrame, or a list of dicts.
        name: name of a new dataset; that of the source by default.
        progress: whether a bar is shown.
        settings: fields of a dataset spec, such as ``format="coco"``, ``size=64`` or ``splits__val_share=0.1``, and
            options of the format, such as ``target="price"`` of a table.

    Raises:
        DataError: if the source is not there, or cannot be read.
        UnknownNameError: if a setting is not known.
    """
    home = current_home()
    made = None if isinstance(source, (str, Path)) else files_of(source)
    if made is not None:
        return _made(home, made, name, settings, progress=progress)
    if not isinstance(source, (str, Path)):
        raise UsageError(
            f"A dataset cannot be made of a {type(source).__name__}: give a path, `(images, labels)`, or rows."
        )
    text = str(source)
    found = DIGITS if text == DIGITS else home.dataset_id(text)
    if found:
        if settings:
            raise UsageError(
                f"`{text}` is a finished dataset, which has no settings to choose.", received=", ".join(settings)
            )
        return Dataset(home, found)
    path = Path(text).expanduser()
    is_remote = "://" in text
    if not is_remote and not path.exists():
        raise DataError(f"`{text}` is no path, and no dataset in {home.title}.", advice="Check path and name.")
    place, stamp = (text, "") if is_remote else (str(path.absolute()), stamp_of(path.absolute()))
    return _create(home, place, stamp, name, settings, progress=progress)


def runs(limit: int = 50) -> Runs:
    """Return the newest runs, newest first.

    Args:
        limit: number of runs at most.
    """
    home = current_home()
    return Runs([Run(home, each) for each in home.ids(_TRAIN, limit)], home.title)


def _made(home: Home, made: MadeFiles, name: str | None, settings: Mapping[str, Any], *, progress: bool) -> Dataset:
    """Return a dataset of arrays or rows, which become files first."""
    with _staged(home, made) as source:
        return _create(home, str(source), made.stamp, name or _MADE_NAME, settings, progress=progress)


@contextmanager
def _staged(home: Home, made: MadeFiles) -> Iterator[Path]:
    """Write files into the workspace, where they stay, or into a temporary folder."""
    kept = home.staging()
    if kept is not None:
        yield made.write(kept / f"python-{made.stamp}")
        return
    with tempfile.TemporaryDirectory(prefix="ziggurat-") as folder:
        yield made.write(Path(folder) / f"python-{made.stamp}")


def _create(
    home: Home, source: str, stamp: str, name: str | None, settings: Mapping[str, Any], *, progress: bool
) -> Dataset:
    fields = {field.path.partition(".")[0] for field in describe_fields(DatasetSpec)}
    own = {key: value for key, value in settings.items() if key.partition("__")[0] in fields}
    content: dict[str, Any] = {"kind": _DATASET, "version": 1}
    options = {key: _plain(value) for key, value in settings.items() if key not in own}
    if options:
        content["options"] = options
    _assigned(content, ({} if name is None else {"name": name}) | own, DatasetSpec)
    job, is_new = home.create_dataset(content, source, stamp)
    if is_new:
        finish(home, job, progress=progress)
    made = Dataset(home, job)
    say(repr(made), is_shown=progress)
    for sentence in made.warnings:
        say(f"Warning: {sentence}", is_shown=progress and is_new)
    return made


def _data(data: Any, *, progress: bool) -> tuple[Home, str]:
    """Return the home of a training, and the id of its data; a dataset is made of what is none."""
    if isinstance(data, Dataset):
        return data.home, data.id
    made = dataset(data, progress=progress)
    return made.home, made.id


def _assigned(content: dict[str, Any], given: Mapping[str, Any], model: Any) -> list[str]:
    """Put values into the fields of a spec; return the paths of the fields.

    Raises:
        UnknownNameError: if there is no such field.
    """
    kind = str(content["kind"])
    fields = {field.path: field for field in describe_fields(model)}
    paths = []
    for key, value in given.items():
        path = present_path(key.replace("__", "."), kind)
        top = path.partition(".")[0]
        if top not in fields:
            raise UnknownNameError("setting of a training" if kind == _TRAIN else "setting", key, fields)
        assign(content, path, _plain(value), fields)
        paths.append(path)
    return paths


def _network(network: str | Path | None, framework: str | None) -> str | None:
    """Return a chosen network as ``recommend`` takes it."""
    if network is None:
        return None if framework is None else f"{framework}/"
    name = str(network)
    if name.endswith(".py") or "/" in name:
        return ""
    return name if framework is None else f"{framework}/{name}"


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
