"""Import of a network of Caffe: files in, a folder with a network file, weights, spec and report out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import save_file

from ziggurat.atomic import storage_errors
from ziggurat.compat.caffe.blobs import read_caffemodel, read_mean
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.forward import forward
from ziggurat.compat.caffe.geometry import Shape, array_shapes
from ziggurat.compat.caffe.graph import Graph, build_graph
from ziggurat.compat.caffe.layers import Layer, NetworkText, read_network
from ziggurat.compat.caffe.network_code import NetworkFile, Preparation, write_network
from ziggurat.compat.caffe.solver import Solver, read_solver
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.compat.caffe.weights import fitted, random_arrays, state_of
from ziggurat.errors import UsageError

__all__ = [
    "Conversion",
    "ImportOptions",
    "Run",
    "convert",
    "cut_mean",
    "parity",
    "read_labels",
    "read_text",
    "write_folder",
]

Run = Callable[[str, Mapping[str, np.ndarray], np.ndarray], tuple[list[np.ndarray], dict[str, np.ndarray]]]
"""Takes a network file, its arrays and images (N, C, H, W); returns its outputs, and module → what it gave last."""

TOLERANCE: Final = 1e-5
"""Largest difference, as a share of the largest output: float32 carries seven digits, and sums differ in order."""

_SAMPLES: Final = 2
_SHARES: Final = ("Sigmoid", "Softmax")
_MOST_TEXT_BYTES: Final = 8 << 20
_TRANSFORM: Final = ("scale", "mirror", "crop_size", "mean_file", "mean_value", "force_color", "force_gray")


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """What a person says of an import.

    Args:
        shape: of an image, (C, H, W); None for what the files say.
        until: last layer that is imported; empty for all.
        color: ``BGR`` or ``RGB``, the order in which the network takes colors.
        usual_shape: of an image if the files do not say it, such as that of a dataset; None for an error.
    """

    usual_shape: Shape | None = None
    shape: Shape | None = None
    until: str = ""
    color: str = "BGR"


@dataclass
class Conversion:
    """A converted network.

    Args:
        graph: the network of Caffe.
        file: the network file.
        preparation: what Caffe did to the images.
        arrays: layer → arrays of the weights, in Caffe's shapes; empty without weights.
        state: name in the network file → array.
        fields: of a training's spec: solver, preprocessing, augmentation.
        labels: names of the classes.
        notes: what was done.
        warnings: what was not done, or needs a look.
    """

    graph: Graph
    file: NetworkFile
    preparation: Preparation
    arrays: dict[str, list[np.ndarray]]
    state: dict[str, np.ndarray]
    fields: dict[str, Any]
    labels: list[str]
    notes: list[str]
    warnings: list[str] = field(default_factory=list)

    def layers(self) -> list[dict[str, Any]]:
        """Return a row for each layer: name, type, line, module, shape of what it gives, number of weights."""
        rows = []
        for node in self.graph.nodes:
            shapes = array_shapes(node.layer, [self.graph.shapes[number] for number in node.inputs])
            rows.append(
                {
                    "layer": node.layer.name,
                    "type": node.layer.kind,
                    "line": node.layer.line,
                    "module": self.file.modules.get(node.layer.name, ""),
                    "output": list(self.graph.shapes[node.outputs[0]]),
                    "parameters": sum(int(np.prod(shape)) for shape in shapes),
                }
            )
        return rows


def convert(files: ImportFiles, options: ImportOptions, *, text: str | None = None, classes: int = 0) -> Conversion:
    """Return a converted network; nothing is written.

    Args:
        files: what is read.
        options: what a person says.
        text: of the network, where it comes from an editor; None to read the file.
        classes: ``num_output`` of a last layer without one; 0 for the number of labels.

    Raises:
        CaffeError: where a file is damaged, or asks for what an import does not know; names the line.
    """
    network = read_network(read_text(files.network) if text is None else text)
    solver = None if files.solver is None else read_solver(read_text(files.solver))
    given = {} if files.weights is None else read_caffemodel(files.weights)
    mean = None if files.mean is None else read_mean(files.mean)
    labels = [] if files.labels is None else read_labels(files.labels)
    notes: list[str] = []
    shape = options.shape or _shape_of_mean(network, mean) or _deployed(files, options)
    graph = build_graph(
        network,
        shape,
        until=options.until,
        sizes={name: each[0].shape for name, each in given.items()},
        usual=options.usual_shape,
        classes=classes or len(labels),
    )
    warnings: list[str] = []
    preparation, fields = _prepared(graph, mean, options.color, warnings, notes)
    file = write_network(
        graph,
        preparation,
        file_name=files.network.name,
        weight_decay=0.0 if solver is None else solver.weight_decay,
        scales_rates=solver is None or solver.scales_rates,
    )
    arrays: dict[str, list[np.ndarray]] = {}
    if given:
        arrays, said = fitted(graph, given)
        warnings += said
    state = state_of(graph, file.modules, arrays, preparation.mean_image)
    fields |= _solved(solver, graph)
    if labels and graph.class_count and len(labels) != graph.class_count:
        warnings.append(f"{len(labels)} class names, and {graph.class_count} classes in the network.")
    notes += [*graph.notes, *file.notes, *([] if solver is None else solver.notes)]
    return Conversion(graph, file, preparation, arrays, state, fields, labels, notes, warnings)


def parity(conversion: Conversion, run: Run, *, seed: int = 0) -> dict[str, Any]:
    """Return the comparison of Caffe's forward pass in NumPy with the network file in PyTorch.

    Without weights, both get the same random ones. The images are random, 0 to 255.

    Args:
        conversion: the network.
        run: runs the network file.
        seed: of images and weights.
    """
    graph = conversion.graph
    arrays = {**random_arrays(graph, seed), **conversion.arrays}
    state = state_of(graph, conversion.file.modules, arrays, conversion.preparation.mean_image)
    shape = graph.shapes[graph.image]
    images = np.random.default_rng(seed).uniform(0, 255, (_SAMPLES, *shape)).astype(np.float32)
    expected = forward(graph, _as_caffe(images, conversion.preparation), arrays)
    outputs, inside = run(conversion.file.text, state, images)
    rows = []
    for node in graph.nodes:
        module = conversion.file.modules.get(node.layer.name)
        if module in inside and conversion.file.modules.get(node.layer.name) == module:
            wanted, found = expected[node.outputs[0]], inside[module]
            if wanted.size == found.size and _is_last(conversion, node.layer):
                rows.append({"layer": node.layer.name, "difference": _difference(wanted, found)})
    wanted_outputs = [expected[number] for number in graph.outputs]
    kinds = {number: node.layer.kind for node in graph.nodes for number in node.outputs}
    # Shares are compared on their scale of 0 to 1: of tiny ones, the last digit of the exponent is large.
    least = [1.0 if kinds.get(number) in _SHARES else 0.0 for number in graph.outputs]
    differences = [_difference(*each) for each in zip(wanted_outputs, outputs, least)]
    worst = max(differences, default=float("inf"))
    return {
        "samples": _SAMPLES,
        "largest_difference": worst,
        "tolerance": TOLERANCE,
        "holds": bool(worst <= TOLERANCE),
        "random_weights": bool(set(layers_with_arrays(graph)) - set(conversion.arrays)),
        "layers": rows,
    }


def layers_with_arrays(graph: Graph) -> list[str]:
    """Return the layers that have arrays."""
    return [
        node.layer.name
        for node in graph.nodes
        if array_shapes(node.layer, [graph.shapes[number] for number in node.inputs])
    ]


def write_folder(conversion: Conversion, folder: Path, report: Mapping[str, Any]) -> list[str]:
    """Write the files of an import into a new folder; return their names.

    ``network.py``, ``train.json`` (fields of a training's spec), ``report.json``, and where they are known
    ``weights.safetensors`` and ``labels.txt``.

    Raises:
        UsageError: if the folder holds files already.
        StorageError: if it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "The folder of an import is new or empty.", received=f"`{folder}`", advice="Choose another with --out."
        )
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "network.py").write_text(conversion.file.text, encoding="utf-8")
        spec = {"kind": "train", "version": 1, "backend": "torch"}
        spec |= {"network": {"source": "file", "path": str((folder / "network.py").resolve())}, **conversion.fields}
        (folder / "train.json").write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")
        if conversion.state:
            save_file(conversion.state, folder / "weights.safetensors")
        if conversion.labels:
            (folder / "labels.txt").write_text("\n".join(conversion.labels) + "\n", encoding="utf-8")
        (folder / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return sorted(each.name for each in folder.iterdir())


def digest(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parse_shape(text: str) -> Shape:
    """Return ``3x224x224`` as (3, 224, 224).

    Raises:
        UsageError: if it is no such text.
    """
    if not re.fullmatch(r"\d{1,4}x\d{1,5}x\d{1,5}", text) or "0" in text.split("x"):
        raise UsageError(
            f"--input is {text[:40]!r}, not CHANNELSxHEIGHTxWIDTH.", advice="Write it as in --input 1x28x28."
        )
    channels, height, width = map(int, text.split("x"))
    return channels, height, width


# ---- inside


def read_text(path: Path) -> str:
    """Return a text of at most 8 MiB.

    Raises:
        CaffeError: if it is longer, or cannot be read.
    """
    try:
        if path.stat().st_size > _MOST_TEXT_BYTES:
            raise CaffeError(f"`{path.name}` has {path.stat().st_size:,} bytes; texts are read up to 8 MiB.")
        return path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError as error:
        raise CaffeError("The file must be readable.", received=f"`{path}`: {error.strerror}") from None


def read_labels(path: Path) -> list[str]:
    """Return class names, one a line."""
    return [line.strip() for line in read_text(path).splitlines() if line.strip()][:100_000]


def _deployed(files: ImportFiles, options: ImportOptions) -> Shape | None:
    """Return the size of images that the other file of the network says; None where it does not."""
    if files.deploy is None or files.deploy == files.network:
        return None
    try:
        graph = build_graph(read_network(read_text(files.deploy)), None, until=options.until)
    except CaffeError:
        return None
    return graph.shapes[graph.image]


def _shape_of_mean(network: NetworkText, mean: np.ndarray | None) -> Shape | None:
    """Return the size of a mean image, where the network has no size of its own."""
    has_own = any(network.inputs.values()) or any(
        layer.kind in ("Input", "MemoryData") or layer.transform.integer("crop_size", 0) for layer in network.layers
    )
    return None if mean is None or has_own or mean.shape[1:] == (1, 1) else mean.shape


def _prepared(
    graph: Graph, mean: np.ndarray | None, color: str, warnings: list[str], notes: list[str]
) -> tuple[Preparation, dict[str, Any]]:
    """Return what is done to images inside the network, and what the spec of a training does."""
    channels, height, width = graph.shapes[graph.image] if len(graph.shapes[graph.image]) == 3 else (0, 0, 0)
    blob = graph.names[graph.image]
    source: Layer | None = next((each for each in graph.sources if blob in each.tops), None)
    fields: dict[str, Any] = {}
    values: tuple[float, ...] = ()
    scale = 1.0
    if source is not None:
        transform = source.transform
        scale = transform.number("scale", 1.0)
        values = tuple(transform.numbers("mean_value"))
        crop = transform.integer("crop_size", 0, 0, 1 << 16)
        if crop:
            fields["preprocessing"] = {"crop": crop}
        if transform.flag("mirror", False):
            fields["augmentation"] = {"flip": "fliplr"}
            notes.append("`mirror` became the augmentation `flip`.")
        if transform.has("mean_file") and mean is None:
            warnings.append(
                f"`mean_file` {transform.text('mean_file')[-80:]!r} was not given, so nothing is subtracted: "
                "give it with --mean, or the network sees other numbers than in its training."
            )
        others = [entry.name for entry in transform.entries if entry.name not in _TRANSFORM]
        if others:
            warnings.append(f"`transform_param` also has {', '.join(sorted(set(others))[:8])}, which was left out.")
        notes.append(f"{source.kind} `{source.name}` became the dataset of the training.")
    if values and len(values) not in (1, channels):
        line = source.transform.line_of("mean_value") if source else 0
        raise CaffeError(
            f"`mean_value` is given {len(values)} times, not once or {channels} times.",
            line=line,
        )
    values = values * channels if len(values) == 1 else values
    mean_image = None
    if mean is not None:
        if values:
            raise CaffeError("A network has `mean_value` or a mean image, not both.", advice="Leave --mean out.")
        mean_image = cut_mean(mean, (channels, height, width))
        if mean.shape[1:] == (1, 1):
            values, mean_image = tuple(round(float(each), 6) for each in mean.reshape(-1)), None
        elif mean.shape != mean_image.shape:
            notes.append("The mean image was cut in the center, as Caffe does in the test; in the training, too.")
    if color == "BGR" and channels in (3, 6):
        notes.append("Colors: the network takes BGR, and turns the studio's RGB around by itself.")
    if channels in (1, 3):
        cut = fields.get("preprocessing", {"size": [height, width]})
        fields["preprocessing"] = {**cut, "channels": channels}
    return Preparation(color=color, mean=values, mean_image=mean_image, scale=scale), fields


def cut_mean(mean: np.ndarray, shape: Shape) -> np.ndarray:
    """Return the part of a mean image that a centered crop sees."""
    if mean.shape[0] != shape[0]:
        raise CaffeError(
            f"The mean has {mean.shape[0]} channels, and the images have {shape[0]}.",
            advice="Give the mean of this network's dataset.",
        )
    if mean.shape[1:] == (1, 1):
        return mean
    top, left = ((mean.shape[axis] - shape[axis]) // 2 for axis in (1, 2))
    if top < 0 or left < 0:
        raise CaffeError(
            "The mean image is at least as large as the network's images.",
            received=f"{mean.shape[1]}x{mean.shape[2]} and {shape[1]}x{shape[2]}",
        )
    return mean[:, top : top + shape[1], left : left + shape[2]]


def _solved(solver: Solver | None, graph: Graph) -> dict[str, Any]:
    """Return the fields of a solver, with the batch size of the layer that reads the data."""
    fields: dict[str, Any] = {} if solver is None else {**solver.fields, "weight_decay": 0.0}
    for source in graph.sources:
        for name in ("data_param", "image_data_param", "hdf5_data_param", "memory_data_param"):
            size = source.message.message(name).integer("batch_size", 0, 0, 1 << 20)
            if size:
                return {**fields, "batch_size": size}
    return fields


def _as_caffe(images: np.ndarray, preparation: Preparation) -> np.ndarray:
    """Return images as Caffe's data layer gives them: BGR, less the mean, times the scale."""
    channels = images.shape[1]
    if preparation.color == "BGR" and channels % 3 == 0 and channels <= 6:
        images = images.reshape(len(images), -1, 3, *images.shape[2:])[:, :, ::-1].reshape(images.shape)
    if preparation.mean_image is not None:
        images = images - preparation.mean_image
    elif preparation.mean:
        images = images - np.asarray(preparation.mean, np.float32).reshape(1, -1, 1, 1)
    return (images * np.float32(preparation.scale)).astype(np.float32)


def _is_last(conversion: Conversion, layer: Layer) -> bool:
    """Return whether a layer is the last one that its module computes: layers may share one."""
    module = conversion.file.modules[layer.name]
    sharing = [
        node.layer.name for node in conversion.graph.nodes if conversion.file.modules.get(node.layer.name) == module
    ]
    return sharing[-1] == layer.name


def _difference(wanted: np.ndarray, found: np.ndarray, least: float = 0.0) -> float:
    """Return the largest difference as a share of the largest value, or of ``least``; infinite for other sizes."""
    if wanted.size != found.size or not wanted.size:
        return float("inf")
    first, second = wanted.reshape(-1).astype(np.float64), found.reshape(-1).astype(np.float64)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return 0.0 if np.array_equal(first, second, equal_nan=True) else float("inf")
    largest = max(float(np.abs(first).max()), least)
    gap = float(np.abs(first - second).max())
    return gap / largest if largest > 0 else gap
