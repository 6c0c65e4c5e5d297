"""Predictions with an exported model without Ziggurat: an export contains this file as ``predict.py``.

    python predict.py FILE... [--top 5] [--score 0.3] [--json] [--out FOLDER]
    python predict.py --self-test [--json]

The files are images; tables (CSV with the names of the columns in the first line, or JSON, a list of objects); or
texts, one in each line: what the model takes. Predicted masks and images, and images with the boxes that were found,
are written as PNG files. The self-test runs the samples that the export brings, and says whether the model gives the
same on this machine.

It needs NumPy, OpenCV or Pillow for images, and the runtime of the model's format. ``preprocessing.json`` describes the
preprocessing, ``task.json`` what the outputs mean, ``labels.txt`` lists the names of the classes, and ``model.json``
says how to call the model.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "Reader",
    "Run",
    "TaskRules",
    "best_detections",
    "binary_mask",
    "decided_class",
    "drawn",
    "finish",
    "fit",
    "load_model",
    "main",
    "placement",
    "read_picture",
    "second_probability",
]

Run = Callable[[np.ndarray], "dict[str, np.ndarray]"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict for the inputs in files; return 0, 4 if one of them cannot be read, or 1 if the self-test fails."""
    parser = argparse.ArgumentParser(description="Predict with the model in this folder.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="images, tables (CSV, JSON), or texts line by line")
    parser.add_argument("--self-test", action="store_true", help="run the samples of the export, and compare")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="classes that are shown for each input")
    parser.add_argument("--score", type=float, metavar="S", help="least score of boxes that are shown")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--out", default=".", metavar="FOLDER", help="where masks and images go")
    given = parser.parse_args(arguments)
    if bool(given.files) == given.self_test:
        parser.error("name files, or give --self-test")
    folder = Path(__file__).resolve().parent
    model, inside = load_model(folder)
    if given.self_test:
        return _self_test(folder, model, as_json=given.json)
    reader = Reader(folder, inside)
    task = TaskRules(folder)
    least_score = task.least_score if given.score is None else given.score
    predictions: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    for path in given.files:
        for name, batch, original in reader.inputs(path):
            if isinstance(batch, str):
                failures.append({"file": name, "message": batch})
                continue
            outputs = {output: np.asarray(values[0]) for output, values in model(batch).items()}
            found = {"file": name, **task.described(outputs, given.top, original)}
            picture = task.picture(outputs)
            if "boxes" in found:
                picture = drawn(original, [each for each in found["boxes"] if each["score"] >= least_score])
            if picture is not None:
                found["picture"] = _written(picture, Path(given.out), Path(path).stem)
            predictions.append(found)
    _show(predictions, failures, least_score=least_score, as_json=given.json)
    return 4 if failures else 0


# ---- inputs


_NO_PICTURE = np.zeros((0, 0, 3), np.uint8)


