"""Import of a network of Torch: the Lua text, or a saved model, as a network file with weights, spec and report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.compat.caffe.blobs import read_mean
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.geometry import Shape
from ziggurat.compat.caffe.graph import Graph
from ziggurat.compat.caffe.importing import Conversion, ImportOptions, cut_mean, read_labels, read_text
from ziggurat.compat.caffe.network_code import Preparation, write_network
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.compat.caffe.weights import state_of
from ziggurat.compat.torch7.errors import TorchError
from ziggurat.compat.torch7.lua import run_lua
from ziggurat.compat.torch7.modules import BROKEN, build_torch_graph, modules_of
from ziggurat.compat.torch7.saved import WEIGHTED, arrays_of, fitted_arrays, record_of, weighted_modules
from ziggurat.compat.torch7.t7 import read_t7

__all__ = ["convert_torch"]

_SIDES: Final = (28, 32, 64, 96, 128, 224, 227, 256, 299)


def convert_torch(
    files: ImportFiles, options: ImportOptions, *, text: str | None = None, classes: int = 0
) -> Conversion:
    """Return a converted network of Torch; nothing is written.

    Args:
        files: ``network`` is the Lua text; mean and labels.
        options: what a person says; ``color`` is ``RGB`` unless said.
        text: of the network, where it comes from an editor; None to read the file.
        classes: ``params.nclasses``; 0 for the number of labels, else nil.

    Raises:
        TorchError: if a file is damaged, or asks for what an import does not know; names the line.
    """
    labels = [] if files.labels is None else read_labels(files.labels)
    try:
        source = _Source(files, text, classes or len(labels))
        record, graph, owners = _read(source, options)
        conversion = _converted(files, options, record, graph)
        if source.saved is not None:
            conversion = _with_weights(conversion, source.saved, record, owners)
    except TorchError:
        raise
    except CaffeError as error:  # of parts that both imports share
        raise TorchError(
            error.rule.removeprefix(f"Line {error.line}: "),
            line=error.line,
            advice=error.advice.replace("--until LAYER", "a shorter file"),
            **({} if error.received is None else {"received": error.received}),
        ) from None
    except BROKEN as error:
        raise TorchError(
            f"The file changes its modules in a way that is not known to an import: {str(error)[:100].rstrip('.')}."
        ) from None
    if labels and graph.class_count and len(labels) != graph.class_count:
        conversion.warnings.append(f"{len(labels)} class names, and {graph.class_count} classes in the network.")
    return replace(conversion, labels=labels)


class _Source:
    """What is converted: a text in Lua, or a saved model.

    Args:
        files: of the import.
        text: from an editor; None to read the file.
        classes: ``params.nclasses``; 0 for nil.
    """

    def __init__(self, files: ImportFiles, text: str | None, classes: int) -> None:
        is_saved = text is None and files.network.suffix.lower() == ".t7"
        path = files.network if is_saved else files.weights
        self.saved = None if path is None else read_t7(path)
        self._record = record_of(self.saved) if is_saved else None
        self._text = "" if is_saved else read_text(files.network) if text is None else text
        self._classes = classes

    def record(self, shape: Shape | None) -> dict[str, Any]:
        """Return the record of the network for a size of images."""
        if self._record is not None:
            return self._record
        record = run_lua(self._text, classes=self._classes, shape=shape, hook=self.saved is not None)
        if not record["is_function"]:  # it is the same for every size
            self._record = record
        return record


def _read(source: _Source, options: ImportOptions) -> tuple[dict[str, Any], Graph, dict[str, int]]:
    """Return record and layers, for the first size of images that fits."""
    shapes = [options.shape] if options.shape else [*_shapes(source, options)]
    first: CaffeError | None = None
    is_of_text = True
    for shape in shapes:
        try:
            record = source.record(shape)
        except CaffeError as error:  # such as an assertion about `params.inputShape`
            first = first or error
            continue
        try:
            return record, *build_torch_graph(record, _cropped(record, shape))
        except CaffeError as error:
            first, is_of_text = (error if is_of_text else first), False
    assert first is not None
    raise first


def _crop_of(record: Mapping[str, Any]) -> int:
    crop = record.get("croplen")
    return int(crop) if isinstance(crop, int | float) and 0 < crop < 1 << 14 else 0


def _cropped(record: Mapping[str, Any], shape: Shape) -> Shape:
    """Return what the network takes of images of a size, which is ``params.inputShape``: their crop if there is one."""
    crop = _crop_of(record)
    return (shape[0], crop, crop) if 0 < crop <= min(shape[1:]) else shape


def _shapes(source: _Source, options: ImportOptions) -> Iterator[Shape]:
    """Give sizes of images that the file may be for: that of the dataset, one that can be cropped, and usual ones."""
    usual = options.usual_shape
    record = source.record(usual)
    modules = modules_of(record["model"])
    first = next((each for each in modules if "SpatialConv" in str(each["kind"]) and each["args"]), None)
    channels = first["args"][0] if first is not None else None
    counts = [int(channels)] if isinstance(channels, int | float) else []
    counts += [each for each in (3, 1) if each not in counts]
    if usual is not None:
        yield usual
    crop = _crop_of(record)
    for count in counts:
        for side in [*((256, crop) if crop else ()), *_SIDES]:
            yield count, side, side
    # What only reshapes and multiplies tells how many numbers an image has.
    flat = next((each for each in modules if each["kind"] in ("View", "Reshape", "Linear") and each["args"]), None)
    numbers = flat["args"][0] if flat is not None else None
    if isinstance(numbers, int | float) and 1 <= numbers < 1 << 20:
        for count in (1, 3):
            side = math.isqrt(int(numbers) // count)
            if count * side * side == numbers:
                yield count, side, side
        yield int(numbers), 1, 1


def _with_weights(
    conversion: Conversion, saved: Any, record: Mapping[str, Any], owners: Mapping[str, int]
) -> Conversion:
    """Return a conversion with the arrays of a saved model, or of a tensor with all of its weights."""
    own = record_of(saved)["model"]
    modules = [(number, kind, arrays_of(each, kind)) for number, kind, each in weighted_modules(own)]
    if "before" in record:  # the text has numbers of its own, in the same order
        wanted = [(int(number), kind) for number, kind in record["before"] if kind in WEIGHTED]
        if [_alike(kind) for _, kind in wanted] != [_alike(kind) for _, kind, _ in modules]:
            raise TorchError(
                "The weights are of another network.",
                received=f"{len(modules)} modules with weights, and {len(wanted)} in the text",
                advice="Give the network that they were trained with.",
            )
        modules = [(number, kind, arrays) for (number, kind), (_, _, arrays) in zip(wanted, modules)]
    given = {number: arrays for number, _, arrays in modules}
    arrays = fitted_arrays(conversion.graph, owners, given, conversion.warnings)
    mean = conversion.preparation.mean_image
    return replace(conversion, arrays=arrays, state=state_of(conversion.graph, conversion.file.modules, arrays, mean))


def _alike(kind: str) -> str:
    return kind.removesuffix("MM")


def _converted(files: ImportFiles, options: ImportOptions, record: Mapping[str, Any], graph: Graph) -> Conversion:
    notes, warnings = _told(record), list[str]()
    preparation, fields = _prepared(files, options, record, graph, notes)
    file = write_network(graph, preparation, file_name=files.network.name, tool="Torch")
    state = state_of(graph, file.modules, {}, preparation.mean_image)
    notes += [*graph.notes, *file.notes]
    return Conversion(graph, file, preparation, {}, state, fields, [], notes, warnings)


def _told(record: Mapping[str, Any]) -> list[str]:
    """Return what was read, for people."""
    if "is_function" not in record:
        return ["The network was read from the saved model."]
    notes = ["The file returns function(params)." if record["is_function"] else "The file returns a network."]
    if record.get("hooked"):
        notes.append("`fineTuneHook` changed the network that the weights are for.")
    if record.get("trainBatchSize"):
        notes.append("`trainBatchSize` became the batch size.")
    if record.get("validationBatchSize"):
        notes.append("`validationBatchSize` was left out: validation has the batch size of the training.")
    if record.get("disableAutoDataParallelism"):
        notes.append("`disableAutoDataParallelism` was left out: a training uses the devices that you choose.")
    if record.get("has_hook") and not record.get("hooked"):
        notes.append("`fineTuneHook` runs where old weights are given.")
    return notes


def _prepared(
    files: ImportFiles, options: ImportOptions, record: Mapping[str, Any], graph: Graph, notes: list[str]
) -> tuple[Preparation, dict[str, Any]]:
    """Return what is done to images inside the network, and the fields of a training."""
    shape = graph.shapes[graph.image]
    fields: dict[str, Any] = {}
    batch, crop = record.get("trainBatchSize"), _crop_of(record)
    if isinstance(batch, int | float) and 1 <= batch <= 1 << 20:
        fields["batch_size"] = int(batch)
    if crop:
        fields["preprocessing"] = {"crop": crop}
        notes.append("`croplen` became the crop of the training.")
    if len(shape) == 3 and shape[0] in (1, 3):
        fields["preprocessing"] = {**fields.get("preprocessing", {"size": [*shape[1:]]}), "channels": shape[0]}
    mean = None if files.mean is None else _mean(files.mean, shape)
    if mean is not None and options.color == "RGB" and files.mean is not None and _is_blob(files.mean):
        mean = np.ascontiguousarray(mean[::-1])  # blobs of Caffe are BGR
    return Preparation(color=options.color, mean_image=mean), fields


def _is_blob(path: Path) -> bool:
    return path.suffix.lower() == ".binaryproto"


def _mean(path: Path, shape: Shape) -> np.ndarray:
    """Return the mean image of the network's size: ``mean.jpg`` as DIGITS wrote it for Torch, or a blob."""
    if _is_blob(path):
        return cut_mean(read_mean(path), shape)
    try:
        content = np.frombuffer(path.read_bytes()[: 64 << 20], np.uint8)
        image = cv2.imdecode(content, cv2.IMREAD_GRAYSCALE if shape[0] == 1 else cv2.IMREAD_COLOR_RGB)
    except (OSError, cv2.error):
        image = None
    if image is None:
        raise TorchError(f"`{path.name}` is no mean: it is neither an image, such as `mean.jpg`, nor a `.binaryproto`.")
    found = image[None] if image.ndim == 2 else image.transpose(2, 0, 1)
    return cut_mean(np.ascontiguousarray(found, np.float32), shape)
