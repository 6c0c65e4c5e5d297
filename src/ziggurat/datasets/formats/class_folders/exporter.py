"""Export to class folders: a folder for each split, with a folder for each class in it."""

from __future__ import annotations

from pathlib import Path

from ziggurat.atomic import storage_errors
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.class_folders.layout import write_classes
from ziggurat.datasets.formats.shared.exports import (
    FOLDER_KEYS_NAME,
    Export,
    ExportReport,
    FileNames,
    KeyWriter,
    encoded_part,
)
from ziggurat.datasets.formats.shared.folder_walk import walk_order
from ziggurat.errors import DatapointError

__all__ = ["export_class_folders"]


def export_class_folders(dataset: Dataset, folder: Path) -> ExportReport:
    """Write ``SPLIT/CLASS/…`` with the images as they are stored, and ``ziggurat-classes.json`` with all classes.

    Our importer gives the same samples back: where an image could not lie under its key, a hidden list in the class's
    folder says the key. The order within a class stays; that of samples of different classes is by class.

    Args:
        dataset: of kind image-classification.
        folder: new or empty.

    Raises:
        DataError: where the dataset is of another kind.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    export = Export(dataset, folder, "class_folders", ("image-classification",))
    classes = class_folder_names(dataset)
    with storage_errors(export.folder):
        write_classes(export.folder, dict(zip(classes, dataset.schema.class_names)))
        for split in dataset.splits:
            for name in classes:
                export.folder.joinpath(split, name).mkdir(parents=True)
    names = FileNames()
    for split in dataset.splits:
        _write_split(export, split, classes, names)
    return export.report()


def class_folder_names(dataset: Dataset) -> list[str]:
    """Return a folder's name for each class: that of the source, else made of the class's name."""
    schema = dataset.schema
    known = schema.details.get("class_folders")
    wanted = known if isinstance(known, list) and len(known) == len(schema.class_names) else schema.class_names
    found: list[str] = []
    for number, name in enumerate(wanted):
        plain = _plain(str(name)) or f"class-{number}"
        free = plain if plain.lower() not in {other.lower() for other in found} else f"{plain}-{number}"
        found.append(free)
    return found


def _write_split(export: Export, split: str, classes: list[str], names: FileNames) -> None:
    keys: dict[str, KeyWriter] = {}
    for sample in export.samples(split):
        name = classes[sample.label]
        start = f"{split}/{name}/"
        try:
            content = encoded_part(sample.parts[0], sample.key)
        except DatapointError as error:
            export.leave_out(sample.key, "unreadable", error.reason)
            continue
        path = names.place(start + _rest(sample.key, split, name), content)
        export.write(path, content)
        export.counts[split] += 1
        if name not in keys:
            keys[name] = KeyWriter(export.folder / start / FOLDER_KEYS_NAME, start, walk_order)
        keys[name].add(path.removeprefix(start), sample.key)
    for writer in keys.values():
        writer.finish()


def _rest(key: str, split: str, name: str) -> str:
    """Return the part of a key behind the folders of split and class."""
    rest = key.removeprefix(f"{split}/")
    rest = rest.removeprefix(f"{name}/") if rest.startswith(f"{name}/") else key
    return rest if any(part not in ("", ".", "..") for part in rest.split("/")) else "picture"


def _plain(name: str) -> str:
    """Return a name without what folders must not have."""
    kept = "".join(char if char.isprintable() and char not in '\\/:*?"<>|' else "_" for char in name)[:80].strip()
    return f"_{kept}" if kept.startswith(".") else kept