class Reader:
    """Reads inputs of the model's kind. Threads may share it.

    Args:
        folder: of the export.
        inside: whether the model preprocesses by itself.

    Attributes:
        kind: ``image``, ``table`` or ``text``.
        columns: names of a table's columns, the target among them.
        target: name of the column that a row need not have; empty for none.
    """

    def __init__(self, folder: Path, inside: bool) -> None:
        self._folder = folder
        self._inside = inside
        self._content = json.loads((folder / "preprocessing.json").read_text(encoding="utf-8"))
        self._model = json.loads((folder / "model.json").read_text(encoding="utf-8"))["input"]
        self.kind = self._content.get("kind", "image")
        self.columns = [column["name"] for column in self._content.get("columns", ())]
        self.target = self._content.get("target", "")
        if self.kind != "image":
            self._rules = _preprocessing_rules(folder)
            self._encode = self._rules.encoder(self._content)

    def inputs(self, path: str) -> Iterator[tuple[str, Any, np.ndarray]]:
        """Yield name, batch of one and image (H, W, C) of each input in a file; in place of a batch, why there is none.

        The image has no pixel if the model takes none.
        """
        try:
            data = Path(path).read_bytes()
            if self.kind == "image":
                yield (path, *self.image(data))
                return
            samples = list(self._samples(path, data.decode("utf-8-sig")))
        except Exception as error:  # whatever a decoder raises is about this file alone
            yield path, f"It cannot be read as {_NOUNS[self.kind]}: {error}", _NO_PICTURE
            return
        for number, sample in enumerate(samples, 1):
            name = f"{path}:{number}"
            try:
                yield name, self.encoded(sample), _NO_PICTURE
            except ValueError as error:
                yield name, f"It cannot be used: {error}", _NO_PICTURE

    def image(self, data: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Return the batch of one that the model takes of an image file's bytes, and the image, (H, W, C) uint8."""
        picture = read_picture(data, self._content["channels"], self._content.get("bits", 16))
        fitted = fit(picture, self._content["size"], self._content["resize_mode"])[None]
        # A model for pairs gets the image twice: it gives the place of each.
        return self.prepared(np.concatenate([fitted] * self._model["images"], axis=3)), picture

    def encoded(self, sample: Any) -> np.ndarray:
        """Return the batch of one of a text, a row (name → value, or a list), or the names and cells of a file's row.

        Raises:
            ValueError: if the sample is not as the model needs it.
        """
        if isinstance(sample, tuple):  # the cells of a file; what was JSON has its values already
            names, cells = sample
            if len(names) != len(cells):
                raise ValueError(f"it has {len(cells)} cells instead of {len(names)}.")
            sample = self._rules.row_of_texts(self._content, dict(zip(names, cells)))
        return self.prepared(self._encode(sample)[None])

    def prepared(self, batch: np.ndarray) -> np.ndarray:
        """Return a batch of fitted images or encoded samples as the model takes it."""
        if not self._inside and self.kind != "image":
            batch = self._rules.finish(self._content, batch)
        elif not self._inside:
            images = np.split(batch, self._model["images"], axis=3)
            batch = np.concatenate([finish(each, self._content, self._folder) for each in images], axis=3)
        return np.ascontiguousarray(batch, self._model["dtype"])

    def _samples(self, path: str, text: str) -> Iterator[Any]:
        if self.kind == "text":
            return (line for line in text.splitlines() if line.strip())
        if Path(path).suffix.lower() == ".json":
            content = json.loads(text)
            rows = content if isinstance(content, list) else [content]
            if not all(isinstance(row, dict) for row in rows):
                raise ValueError('it must hold a list of objects, such as [{"column": 1}].')
            return iter(rows)
        return _csv_rows(text, self.columns, self.target)


_NOUNS = {"image": "an image", "table": "a table", "text": "lines of text"}


def _csv_rows(text: str, columns: Sequence[str], target: str) -> Iterator[Any]:
    """Yield names of columns and cells of each row. Without a line of names, the columns are those of the training."""
    lines = [line for line in text.splitlines(keepends=True) if line.strip()]
    first = lines[0] if lines else ""
    delimiter = max(",;\t|", key=first.count)
    rows = list(csv.reader(lines, delimiter=delimiter))
    header = [cell.strip() for cell in rows[0]] if rows else []
    if header and set(header) <= set(columns):
        rows = rows[1:]
    else:
        without_target = [name for name in columns if name != target]
        header = next((each for each in (list(columns), without_target) if len(each) == len(header)), [])
    if not header or not rows:
        raise ValueError(f"it needs rows of the columns {', '.join(columns)}")
    return ((header, row) for row in rows)


def _module(path: Path) -> Any:
    """Return the module in a file beside this one, from wherever this one was started."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # its dataclasses look themselves up
    # Compiled here: the loader would leave bytecode in the folder, which no manifest lists.
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


def _preprocessing_rules(folder: Path) -> Any:
    """Return the rules for rows and texts: the file beside this one, or, within Ziggurat, the module of the same."""
    beside = Path(__file__).with_name("standalone_preprocessing.py")
    return _module(beside if beside.is_file() else folder / beside.name)


# ---- the image


def read_picture(data: bytes, channels: int, bits: int = 16) -> np.ndarray:
    """Return the pixels of an image file's bytes, (H, W, channels) uint8, RGB; what is transparent lies on white.

    Args:
        data: content of the file.
        channels: 1 or 3.
        bits: number of bits that the values of 16-bit images use in training; larger values are reported.
    """
    try:
        from PIL import Image
    except ImportError:
        return _decode_with_opencv(data, channels, bits)
    if bits < 16 and data.startswith(b"\x89PNG") and data[24:26] in (b"\x10\x02", b"\x10\x06"):
        return _decode_with_opencv(data, channels, bits)  # Pillow drops the lower bits of colors
    return _decode_with_pillow(Image, data, channels, bits)


def fit(picture: np.ndarray, size: Sequence[int], mode: str) -> np.ndarray:
    """Return an image of another size.

    Args:
        picture: (H, W, C) uint8.
        size: (height, width).
        mode: ``squash`` ignores the aspect ratio; ``crop`` covers and cuts, ``fill`` fits in and fills with black, both
            sides alike; ``half_crop`` does half of both.
    """
    height, width = size
    if picture.shape[:2] == (height, width):
        return picture
    sides = _sides(picture.shape, size, mode)
    scaled = _scaled(picture, sides[0], sides[1])
    part = (min(sides[0], height), min(sides[1], width))
    top, left = (sides[0] - part[0]) // 2, (sides[1] - part[1]) // 2
    canvas = np.zeros((height, width, picture.shape[2]), np.uint8)
    y, x = (height - part[0]) // 2, (width - part[1]) // 2
    canvas[y : y + part[0], x : x + part[1]] = scaled[top : top + part[0], left : left + part[1]]
    return canvas


def _sides(shape: Sequence[int], size: Sequence[int], mode: str) -> list[int]:
    """Return height and width that an image of a shape is scaled to, before it is cut or filled up."""
    ratios = (shape[0] / size[0], shape[1] / size[1])
    if mode == "squash":
        return list(size)
    ratio = {"crop": min(ratios), "fill": max(ratios), "half_crop": sum(ratios) / 2}[mode]
    sides = [max(1, round(side / ratio)) for side in shape[:2]]
    if mode != "half_crop":
        decides = ratios.index(ratio)
        sides[decides] = size[decides]
    return sides


def placement(shape: Sequence[int], preprocessing: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return scale and place of an image in what the network gets: ``original * scale + place``, each (x, y) in px.

    Args:
        shape: of the image, (H, W, …).
        preprocessing: content of ``preprocessing.json``.
    """
    size = preprocessing["size"]
    sides = _sides(shape, size, preprocessing["resize_mode"]) if tuple(shape[:2]) != tuple(size) else list(size)
    crop = preprocessing["crop"]
    place = []
    for side, length in zip(sides, size):
        part = min(side, length)
        cut = 0 if crop is None else (length - crop) // 2
        place.append((length - part) // 2 - (side - part) // 2 - cut)
    scale = np.array([sides[1] / shape[1], sides[0] / shape[0]])
    return scale, np.array(place[::-1], np.float64)


def finish(pictures: np.ndarray, preprocessing: Mapping[str, Any], folder: Path) -> np.ndarray:
    """Return (N, H, W, C) float32 as the network gets it: less the mean, cropped in the middle, whitened."""
    finished = pictures.astype(np.float32)
    if preprocessing["mean"] == "pixel":
        finished -= np.array(preprocessing["mean_values"], np.float32)
    if preprocessing["mean"] == "image":
        finished -= np.load(folder / "mean.npy", allow_pickle=False)
    if preprocessing["crop"] is not None:
        side = preprocessing["crop"]
        top, left = (pictures.shape[1] - side) // 2, (pictures.shape[2] - side) // 2
        finished = finished[:, top : top + side, left : left + side]
    if preprocessing["whitening"]:
        flat = finished.reshape(len(finished), -1)
        spread = np.maximum(flat.std(axis=1, dtype=np.float64), 1 / np.sqrt(flat.shape[1])).astype(np.float32)
        level = flat.mean(axis=1, dtype=np.float64).astype(np.float32)
        finished = ((flat - level[:, None]) / spread[:, None]).reshape(finished.shape)
    return finished


# ---- the model


def load_model(folder: Path) -> tuple[Run, bool]:
    """Return what runs the model of a folder, and whether it preprocesses its inputs by itself."""
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    load = {
        "checkpoint": _load_checkpoint,
        "onnx": _load_onnx,
        "pb": _load_frozen_graph,
        "pt2": _load_pytorch_program,
        "safetensors": _load_weights,
        "savedmodel": _load_saved_model,
        "tflite": _load_tflite,
    }[description["format"]]
    names = list(description["outputs"])
    return load(str(folder / description["file"]), names), _is_inside(folder)


def _is_inside(folder: Path) -> bool:
    return json.loads((folder / "model.json").read_text(encoding="utf-8"))["preprocessing"] == "inside"


def _load_onnx(path: str, names: list[str]) -> Run:
    runtime = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (source,) = session.get_inputs()
    known = {output.name for output in session.get_outputs()}
    fetches = [name if name in known else f"{name}:0" for name in names]  # TensorFlow numbers what an operation gives
    return lambda batch: dict(zip(names, session.run(fetches, {source.name: batch})))


def _load_pytorch_program(path: str, names: list[str]) -> Run:
    torch = importlib.import_module("torch")
    model = torch.export.load(path).module()

    def run(batch: np.ndarray) -> dict[str, np.ndarray]:
        with torch.no_grad():
            found = model(torch.from_numpy(batch))
        return {name: found[name].numpy() for name in names}

    return run


def _load_weights(path: str, names: list[str]) -> Run:
    """Make the network of the network file that lies beside its weights."""
    model = _module(Path(path).with_name("standalone_network.py")).load_network(Path(path))
    return lambda batch: {name: value for name, value in model(batch).items() if name in names}


def _load_tflite(path: str, names: list[str]) -> Run:
    try:
        interpreter = importlib.import_module("ai_edge_litert.interpreter").Interpreter(model_path=path)
    except ModuleNotFoundError:
        interpreter = importlib.import_module("tensorflow").lite.Interpreter(model_path=path)
    (source,) = interpreter.get_input_details()

    def run(batch: np.ndarray) -> dict[str, np.ndarray]:
        interpreter.resize_tensor_input(source["index"], batch.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(source["index"], batch)
        interpreter.invoke()
        details = {output["name"].split(":")[0]: output["index"] for output in interpreter.get_output_details()}
        return {name: interpreter.get_tensor(details[name]) for name in names}

    return run


def _load_checkpoint(path: str, names: list[str]) -> Run:
    tf = importlib.import_module("tensorflow").compat.v1
    graph = tf.Graph()
    with graph.as_default():
        saver = tf.train.import_meta_graph(f"{path}.meta", clear_devices=True)
    session = tf.Session(graph=graph)
    saver.restore(session, path)
    return _session_run(session, names)


def _load_frozen_graph(path: str, names: list[str]) -> Run:
    tf = importlib.import_module("tensorflow").compat.v1
    definition = tf.GraphDef()
    definition.ParseFromString(Path(path).read_bytes())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return _session_run(tf.Session(graph=graph), names)


def _load_saved_model(path: str, names: list[str]) -> Run:
    tf = importlib.import_module("tensorflow").compat.v1
    graph = tf.Graph()
    session = tf.Session(graph=graph)
    with graph.as_default():
        tf.saved_model.load(session, ["serve"], path)
    return _session_run(session, names)


def _session_run(session: Any, names: list[str]) -> Run:
    fetches = {name: f"{name}:0" for name in names}
    return lambda batch: session.run(fetches, {"input:0": batch})


# ---- the self-test


def _self_test(folder: Path, model: Run, *, as_json: bool) -> int:
    rules = _module(folder / "standalone_samples.py")
    allowed, differences = rules.check_samples(folder, model, Reader(folder, _is_inside(folder)).prepared)
    return rules.show_differences(allowed, differences, as_json=as_json)


# ---- pixels


def _decode_with_pillow(image_module: Any, data: bytes, channels: int, bits: int) -> np.ndarray:
    with image_module.open(io.BytesIO(data)) as opened:
        if channels == 1 and opened.format == "JPEG":
            opened.draft("L", opened.size)  # the brightness that the file holds
        image = importlib.import_module("PIL.ImageOps").exif_transpose(opened)
    if image.mode.startswith("I;16"):
        return _with_channels(_narrow(np.asarray(image).astype(np.uint16), bits)[:, :, None], channels)
    if image.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info:
        return _with_channels(_on_white(np.asarray(image.convert("RGBA"))), channels)
    pixels = np.array(image.convert("L" if image.mode in ("1", "L") else "RGB"))
    return _with_channels(pixels[:, :, None] if pixels.ndim == 2 else pixels, channels)


def _decode_with_opencv(data: bytes, channels: int, bits: int) -> np.ndarray:
    cv2 = importlib.import_module("cv2")
    encoded = np.frombuffer(data, np.uint8)
    whole = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED)
    if whole is None:
        raise ValueError("no image that OpenCV can read")
    if whole.ndim == 3 and whole.shape[2] == 4:
        narrow = (
            whole if whole.dtype != np.uint16 else np.dstack([_narrow(whole[:, :, :3], bits), whole[:, :, 3:] >> 8])
        )
        return _with_channels(_on_white(narrow[:, :, [2, 1, 0, 3]].astype(np.uint8)), channels)
    if whole.dtype == np.uint16 and bits < 16:
        pixels = _narrow(whole, bits)
        return _with_channels(pixels[:, :, None] if pixels.ndim == 2 else pixels[:, :, ::-1], channels)
    if channels == 1 and data.startswith(b"\xff\xd8\xff"):
        return cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE)[:, :, None]
    return _with_channels(cv2.imdecode(encoded, cv2.IMREAD_COLOR)[:, :, ::-1], channels)


def _narrow(values: np.ndarray, bits: int) -> np.ndarray:
    """Return values of 16 bits as 8 bits, by the bits that those of the training images use."""
    if int(values.max()) >> bits:
        sys.stderr.write(
            f"An image has values up to {values.max()}, above the {bits} bits of training: they become white.\n"
        )
    return np.minimum(values >> (bits - 8), 255).astype(np.uint8)


def _on_white(pixels: np.ndarray) -> np.ndarray:
    alpha = pixels[:, :, 3:].astype(np.uint32)
    return ((pixels[:, :, :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


def _with_channels(pixels: np.ndarray, channels: int) -> np.ndarray:
    if pixels.shape[2] == channels:
        return pixels
    if channels == 3:
        return np.repeat(pixels, 3, axis=2)
    # The luminance of ITU-R BT.601 in steps of 2^-15, as OpenCV rounds it.
    return ((pixels @ np.array([9798, 19235, 3735]) + (1 << 14)) >> 15).astype(np.uint8)[:, :, None]


def _scaled(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """Scale linearly, edge to edge; without OpenCV in its fixed-point steps (a pixel may differ by 1 of 255)."""
    try:
        import cv2
    except ImportError:
        pass
    else:
        return cv2.resize(picture, (width, height)).reshape(height, width, -1)
    top, bottom, *rows = _neighbours(picture.shape[0], height)
    left, right, *columns = _neighbours(picture.shape[1], width)
    values = picture.astype(np.int64)
    lines = values[:, left] * columns[0][:, None] + values[:, right] * columns[1][:, None]
    above, below = (rows[n][:, None, None] * (part >> 4) >> 16 for n, part in ((0, lines[top]), (1, lines[bottom])))
    return np.clip((above + below + 2) >> 2, 0, 255).astype(np.uint8)


def _neighbours(before: int, after: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each new pixel of a line, its two old ones and their shares in 2048ths."""
    place = ((np.arange(after) + 0.5) * (before / after) - 0.5).astype(np.float32)
    place = np.clip(place, 0, before - 1)
    first = np.floor(place).astype(np.int64)
    share = place - first.astype(np.float32)
    second = np.minimum(first + 1, before - 1)
    return first, second, np.rint((1 - share) * 2048).astype(np.int64), np.rint(share * 2048).astype(np.int64)


# ---- predictions


class TaskRules:
    """What the outputs mean. Threads may share it.

    Args:
        folder: of the export.

    Attributes:
        least_score: of boxes that are shown unless another one is asked for; 0 if an operating point chooses them.
    """

    def __init__(self, folder: Path) -> None:
        labels = folder / "labels.txt"
        self._names = labels.read_text(encoding="utf-8").splitlines() if labels.is_file() else []
        self._how = json.loads((folder / "task.json").read_text(encoding="utf-8"))["postprocessing"]
        self._before = json.loads((folder / "preprocessing.json").read_text(encoding="utf-8"))
        self._thresholds = self._how.get("thresholds") or ()
        self.least_score = 0.0 if self._thresholds else 0.3

    def described(self, outputs: Mapping[str, np.ndarray], top: int, picture: np.ndarray) -> dict[str, Any]:
        """Return the prediction for one input as JSON values; the numbers themselves where they are not as expected."""
        if self._how["form"] == "boxes":
            return self._boxes(outputs, picture)
        output = outputs.get(self._how["output"])
        found = None if output is None else getattr(self, f"_{self._how['form']}")(output, top)
        if found is not None:
            return found
        values = {name: np.asarray(each, np.float64) for name, each in outputs.items()}
        return {"outputs": {name: {"shape": each.shape, "values": each.tolist()} for name, each in values.items()}}

    def picture(self, outputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return a predicted mask in the colors of its classes, or a predicted image, (H, W, 1 or 3) uint8."""
        output = outputs.get(self._how["output"])
        if output is None or output.ndim != 3:
            return None
        if self._how["form"] == "mask":
            return np.array(self._how["palette"], np.uint8)[binary_mask(output, self._thresholds)]
        if self._how["form"] != "image" or output.shape[2] not in (1, 3):
            return None
        return np.clip(np.rint(_to_255(np.nan_to_num(output))), 0, 255).astype(np.uint8)

    def _numbers(self, output: np.ndarray, top: int) -> None:
        return None

    def _classes(self, output: np.ndarray, top: int) -> dict[str, Any]:
        best = np.argsort(-output, kind="stable")[:top]
        found: dict[str, Any] = {"classes": [self._named(n, probability=float(output[n])) for n in best.tolist()]}
        if self._thresholds:
            found["decision"] = decided_class(output, self._thresholds, self._names)
        return found

    def _labels(self, output: np.ndarray, top: int) -> dict[str, Any]:
        shares = 1 / (1 + np.exp(-np.clip(output.astype(np.float64), -500, 500)))
        thresholds = self._thresholds or [self._how["threshold"]] * len(shares)
        found = [
            self._named(n, probability=float(shares[n]), predicted=bool(shares[n] >= thresholds[n]))
            for place, n in enumerate(np.argsort(-shares, kind="stable").tolist())
            if place < top or shares[n] >= thresholds[n]
        ]
        return {"labels": found}

    def _values(self, output: np.ndarray, top: int) -> dict[str, Any] | None:
        numbers = np.atleast_1d(output.astype(np.float64))
        if numbers.shape != (len(self._how["names"]),):
            return None
        return {"values": [{"name": name, "value": float(each)} for name, each in zip(self._how["names"], numbers)]}

    def _mask(self, output: np.ndarray, top: int) -> dict[str, Any] | None:
        if output.ndim != 3:
            return None
        mask = binary_mask(output, self._thresholds)
        counts = np.bincount(mask.ravel(), minlength=output.shape[2])
        order = [n for n in np.argsort(-counts, kind="stable").tolist() if counts[n]]
        colors = ["#{:02x}{:02x}{:02x}".format(*self._how["palette"][n]) for n in order]
        shares = [float(counts[n] / mask.size) for n in order]
        named = [self._named(n, share=share, color=color) for n, share, color in zip(order, shares, colors)]
        return {"size": list(mask.shape), "classes": named}

    def _image(self, output: np.ndarray, top: int) -> dict[str, Any] | None:
        if output.ndim != 3:
            return None
        image = _to_255(output)
        figures = {"mean": image.mean(), "least": image.min(), "largest": image.max()}
        return {"size": list(image.shape[:2]), **{name: float(each) for name, each in figures.items()}}

    def _embedding(self, output: np.ndarray, top: int) -> dict[str, Any] | None:
        return {"embedding": output.astype(np.float64).tolist()} if output.ndim == 1 else None

    def _boxes(self, outputs: Mapping[str, np.ndarray], picture: np.ndarray) -> dict[str, Any]:
        """Return the boxes in px of the original image, best first."""
        found = outputs.get("detections")
        if found is None:
            found = best_detections(outputs[self._how["output"]], self._how)
        least = np.array(self._thresholds or [self._how["least_score"]] * len(self._how["names"]), np.float32)
        found = found[found[:, 4] >= least[found[:, 5].astype(np.int64)]].astype(np.float64)
        scale, place = placement(picture.shape, self._before)
        height, width = picture.shape[:2]
        corners = (found[:, :4] - np.tile(place, 2)) / np.tile(scale, 2)
        corners = np.clip(corners, 0, [width, height, width, height])
        boxes = [
            {
                "class": self._how["names"][int(number)],
                "number": int(number),
                "score": float(score),
                "box": box.round(2).tolist(),
                "color": "#{:02x}{:02x}{:02x}".format(*self._how["colors"][int(number)]),
            }
            for box, score, number in zip(corners, found[:, 4], found[:, 5])
        ]
        return {"size": [height, width], "boxes": boxes}

    def _named(self, number: int, **more: Any) -> dict[str, Any]:
        return {"class": self._names[number], "number": number, **more}


def decided_class(probabilities: np.ndarray, thresholds: Sequence[float], names: Sequence[str]) -> dict[str, Any]:
    """Return which class an operating point decides for: ``class``, ``number`` and ``threshold``.

    Of two classes it is the second one from the threshold on, else the first. Of more it is the most probable class,
    or none (``class`` and ``number`` are None) if its probability, of (classes), is below the only threshold.
    """
    (threshold,) = thresholds
    limit, is_binary = np.float32(threshold), len(probabilities) == 2
    number = int(probabilities[1] >= limit) if is_binary else int(np.argmax(probabilities))
    is_decided = bool(np.isfinite(probabilities).all() and (is_binary or probabilities[number] >= limit))
    found = {"class": names[number], "number": number} if is_decided else {"class": None, "number": None}
    return {**found, "threshold": float(threshold)}


def binary_mask(scores: np.ndarray, thresholds: Sequence[float] = ()) -> np.ndarray:
    """Return the class of each pixel, (..., H, W) int64, of logits (..., H, W, classes).

    With a threshold, a pixel is of the second of two classes from that softmax probability on.
    """
    if not len(thresholds):
        return scores.argmax(axis=-1)
    return (second_probability(scores) >= thresholds[0]).astype(np.int64)


def second_probability(scores: np.ndarray) -> np.ndarray:
    """Return the softmax probability of the second of two classes, (..., H, W) float64, of logits (..., H, W, 2)."""
    difference = np.clip(np.subtract(scores[..., 1], scores[..., 0], dtype=np.float64), -500, 500)
    return 1 / (1 + np.exp(-difference))


_MOST_CANDIDATES = 1000


def best_detections(output: np.ndarray, how: Mapping[str, Any]) -> np.ndarray:
    """Return what non-maximum suppression of each class leaves of boxes and scores, best first, (found, 6).

    Args:
        output: (K, 4 + classes): left, top, right, bottom in px of the input, and scores from 0 to 1.
        how: ``least_score``, ``iou`` and ``most``.

    Returns:
        left, top, right, bottom, score, class.
    """
    boxes, scores = output[:, :4], output[:, 4:]
    is_box = np.isfinite(boxes).all(axis=1) & (boxes[:, 2] >= boxes[:, 0]) & (boxes[:, 3] >= boxes[:, 1])
    places = np.flatnonzero((scores >= how["least_score"]) & (scores > 0) & is_box[:, None])
    places = places[np.argsort(-scores.ravel()[places], kind="stable")[:_MOST_CANDIDATES]]
    rows, classes = np.divmod(places, scores.shape[1])
    left, top, right, bottom = boxes[rows].T
    areas = (right - left) * (bottom - top)
    is_open, kept = np.ones(len(places), bool), []
    while is_open.any() and len(kept) < how["most"]:
        best = int(is_open.argmax())
        kept.append(best)
        width = np.minimum(right, right[best]) - np.maximum(left, left[best])
        height = np.minimum(bottom, bottom[best]) - np.maximum(top, top[best])
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        is_near = shared * (1 + how["iou"]) > (areas + areas[best]) * how["iou"]
        is_open &= ~(is_near & (classes == classes[best]))
        is_open[best] = False
    return np.column_stack([boxes[rows], scores.ravel()[places], classes])[kept]


def drawn(picture: np.ndarray, boxes: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return an image (H, W, 3) uint8 with boxes, the best one uppermost, and their classes and scores.

    Args:
        picture: (H, W, C) uint8.
        boxes: ``box`` (left, top, right, bottom in px), ``color`` (``#rrggbb``), ``class`` and ``score``.
    """
    found = np.array(np.broadcast_to(picture, (*picture.shape[:2], 3)))
    height, width = found.shape[:2]
    line = max(1, round(max(height, width) / 300))
    for each in reversed(boxes):
        left, top, right, bottom = (round(side) for side in each["box"])
        right, bottom = max(right, left + 1), max(bottom, top + 1)
        color = tuple(bytes.fromhex(each["color"][1:]))
        for rows, columns in (
            (slice(top, top + line), slice(left, right)),
            (slice(max(0, bottom - line), bottom), slice(left, right)),
            (slice(top, bottom), slice(left, left + line)),
            (slice(top, bottom), slice(max(0, right - line), right)),
        ):
            found[rows, columns] = color
        found = _labelled(found, f"{each['class']} {each['score']:.0%}", (left + line, top + line), color)
    return found


def _labelled(picture: np.ndarray, text: str, place: tuple[int, int], color: tuple[int, ...]) -> np.ndarray:
    """Return an image with a text on a ground of a color, at a place (x, y)."""
    ink = (0, 0, 0) if sum(color) > 382 else (255, 255, 255)
    size = max(10, max(picture.shape[:2]) // 50)
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        cv2 = importlib.import_module("cv2")
        (wide, high), below = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, size / 30, 1)
        corner = (place[0] + wide, place[1] + high + below)
        cv2.rectangle(picture, place, corner, color, -1)
        start = (place[0], place[1] + high)
        cv2.putText(picture, text, start, cv2.FONT_HERSHEY_SIMPLEX, size / 30, ink, 1, cv2.LINE_AA)
        return picture
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    draw.rectangle(draw.textbbox(place, text, font_size=size), fill=color)
    draw.text(place, text, fill=ink, font_size=size)
    return np.array(image)


def _to_255(output: np.ndarray) -> np.ndarray:
    """Return an image from 0 to 255; one without a number beyond 2 is on the scale from 0 to 1."""
    found = np.asarray(output, np.float32)
    return found * np.float32(255) if found.size and np.abs(found).max() <= 2 else found


def _written(picture: np.ndarray, folder: Path, stem: str) -> str:
    """Write an image as a PNG file of a name that is not there yet; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path, number = folder / f"{stem}.predicted.png", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}.predicted-{number}.png"
    try:
        from PIL import Image
    except ImportError:
        encoded = importlib.import_module("cv2").imencode(".png", picture[:, :, ::-1])[1]
        path.write_bytes(encoded.tobytes())
    else:
        Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture).save(path)
    return str(path)


# ---- what is shown


def _show(
    predictions: list[dict[str, Any]], failures: list[dict[str, Any]], *, least_score: float, as_json: bool
) -> None:
    for failure in failures:
        sys.stderr.write(f"{failure['file']}: {failure['message']}\n")
    if as_json:
        sys.stdout.write(json.dumps({"predictions": predictions, "failures": failures}, indent=2) + "\n")
        return
    for each in predictions:
        sys.stdout.write(f"{each['file']}: {_words(each, least_score)}\n")


def _words(found: Mapping[str, Any], least_score: float) -> str:
    picture = f"  {found['picture']}" if "picture" in found else ""
    if "boxes" in found:
        shown = [each for each in found["boxes"] if each["score"] >= least_score]
        sides = [" ".join(f"{side:.1f}" for side in one["box"]) for one in shown]
        lines = [f"\n  {one['class']} {one['score']:.2%}  {box}" for one, box in zip(shown, sides, strict=True)]
        return f"{len(shown)} {'box' if len(shown) == 1 else 'boxes'}{picture}{''.join(lines)}"
    if "classes" in found:
        shares = ((one["class"], one.get("probability", one.get("share"))) for one in found["classes"])
        return _decision(found) + "  ".join(f"{name} {share:.2%}" for name, share in shares) + picture
    if "labels" in found:
        predicted = [one for one in found["labels"] if one["predicted"]]
        return "  ".join(f"{one['class']} {one['probability']:.2%}" for one in predicted) or "no label"
    if "values" in found:
        return "  ".join(f"{one['name']} {one['value']:.6g}" for one in found["values"])
    if "embedding" in found:
        return "  ".join(f"{each:.6g}" for each in found["embedding"])
    if "size" in found:
        return f"{found['size'][1]} x {found['size'][0]}, mean {found['mean']:.4g}{picture}"
    return str(found["outputs"])


def _decision(found: Mapping[str, Any]) -> str:
    decision = found.get("decision")
    return "" if decision is None else f"{decision['class'] or 'undecided'} (threshold {decision['threshold']:g}):  "


if __name__ == "__main__":
    sys.exit(main())
