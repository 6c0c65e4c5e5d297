"""Use cases of pretrained weights: list, add files, download public ones, remove; see ``zoo.weights_folder``."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import storage_errors
from ziggurat.entities.pretrained_weights import PretrainedWeights, WeightsUser, weights_name
from ziggurat.entities.trash import WEIGHTS, Trash, not_in_trash
from ziggurat.errors import CheckpointError, JobError, UnknownNameError, UsageError
from ziggurat.layout import FEATURES_FOLDER, WEIGHTS_FOLDER, WeightsFiles
from ziggurat.net.ssrf import AllowedAddresses
from ziggurat.settings import Settings
from ziggurat.workspace.job_folders import JobRepository
from ziggurat.workspace.tasks import Tasks
from ziggurat.workspace.weights_download import check_sha256, download_file
from ziggurat.zoo import STANDARD_NETWORKS
from ziggurat.zoo.heads import head_classes
from ziggurat.zoo.public_weights import PUBLIC_WEIGHTS, PublicWeights, public_weights, weights_to_add
from ziggurat.zoo.weight_files import check_weights_file, file_sha256
from ziggurat.zoo.weights_folder import WeightsFolder

__all__ = [
    "WEIGHT_SUFFIXES",
    "NewWeights",
    "Weights",
    "class_names_of",
    "name_of_file",
    "preprocessing_of",
    "weight_networks",
]

PYTORCH_SUFFIXES: Final = (".pth", ".pt")
WEIGHT_SUFFIXES: Final = (".safetensors", *PYTORCH_SUFFIXES)
"""Ends of the names of files that are taken."""

_IN_USE: Final = ("queued", "running", "stopping")
_CONVERSION_LIMIT_S: Final = 900.0
_LONGEST: Final = 1000
_MOST_CLASSES: Final = 100_000
_MOST_TEXT_BYTES: Final = 4 << 20
_LARGEST_PX: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class NewWeights:
    """What a person says of a file of weights.

    Args:
        name: of the weights; empty for that of the file.
        title: what people call them; empty for the name.
        network: name of the standard network that they fit; empty if unknown.
        license: such as ``BSD-3-Clause``; empty if unknown.
        source: URL, or a sentence that says where they come from.
        sha256: checksum of the file, or the digits that it begins with; empty for no comparison.
        class_count: classes of the last layer; 0 for those of the file.
        classes: their names; empty if unknown.
        preprocessing: as in ``PretrainedWeights``.
    """

    name: str = ""
    title: str = ""
    network: str = ""
    license: str = ""
    source: str = ""
    sha256: str = ""
    class_count: int = 0
    classes: tuple[str, ...] = ()
    preprocessing: Mapping[str, Any] = field(default_factory=dict)


class Weights:
    """The pretrained weights of a workspace. Any thread may call any method.

    Args:
        settings: of this process.
        tasks: convert files of PyTorch, in a process of their own.
        jobs: tell who uses weights.
        clock: seconds since 1970.
        public: the download list.

    Attributes:
        folder: where they are.
        public: the download list.
    """

    def __init__(
        self,
        settings: Settings,
        tasks: Tasks,
        jobs: JobRepository,
        clock: Callable[[], float] = time.time,
        public: Sequence[PublicWeights] = PUBLIC_WEIGHTS,
    ) -> None:
        root = settings.workspace.expanduser()
        self._root = root
        self._is_kept = settings.trash_days > 0
        self.public = tuple(public)
        self.folder = WeightsFolder(root / WEIGHTS_FOLDER)
        self._features = root / FEATURES_FOLDER
        self._tasks = tasks
        self._jobs = jobs
        self._clock = clock
        # As for the data of a training: a person on their own machine may fetch from everywhere.
        self._allowed = AllowedAddresses.of("source_hosts", settings.source_hosts) if settings.is_for_others else None

    def all(self) -> list[PretrainedWeights]:
        """Return the weights by name."""
        return self.folder.all()

    def names(self) -> tuple[str, ...]:
        """Return the names of the weights that a training may start from: those that its job would add, too."""
        addable = (each.name for each in self.public if each.can_be_added)
        return tuple(dict.fromkeys((*(each.name for each in self.folder.all()), *addable)))

    def get(self, name: str) -> PretrainedWeights:
        """Return weights by their name.

        Raises:
            MissingEntryError: if there are none of that name.
            CheckpointError: if their description is damaged.
        """
        return self.folder.get(name)

    def users(self, name: str) -> list[WeightsUser]:
        """Return the trainings that start from weights, the newest first."""
        return self._jobs.weights_users(f"weights:{name}")

    def add(self, file: Path, new: NewWeights, *, added_by: str = "") -> PretrainedWeights:
        """Add a file of weights; the file itself stays.

        Args:
            file: in the format safetensors, or of PyTorch (``.pth``, ``.pt``), which is converted.
            new: what is said of it.
            added_by: name of who asks.

        Raises:
            UsageError: if the name is taken or not valid, or the file is of another kind.
            UnknownNameError: if there is no such network.
            CheckpointError: if the file is damaged, or its checksum is another one.
            MissingDependencyError: if PyTorch is needed for the file, and not installed.
            StorageError: if the disk is full.
        """
        new = checked(replace(new, name=new.name.strip() or name_of_file(file)))
        self.folder.check_free(new.name)
        if not file.is_file():
            raise UsageError(f"The file of weights `{file}` does not exist.", advice="Check the path.")
        digest = file_sha256(file)
        check_sha256(digest, new.sha256, file.name)
        return self._placed(file, digest, new, added_by)

    def download(
        self,
        name: str,
        *,
        added_by: str = "",
        progress: Callable[[int, int | None], None] = lambda _received, _total: None,
    ) -> PretrainedWeights:
        """Download an entry of the download list, and add it under its name; one that comes with Ziggurat is copied.

        Args:
            name: of the entry.
            added_by: name of who asks.
            progress: as for ``download_file``.

        Raises:
            UnknownNameError: if the list has no such entry.
            UsageError: if there are weights of that name already.
            DataError: if the file cannot be downloaded.
            CheckpointError: if the file is damaged, or its checksum is another one.
            MissingDependencyError: if PyTorch is needed for the file, and not installed.
            StorageError: if the disk is full.
        """
        entry = self.downloadable(name)
        with self.folder.adding() as folder:
            file = folder / entry.file_name
            digest = download_file(entry, file, allowed=self._allowed, progress=progress)
            new = NewWeights(
                name=entry.name,
                title=entry.title,
                network=entry.network,
                license=entry.license,
                source=entry.url or entry.source,
                class_count=entry.class_count,
                classes=entry.classes,
                preprocessing=entry.preprocessing,
            )
            return self._placed(file, digest, new, added_by)

    def add_named(self, pretrained: str | None, *, added_by: str = "") -> None:
        """Add the weights that a spec names, if the workspace lacks them and their file is on this machine.

        Args:
            pretrained: of the spec.
            added_by: name of who asks.

        Raises:
            CheckpointError: if the file has another checksum than its publisher states.
            StorageError: if the disk is full.
        """
        name = weights_name(pretrained)
        if not name or self.folder.has(name) or weights_to_add(name, self.public) is None:
            return
        try:
            self.download(name, added_by=added_by)
        except UsageError:
            if not self.folder.has(name):  # another job may have added them meanwhile
                raise

    def downloadable(self, name: str) -> PublicWeights:
        """Return an entry of the download list that can be added.

        Raises:
            UnknownNameError: if the list has no such entry.
            UsageError: if there are weights of that name already.
        """
        entry = public_weights(name, self.public)
        self.folder.check_free(entry.name)
        return entry

    def remove(self, name: str, *, forever: bool = False) -> str:
        """Delete weights that no training needs now; return the id by which they can be restored, or an empty text.

        Args:
            name: of the weights; with ``forever`` also the id or name of deleted ones.
            forever: whether they are removed from the disk at once.

        Raises:
            MissingEntryError: if there are none of that name.
            UsageError: if several deleted ones have the name.
            JobError: if a training that waits or runs starts from them.
            StorageError: if they cannot be moved.
        """
        if forever and not os.path.lexists(self.folder.path / name):
            Trash(self._root).remove(Trash(self._root).find(WEIGHTS, name))
            return ""
        users = self._jobs.weights_users(f"weights:{name}", _IN_USE)
        if users and self.folder.has(name):
            raise JobError(
                f"The weights `{name}` are used by "
                f"{', '.join(f'{each.name} ({each.id})' for each in users[:5])}, so they cannot be "
                "removed.",
                advice="Wait for its end, or stop it first.",
                details={"jobs": [each.id for each in users]},
            )
        if forever or not self._is_kept:
            self.folder.remove(name)
            return ""
        gone = Trash(self._root).discard(
            self.folder.path_of(name), "", self._clock(), kind=WEIGHTS, name=name, size_bytes=self._size_bytes(name)
        )
        return "" if gone is None else gone.id  # None: another process removed them

    def restore(self, text: str) -> PretrainedWeights:
        """Put deleted weights back, and return them.

        Args:
            text: their id or, if no other deleted ones have it, their name.

        Raises:
            MissingEntryError: if they are not deleted, or are removed from the disk.
            UsageError: if there are others of the name now, or several deleted ones of it.
            StorageError: if they cannot be moved.
        """
        deleted = Trash(self._root).find(WEIGHTS, text)
        if os.path.lexists(self.folder.path / deleted.name):
            raise UsageError(
                f"There are other pretrained weights of the name `{deleted.name}` now.",
                advice=f"Remove those first, then restore {deleted.id}.",
                details={"id": deleted.id, "name": deleted.name},
            )
        if not Trash(self._root).restore(deleted):
            raise not_in_trash(WEIGHTS, text)
        return self.folder.get(deleted.name)

    def delete_features(self) -> int:
        """Delete the stored features of samples; return the bytes that they took."""
        size_bytes = 0
        for path in (*self._features.glob("*.npy"), *self._features.glob("*.json")):
            with suppress(FileNotFoundError):
                size_bytes += path.stat().st_size
                path.unlink()  # who reads it, reads on
        return size_bytes

    def _size_bytes(self, name: str) -> int | None:
        """Return the size of the file of weights; None if their description is damaged."""
        with suppress(CheckpointError):
            return self.folder.get(name).size_bytes
        return None

    def _placed(self, file: Path, digest: str, new: NewWeights, added_by: str) -> PretrainedWeights:
        with self.folder.adding() as folder:
            target = WeightsFiles(folder).arrays
            if file.suffix.lower() in PYTORCH_SUFFIXES:
                self._tasks.convert_weights(file, target, network=new.network, time_limit_s=_CONVERSION_LIMIT_S)
            else:
                with storage_errors(target):
                    shutil.copyfile(file, target)
            shapes = check_weights_file(target).shapes
            found = head_classes(new.network, shapes)
            _check_classes(new, found)
            return self.folder.place(
                folder,
                PretrainedWeights(
                    name=new.name,
                    title=new.title or new.name,
                    network=new.network,
                    license=new.license,
                    source=new.source,
                    source_sha256=digest,
                    class_count=new.class_count or len(new.classes) or found,
                    classes=new.classes,
                    preprocessing=dict(new.preprocessing),
                    added=self._clock(),
                    added_by=added_by,
                ),
            )


def weight_networks() -> tuple[str, ...]:
    """Return the names of networks that weights may be of."""
    return tuple(dict.fromkeys((*STANDARD_NETWORKS, *(each.network for each in PUBLIC_WEIGHTS))))


def name_of_file(file: Path) -> str:
    """Return the name that weights get from their file: ``resnet18-f37072fd`` of ``resnet18-f37072fd.pth``.

    Raises:
        UsageError: if it is no file of weights by its name.
    """
    if file.suffix.lower() not in WEIGHT_SUFFIXES:
        raise UsageError(
            f"`{file.name}` is no file of weights: these end in {', '.join(f'`{each}`' for each in WEIGHT_SUFFIXES)}.",
            advice="Convert it with the program that wrote it.",
            details={"field": "file"},
        )
    return re.sub(r"[^A-Za-z0-9._-]+", "-", file.stem).strip("-._")[:100]


def checked(new: NewWeights) -> NewWeights:
    """Return what is said of weights, without blanks around it.

    Raises:
        UnknownNameError: if there is no such network.
        UsageError: if a text is too long, or the checksum is none.
    """
    texts = {name: getattr(new, name).strip() for name in ("name", "title", "network", "license", "source", "sha256")}
    for name, text in texts.items():
        if len(text) > _LONGEST or not text.isprintable():
            raise UsageError(
                f"`{name}` is {text[:50]!r}, not one line of at most {_LONGEST} characters.", details={"field": name}
            )
    if texts["network"] and texts["network"] not in weight_networks():
        raise UnknownNameError("standard network", texts["network"], weight_networks())
    if texts["sha256"] and not re.fullmatch(r"[0-9a-fA-F]{8,64}", texts["sha256"]):
        raise UsageError(
            f"`{texts['sha256'][:80]}` is no SHA-256 checksum: it has 64 hexadecimal digits; the first "
            "8 or more may be given.",
            details={"field": "sha256"},
        )
    return replace(new, **texts)


def class_names_of(content: bytes) -> tuple[str, ...]:
    """Return the names in a text file with one in each line, or in a JSON list.

    Raises:
        UsageError: if it is neither.
    """
    try:
        if len(content) > _MOST_TEXT_BYTES:
            raise ValueError(f"{len(content):,} bytes")
        text = content.decode("utf-8-sig")
        names = json.loads(text) if text.lstrip().startswith("[") else text.splitlines()
        plain = [each.strip() for each in names]
        while plain and not plain[-1]:
            plain.pop()
        if len(plain) > _MOST_CLASSES or not all(each.isprintable() for each in plain):
            raise ValueError("names that are no text, or too many")
    except (ValueError, AttributeError, RecursionError) as error:
        raise UsageError(
            "A file of class names has one name in each line, or is a JSON list of names.",
            received=str(error)[:200],
            advice="The first line is the class 0.",
            details={"field": "classes"},
        ) from None
    return tuple(plain)


def preprocessing_of(mean: str = "", std: str = "", size: str = "", color: str = "") -> dict[str, Any]:
    """Return the preprocessing of texts that a person typed: numbers with commas or blanks between them.

    Args:
        mean: of each color channel, of images from 0 to 1.
        std: likewise.
        size: height and width in pixels, or one number for both.
        color: such as ``RGB``.

    Raises:
        UsageError: if one is none of these.
    """
    found: dict[str, Any] = {}
    if color.strip():
        found["color"] = _color(color.strip())
    if size.strip():
        sides = _numbers("size", size.lower().replace("x", " ").replace("×", " "), most=2)
        if not all(1 <= side <= _LARGEST_PX and side == int(side) for side in sides):
            raise _no_numbers("size", size)
        found["size"] = [int(side) for side in (sides * 2)[:2]]
    for name, text in (("mean", mean), ("std", std)):
        if text.strip():
            found[name] = _numbers(name, text, most=4)
    return found


def _color(text: str) -> str:
    if text.upper() not in ("RGB", "BGR", "GRAY"):
        raise UsageError(
            f"The order of the colors is {text[:20]!r}, not `RGB`, `BGR` or `GRAY`.", details={"field": "color"}
        )
    return text.upper()


def _numbers(name: str, text: str, *, most: int) -> list[float]:
    try:
        found = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise _no_numbers(name, text) from None
    if not 1 <= len(found) <= most or not all(abs(number) < 1e6 for number in found):
        raise _no_numbers(name, text)
    return found


def _no_numbers(name: str, text: str) -> UsageError:
    what = "one or two whole numbers" if name == "size" else "one to four numbers with commas between them"
    return UsageError(f"`{name}` is {text[:80]!r}, not {what}.", details={"field": name})


def _check_classes(new: NewWeights, found: int) -> None:
    """Refuse a number of classes that the last layer does not have."""
    said = len(new.classes) or new.class_count
    if new.classes and new.class_count and new.class_count != len(new.classes):
        raise UsageError(
            f"There are {new.class_count} classes, and {len(new.classes)} names.", details={"field": "classes"}
        )
    if said and found and said != found:
        raise CheckpointError(
            f"There are {said} classes, and a last layer for {found}.",
            advice="Give the names in the order of the numbers, all of them.",
            details={"field": "classes"},
        )
