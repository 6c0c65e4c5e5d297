"""Checks of a training before anything of it is created: all that needs no framework, for every face."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.formats.idx.importer import files_in, read_header_of
from ziggurat.datasets.image_size import image_size
from ziggurat.datasets.samples import split_of
from ziggurat.entities.backend_info import StandardNetwork, backend_infos, checkpoint_advice
from ziggurat.entities.pretrained_weights import PretrainedWeights, no_head_to_fit, no_model_to_tune, weights_name
from ziggurat.errors import (
    CheckpointError,
    ConfigurationError,
    DataError,
    MissingDependencyError,
    NetworkCodeError,
    SpecError,
    UnknownNameError,
    ZigguratError,
    broken_rule,
    nearest_names,
)
from ziggurat.formatting import plural
from ziggurat.layout import WEIGHTS_FOLDER, JobFolder, checkpoint_step
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.records.schema import KINDS, Schema
from ziggurat.specs import FileNetwork, TrainSpec, load_spec
from ziggurat.specs.dataset import Split
from ziggurat.tasks import AUTO_TASK, Task, task, tasks, tasks_for
from ziggurat.zoo.backends import AUTO, backend_for, check_backend, with_backend
from ziggurat.zoo.data import DATASET_OPTIONS, SOURCE_OPTIONS
from ziggurat.zoo.network_task import file_task, why_not_learned
from ziggurat.zoo.public_weights import PublicWeights, weights_to_add
from ziggurat.zoo.weights_folder import WeightsFolder

__all__ = [
    "DIGITS",
    "KnownData",
    "Pending",
    "check_rotation_needs_square",
    "default_title",
    "has_one_class",
    "input_part",
    "input_size",
    "known_data",
    "obstacle_of",
    "problem_sentence",
    "standard_network",
    "why_no_fit",
    "why_not_trainable",
]

_CHANNELS: Final[Mapping[str, int]] = {"GRAY": 1, "RGB": 3, "BGR": 3}
"""Color of the images of pretrained weights → channels of their first layer."""

Pending = Literal["data", "pretrained"]
"""What a job that is still to be done will bring."""

DIGITS: Final = "digits"
"""Source of the data that comes with the program."""

_DIGITS_SIZES: Final = {"train": 1252, "val": 270, "test": 275}
_DIGITS_COUNTS: Final = (124, 127, 123, 128, 126, 127, 126, 125, 121, 125)
"""Of ``ziggurat.dataflow.dataset.digits.SklearnDigits``, whose splits are fixed."""

_TITLES: Final[Mapping[str, str]] = {
    "detection": "object detection",
    "table": "tables",
    "image-regression": "image regression",
    "image-to-image": "image-to-image translation",
    "image-pairs": "pairs of images",
    "text-classification": "text classification",
    "generic": "generic arrays",
}
"""Kind of a dataset → what is learned from it, where that is not its name."""

_MNIST_FILES: Final = "train-images*idx3*"

_SOME_CLASSES: Final = ("?", "??")
"""In place of classes that are not known yet."""

_COUNTED: Final = 25_000
"""Files of a folder of images that are counted; more are many."""

_PEEKED_AT: Final = 8
"""Images whose headers are read."""

_LOOKED_AT: Final = 10_000
"""Files of a folder that are looked at for an image."""

_FIELD = "augmentation.quad_rotation"
_FIT_HEAD: Final = "fine_tuning.fit_head"


@dataclass(frozen=True, kw_only=True)
class KnownData:
    """What is known of the data of a training without reading a sample.

    Args:
        kind: of the dataset, such as ``image-classification``.
        sizes: split → number of samples.
        classes: how many there are.
        size: (height, width) of all images.
        channels: of all images.
        class_names: by class number; empty if unknown.
        class_counts: samples of the training split by class number; empty if unknown.
        side_px: shorter side of a typical image, if their sizes differ; None if unknown.
    """

    kind: str = "image-classification"
    sizes: Mapping[str, int] = field(default_factory=dict)
    classes: int | None = None
    size: tuple[int, int] | None = None
    channels: int | None = None
    class_names: Sequence[str] = ()
    class_counts: Sequence[int] = ()
    side_px: int | None = None

    @property
    def known_classes(self) -> Sequence[str] | None:
        """Names of the classes, none for data without classes; None where that is not known."""
        return None if self.classes is not None and not self.class_names else self.class_names or self._no_classes

    @property
    def _no_classes(self) -> tuple[str, ...] | None:
        return None if self.kind == "image-classification" else ()


def input_part(kind: str) -> str:
    """Return what a network gets of a sample, by the kind of a dataset: ``image``, ``row``, ``text``, …"""
    return KINDS[kind][0]


def obstacle_of(
    spec: TrainSpec, *, pending: Collection[Pending] = (), workspace: Path | None = None
) -> ZigguratError | None:
    """Return why a training cannot succeed, with all that is wrong with it; None where nothing is known against it.

    The error is of the family of what is wrong, or a ``SpecError`` where it is several things; its
    ``details["problems"]`` lists ``field``, ``rule``, ``advice`` and ``received`` of each.

    Args:
        spec: of the training, with the places of data and weights.
        pending: what another job will bring, and cannot be looked at yet.
        workspace: whose pretrained weights the spec may name; None where they are not looked at.
    """
    problems = list(_problems(spec, pending, workspace))
    return _error_of(problems) if problems else None


def problem_sentence(problem: Mapping[str, str]) -> str:
    """Return a problem of a list in ``details["problems"]`` in words."""
    sentence = broken_rule(f"{problem['rule']}.", problem.get("received"))
    return f"{sentence} {problem['advice']}".strip()


def known_data(source: str, options: Mapping[str, Any]) -> KnownData:
    """Return what is known of a source.

    Raises:
        DataError: where it is not there, or nothing that can be trained on.
        UnknownNameError: where an option is unknown.
    """
    folder = Path(source)
    is_dataset = (folder / MANIFEST_NAME).is_file()
    known = DATASET_OPTIONS if is_dataset else SOURCE_OPTIONS
    for name in options:
        if name not in known:
            raise UnknownNameError("option of the data", name, known)
    if is_dataset:
        return _of_manifest(folder)
    if source == DIGITS:
        side = 8 if options.get("size") == 8 else 28
        names = [str(number) for number in range(10)]
        return KnownData(
            sizes=_DIGITS_SIZES,
            classes=10,
            size=(side, side),
            channels=1,
            class_names=names,
            class_counts=_DIGITS_COUNTS,
        )
    _check_folder(source, folder)
    return _of_idx(folder, options) if any(folder.glob(_MNIST_FILES)) else _of_images(folder, options)


def _of_images(folder: Path, options: Mapping[str, Any]) -> KnownData:
    """Return what the names of the files of a folder of images say, and the headers of some of them."""
    counts: dict[str, int] = {}
    some: list[Path] = []
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        path = Path(place)
        images = sorted(name for name in files if os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES)
        if path == folder or not images:
            continue
        split = split_of(f"{path.relative_to(folder).as_posix()}/")
        counts[split] = counts.get(split, 0) + len(images)
        if len(some) < _PEEKED_AT:
            some.append(path / images[0])
        if sum(counts.values()) > _COUNTED:  # many, and counting them takes long
            return KnownData(channels=3, side_px=_typical_side(some))
    sizes = {split: count for split, count in counts.items() if split} if "train" in counts else {}
    if not sizes and (total := sum(counts.values())):
        shares = Split()
        val, test = (
            share if isinstance(share := options.get(f"{name}_share", usual), int | float) else usual
            for name, usual in (("validation", shares.val_share), ("test", shares.test_share))
        )
        sizes = {"val": round(total * val), "test": round(total * test)}
        sizes = {"train": total - sum(sizes.values()), **{split: count for split, count in sizes.items() if count}}
    return KnownData(channels=3, sizes=sizes, side_px=_typical_side(some))


def _typical_side(files: Sequence[Path]) -> int | None:
    """Return the median of the shorter sides of images, in pixels; None where none has a header."""
    sides = []
    for file in files:
        with suppress(ValueError, OSError):
            sides.append(min(image_size(file)))
    return int(statistics.median(sides)) if sides else None


def _of_idx(folder: Path, options: Mapping[str, Any]) -> KnownData:
    """Return what the headers of the files of MNIST say; a split without files of its own is a share, rounded."""
    shapes = {each.split: read_header_of(folder / each.values).shape for each in files_in(folder) if each.labels}
    if any(len(shape) != 3 for shape in shapes.values()) or "train" not in shapes:
        return KnownData(channels=1)
    sizes, share = {split: shape[0] for split, shape in shapes.items()}, options.get("validation_share")
    share = Split().val_share if share is None else share
    if "val" not in sizes and isinstance(share, int | float) and 0 <= share < 1:
        sizes["val"] = round(sizes["train"] * share)
        sizes["train"] -= sizes["val"]
    return KnownData(sizes=sizes, size=(shapes["train"][1], shapes["train"][2]), channels=1)


def why_not_trainable(kind: str, class_names: Sequence[str] | None = None) -> str:
    """Return why no network is trained on a dataset, and what can be done with it; empty where one can be.

    Args:
        kind: of the dataset.
        class_names: its classes; None where they are not known.
    """
    if tasks_for(_schema(kind, _SOME_CLASSES if class_names is None else class_names)):
        return ""
    possible = tasks_for(_schema(kind, _SOME_CLASSES))
    if possible:
        return possible[0].accepts(_schema(kind, ()))
    title = _TITLES.get(kind, kind)
    return f"Training for {title} is not available yet. You can explore, check, correct and export this set."


def _schema(kind: str, class_names: Sequence[str]) -> Schema:
    """Return as much of a schema as decides what can be learned."""
    return Schema(kind=kind, class_names=tuple(class_names), target="" if class_names else "target")


def default_title(kind: str, has_classes: bool) -> str:
    """Return what networks learn from a kind of dataset by default, such as ``image segmentation``; may be empty."""
    found = tasks_for(_schema(kind, _SOME_CLASSES if has_classes else ())) or tasks_for(_schema(kind, _SOME_CLASSES))
    return found[0].title if found else ""


def why_no_fit(
    network: StandardNetwork | None,
    kind: str,
    size: tuple[int, int] | None,
    class_names: Sequence[str] | None = None,
    task: str = "",
) -> str:
    """Return why a standard network cannot be trained on data; empty where it can, or where it is not known.

    Args:
        network: None where its backend has no such network, which is another problem.
        kind: of the dataset.
        size: (height, width) of what the network gets; None where it is not known.
        class_names: of the dataset; None where they are not known.
        task: that it is to learn, in place of its own; empty for its own.
    """
    if network is None:
        return ""
    sentence = why_not_learned(network, _schema(kind, _SOME_CLASSES if class_names is None else class_names), task)
    if sentence:
        return sentence
    if size is not None and min(size) < network.smallest_px:
        side = network.smallest_px
        return f"It needs images of at least {side} x {side} px; these have {size[0]} x {size[1]} px."
    return ""


def check_rotation_needs_square(spec: TrainSpec) -> None:
    """Refuse quarter turns where the images are known to be no squares; if unknown yet, its worker looks.

    A square that is cut out does not help: images are turned before it is.

    Args:
        spec: of a training, with the place of its data.

    Raises:
        SpecError: where the images of a batch would have several shapes.
    """
    if not spec.augmentation.swaps_sides:
        return
    size = spec.preprocessing.size or _size_of_data(Path(spec.data.source))
    if size is None or size[0] == size[1]:
        return
    rule, received = "Quarter turns by `rot90` or `rotall` need square images", f"{size[0]} x {size[1]} px"
    advice = "Turn by `rot180`, or set `preprocessing.size` to a square."
    raise SpecError(
        f"{rule}.",
        received=received,
        advice=advice,
        details={
            "source": "the request",
            "field": _FIELD,
            "problems": [{"field": _FIELD, "rule": rule, "advice": advice, "received": received}],
        },
    )


def _size_of_data(folder: Path) -> list[int] | None:
    """Return height and width of the images of a dataset; None where it is none, or they differ."""
    if not (folder / MANIFEST_NAME).is_file():
        return None
    image = Manifest.load(folder).image
    if image is None or image.height_px is None or image.width_px is None:
        return None
    return [image.height_px, image.width_px]


def _problems(
    spec: TrainSpec, pending: Collection[Pending], workspace: Path | None
) -> Iterator[tuple[str, ZigguratError]]:
    """Yield each thing that is wrong, with its field."""
    yield from _network_problems(spec)
    if spec.nodes > 1:
        yield from _node_problems(spec)
    data = None
    if "data" not in pending:
        try:
            data = known_data(spec.data.source, spec.data.options)
        except UnknownNameError as error:
            yield "data.options", error
        except ZigguratError as error:
            yield "data.source", error
    if data is not None:
        yield from _data_problems(spec, data)
    try:
        check_rotation_needs_square(spec)
    except SpecError as error:
        yield str(error.details["field"]), error
    if weights_name(spec.pretrained):
        problem = None if workspace is None else _why_no_weights(spec, workspace, data)
    else:
        is_missing = spec.pretrained is not None and "pretrained" not in pending
        problem = _no_checkpoint(spec) if is_missing and not _has_weights(Path(spec.pretrained or "")) else None
    if problem is not None:
        yield "pretrained", problem
    if spec.fine_tuning is not None and spec.pretrained is None:
        yield "fine_tuning", no_model_to_tune()


def _node_problems(spec: TrainSpec) -> Iterator[tuple[str, ZigguratError]]:
    """Yield why the backend would not train on several nodes; what is wrong with the network is told elsewhere."""
    with suppress(ZigguratError):
        name = with_backend(spec).backend
        if not backend_infos()[name].trains_on_nodes:
            able = [f"`{each}`" for each, info in backend_infos().items() if info.trains_on_nodes]
            yield (
                "nodes",
                ConfigurationError(
                    f"The backend `{name}` does not train on several nodes.",
                    received=f"{spec.nodes} nodes",
                    advice=f"Use the backend {' or '.join(able)}, or one node.",
                ),
            )


def _no_checkpoint(spec: TrainSpec) -> ZigguratError:
    return CheckpointError(
        "`pretrained` must be a job folder with a checkpoint, or a checkpoint of the backend's framework.",
        received=spec.pretrained,
        advice=checkpoint_advice(),
    )


def _why_no_weights(spec: TrainSpec, workspace: Path, data: KnownData | None) -> ZigguratError | None:
    """Return why a training cannot start from the pretrained weights that it names; None where it can."""
    folder, name = WeightsFolder(workspace / WEIGHTS_FOLDER), weights_name(spec.pretrained)
    entry: PretrainedWeights | PublicWeights | None = None if folder.has(name) else weights_to_add(name)
    try:
        entry = entry or folder.get(name)
    except ZigguratError as error:
        return error
    network = "" if isinstance(spec.network, FileNetwork) else spec.network.name
    if not entry.network or not network:
        return None
    known = standard_network(spec)
    if entry.network not in (network, "" if known is None else known.backbone):
        return ConfigurationError(
            "Pretrained weights fit the network that they are of, and those that begin with its layers.",
            received=f"`{spec.pretrained}` of the network `{entry.network}`, for `{network}`",
            advice=f"Use the network `{entry.network}`, or other weights.",
        )
    wanted = _CHANNELS.get(str(entry.preprocessing.get("color", "")).upper())
    channels = spec.preprocessing.channels or (None if data is None else data.channels)
    if wanted is None or channels is None or channels == wanted:
        return None
    return ConfigurationError(
        "Pretrained weights fit images with as many color channels as those that they learned from.",
        received=f"{plural(channels, 'channel')} for `{spec.pretrained}`, which are for {wanted}",
        advice=f"Set `preprocessing.channels` to {wanted}.",
    )


def _network_problems(spec: TrainSpec) -> Iterator[tuple[str, ZigguratError]]:
    network = spec.network
    is_file = isinstance(network, FileNetwork)
    name = "" if is_file else network.name
    try:
        if spec.backend == AUTO:
            backend_for(name)
        else:
            check_backend(spec.backend, name)
    except UnknownNameError as error:
        yield "backend" if error.details["kind"] == "backend" else "network.name", error
    except ZigguratError as error:
        yield "backend", error
    info = backend_infos().get(spec.backend)
    if is_file and info is not None and not info.takes_network_files:
        names = " or ".join(f"`{each}`" for each in info.network_names)
        error = ConfigurationError(
            f"{network.path} is a network file; the backend `{spec.backend}` trains {names}.",
            advice="Use another backend.",
        )
        yield "backend", error
    if is_file and network.text is None and not Path(network.path).is_file():
        advice = "Check the path; a relative one starts at the current folder."
        rule = f"The network file {network.path} cannot be read as Python text: it is not there."
        yield "network.path", NetworkCodeError(rule, advice=advice)


def _data_problems(spec: TrainSpec, data: KnownData) -> Iterator[tuple[str, ZigguratError]]:
    named = "" if spec.task == AUTO_TASK else spec.task
    if not named and isinstance(spec.network, FileNetwork):
        named = file_task(spec.network)
    sentence = "" if named else why_not_trainable(data.kind, data.known_classes)
    if sentence:
        rule, _, advice = sentence.partition(". ")
        yield (
            "data.source",
            DataError(
                f"{rule}.",
                received=f"data of kind {data.kind}",
                advice=f"{advice} Your own program reads it with: ziggurat.dataflow.RecordData.",
            ),
        )
        return
    network = spec.network
    problems = list(_task_problems(named, data)) if named else []
    yield from problems
    sentence = (
        ""
        if problems
        else why_no_fit(standard_network(spec), data.kind, input_size(spec, data), data.known_classes, named)
    )
    if sentence:
        assert not isinstance(network, FileNetwork)
        rule = f"The network `{network.name}` must fit the data. {sentence}"
        yield "network.name", ConfigurationError(rule, advice="Choose another network, or other data.")
    batch, train = spec.batch_size * spec.gradient_accumulation_steps, data.sizes.get("train")
    if train is not None and batch > train:
        rule = "A batch must not be larger than the training split."
        received = f"{batch:,} for {train:,} samples"
        yield "batch_size", DataError(rule, received=received, advice="Make `batch_size` smaller.")
    if not problems:
        yield from _mixing_problems(spec, data, named)
        yield from _oversampling_problems(spec, data, named)
        yield from _head_problems(spec, data, named)
    weights = len(spec.class_weights)
    if weights and data.classes is not None and weights != data.classes:
        rule = f"There must be a class weight for each of the {data.classes} classes."
        yield "class_weights", ConfigurationError(rule, received=str(weights), advice="Exclude for equal ones.")


def _mixing_problems(spec: TrainSpec, data: KnownData, named: str) -> Iterator[tuple[str, ZigguratError]]:
    """Yield why samples cannot be mixed."""
    varied = spec.augmentation
    joins = _reasons(spec, data, named, lambda each, _: "" if each.joins_objects else each.title)
    if varied.mosaic and joins and all(joins):
        rule = f"A mosaic joins the boxes of four images; in {joins[0]} there are none."
        yield "augmentation.mosaic", DataError(rule, received=f"{varied.mosaic:g}", advice="Set it to 0.")
    if varied.cutmix and joins and not any(joins):
        rule = "CutMix cuts through the objects of images."
        yield "augmentation.cutmix", DataError(rule, received=f"{varied.cutmix:g}", advice="Set it to 0.")
    fields = [name for name in ("mixup", "cutmix") if getattr(varied, name)]
    if not fields:
        return
    reasons = _reasons(spec, data, named, lambda each, schema: each.why_not_mixed(schema))
    if reasons and all(reasons):
        field = f"augmentation.{fields[0]}"
        rule = f"Mixup and CutMix do not fit this task. {reasons[0]}"
        yield field, DataError(rule, received=f"`{field}` {getattr(varied, fields[0]):g}", advice="Set it to 0.")


def _oversampling_problems(spec: TrainSpec, data: KnownData, named: str) -> Iterator[tuple[str, ZigguratError]]:
    """Yield why samples of rare classes cannot be seen more often."""
    if not spec.oversample_below:
        return
    reasons = _reasons(spec, data, named, lambda each, schema: each.why_not_oversampled(schema))
    if reasons and all(reasons):
        rule = f"Rare classes cannot be seen more often here. {reasons[0]}"
        received = f"`oversample_below` {spec.oversample_below:g}"
        yield "oversample_below", DataError(rule, received=received, advice="Set it to 0.")


def _head_problems(spec: TrainSpec, data: KnownData, named: str) -> Iterator[tuple[str, ZigguratError]]:
    """Yield why the last layer cannot be fitted to features."""
    if spec.fine_tuning is None or not spec.fine_tuning.fit_head:
        return
    if find_spec("scipy") is None:
        yield _FIT_HEAD, MissingDependencyError("scipy", extra="backbones", purpose="fitting the last layer")
    reasons = _reasons(spec, data, named, lambda each, _: "" if has_one_class(each) else each.title)
    if reasons and all(reasons):
        yield _FIT_HEAD, no_head_to_fit(reasons[0])


def has_one_class(learned: Task) -> bool:
    """Return whether a task learns one class for each sample."""
    target = learned.usual_target((1, 1, 1), 2)
    return target is not None and target.is_class_number and target.classes is not None


def _reasons(spec: TrainSpec, data: KnownData, named: str, why_not: Callable[[Task, Schema], str]) -> list[str]:
    """Return what each task that may be learned says against something; empty where nothing is known."""
    network = standard_network(spec)
    schema = _schema(data.kind, _SOME_CLASSES if data.known_classes is None else data.known_classes)
    names = (named,) if named else () if network is None else network.tasks
    learned = [
        each for name in names if (each := tasks().get(name)) is not None and not each.accepts(schema)
    ] or tasks_for(schema)[:1]
    return [why_not(each, schema) for each in learned]


def _task_problems(name: str, data: KnownData) -> Iterator[tuple[str, ZigguratError]]:
    try:
        chosen = task(name)
    except ZigguratError as error:  # unknown, or the package that brings it does not load
        yield "task", error
        return
    classes = _SOME_CLASSES if data.known_classes is None else data.known_classes
    reason = chosen.accepts(_schema(data.kind, classes))
    if reason:
        rule = f"The task `{name}` must fit the data. {reason}"
        yield "task", DataError(rule, advice="Choose another task, or leave it to the network.")


def standard_network(spec: TrainSpec) -> StandardNetwork | None:
    """Return the standard network of a spec; of ``auto``, that of the first backend that knows it."""
    if isinstance(spec.network, FileNetwork):
        return None
    infos = backend_infos()
    chosen = infos.values() if spec.backend == AUTO else [infos[spec.backend]] if spec.backend in infos else []
    return next((found for info in chosen if (found := info.network(spec.network.name)) is not None), None)


def input_size(spec: TrainSpec, data: KnownData) -> tuple[int, int] | None:
    """Return (height, width) of what the network gets."""
    before = spec.preprocessing
    if before.crop is not None:
        return before.crop, before.crop
    return data.size if before.size is None else (before.size[0], before.size[1])


def _of_manifest(folder: Path) -> KnownData:
    manifest = Manifest.load(folder)
    sizes = {split: note.count for split, note in manifest.splits.items()}
    kind, image = manifest.schema.kind, manifest.image
    if tasks_for(manifest.schema) and "train" not in sizes:
        raise DataError(f"`{folder}` has no training split, only {', '.join(sizes)}.")
    size = None if image is None or None in (image.height_px, image.width_px) else (image.height_px, image.width_px)
    return KnownData(
        kind=kind,
        sizes=sizes,
        classes=len(manifest.schema.class_names) or None,
        size=size,  # pyright: ignore[reportArgumentType]
        channels=None if image is None else image.channels,
        class_names=manifest.schema.class_names,
        class_counts=manifest.splits["train"].class_counts if "train" in manifest.splits else (),
    )


def _check_folder(source: str, folder: Path) -> None:
    """Refuse a folder that is not there, or holds no images in class folders."""
    if not folder.is_dir():
        entries = os.listdir(folder.parent) if folder.parent.is_dir() else []
        beside = [name for name in entries if not name.startswith(".")]
        nearest = [str(folder.with_name(name)) for name in nearest_names(folder.name, beside)]
        nearest = [*(["digits"] if nearest_names(source, [DIGITS]) else []), *nearest]
        question = f"Did you mean {' or '.join(f'`{name}`' for name in nearest[:3])}? " if nearest else ""
        raise DataError(
            f"`data` is {source!r}, neither `digits` nor a folder.",
            advice=f"{question}Check the path, or use `digits`.",
        )
    if JobFolder(folder).spec.is_file() and load_spec(JobFolder(folder).spec).kind == "dataset":
        raise DataError(
            f"The dataset {source} is not complete, so it cannot be trained on.",
            advice=f"Finish it with: ziggurat resume {source}.",
        )
    if not any(folder.glob(_MNIST_FILES)) and not _has_class_images(folder):
        raise DataError(
            f"`{source}` has no folder for each class with images in it.",
            advice=f"Images are files that end in {', '.join(sorted(IMAGE_SUFFIXES))}.",
        )


def _has_class_images(folder: Path) -> bool:
    """Return whether there is an image in a folder below; where there are very many files, it is taken for granted."""
    looked_at = 0
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files if Path(place) != folder else ():
            looked_at += 1
            if looked_at > _LOOKED_AT or os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES:
                return True
        looked_at += len(folders)
        if looked_at > _LOOKED_AT:
            return True
    return False


def _has_weights(path: Path) -> bool:
    if checkpoint_step(path.name) is not None:
        return path.is_dir()
    folder = JobFolder(path).checkpoints
    try:
        found = folder.is_dir() and any(folder.iterdir())
        return found or any(info.has_checkpoint(path) for info in backend_infos().values())
    except OSError:  # a name that no file system takes, or no right to look
        return False


def _error_of(problems: Sequence[tuple[str, ZigguratError]]) -> ZigguratError:
    """Return the one error, or one that says them all; its details list them for pages."""
    listed = [
        {"field": place, "rule": error.rule.removesuffix("."), "advice": error.advice}
        | ({} if error.received is None else {"received": error.received})
        for place, error in problems
    ]
    details = {"source": "the request", "field": problems[0][0], "problems": listed}
    if len(problems) == 1:
        error = problems[0][1]
        error.details = {**error.details, **details}
        return error
    sentences = " ".join(f"({number}) {error}" for number, (_, error) in enumerate(problems, 1))
    return SpecError(f"The training cannot start for {len(problems)} reasons.", advice=sentences, details=details)
