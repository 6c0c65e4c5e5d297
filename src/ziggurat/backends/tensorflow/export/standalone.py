"""Predictions with an exported model without Ziggurat: an export contains this file as ``predict.py``.

    python predict.py IMAGE... [--top 5] [--json]

It needs NumPy, OpenCV or Pillow, and the runtime of the model's format. ``preprocessing.json`` describes the
preprocessing of an image, ``labels.txt`` lists the names of the classes, and ``model.json`` says how to call the
model.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["finish", "fit", "load_model", "main", "read_picture"]

Run = Callable[[np.ndarray], "dict[str, np.ndarray]"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict for images; return 0, or 4 where one of them cannot be read."""
    parser = argparse.ArgumentParser(description="Predict with the model in this folder.")
    parser.add_argument("images", nargs="+", metavar="IMAGE")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="classes that are shown for each image")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    folder = Path(__file__).resolve().parent
    preprocessing = json.loads((folder / "preprocessing.json").read_text(encoding="utf-8"))
    labels = (folder / "labels.txt").read_text(encoding="utf-8").splitlines()
    model, inside = load_model(folder)
    predictions: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    for path in given.images:
        try:
            picture = read_picture(Path(path).read_bytes(), preprocessing["channels"])
        except Exception as error:  # whatever a decoder raises is about this file alone
            failures.append({"file": path, "message": f"It cannot be read as an image: {error}"})
            continue
        fitted = fit(picture, preprocessing["size"], preprocessing["resize_mode"])[None]
        outputs = model(fitted.astype(np.float32) if inside else finish(fitted, preprocessing, folder))
        predictions.append({"file": path, **_described(outputs, labels, given.top)})
    _show(predictions, failures, as_json=given.json)
    return 4 if failures else 0


# ---- the image


def read_picture(data: bytes, channels: int) -> np.ndarray:
    """Return the pixels of an image file's bytes, (H, W, channels) uint8, RGB; what is transparent lies on white."""
    try:
        from PIL import Image
    except ImportError:
        return _decode_with_opencv(data, channels)
    return _decode_with_pillow(Image, data, channels)


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
    ratios = (picture.shape[0] / height, picture.shape[1] / width)
    if mode == "squash":
        sides = [height, width]
    else:
        ratio = {"crop": min(ratios), "fill": max(ratios), "half_crop": sum(ratios) / 2}[mode]
        sides = [max(1, round(side / ratio)) for side in picture.shape[:2]]
        if mode != "half_crop":
            decides = ratios.index(ratio)
            sides[decides] = size[decides]
    scaled = _scaled(picture, sides[0], sides[1])
    part = (min(sides[0], height), min(sides[1], width))
    top, left = (sides[0] - part[0]) // 2, (sides[1] - part[1]) // 2
    canvas = np.zeros((height, width, picture.shape[2]), np.uint8)
    y, x = (height - part[0]) // 2, (width - part[1]) // 2
    canvas[y : y + part[0], x : x + part[1]] = scaled[top : top + part[0], left : left + part[1]]
    return canvas


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
    """Return what runs the model of a folder, and whether it preprocesses images by itself."""
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    load = {
        "checkpoint": _load_checkpoint,
        "onnx": _load_onnx,
        "pb": _load_frozen_graph,
        "savedmodel": _load_saved_model,
        "tflite": _load_tflite,
    }[description["format"]]
    names = list(description["outputs"])
    return load(str(folder / description["file"]), names), description["preprocessing"] == "inside"


def _load_onnx(path: str, names: list[str]) -> Run:
    runtime = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (source,) = session.get_inputs()
    fetches = [f"{name}:0" for name in names]
    return lambda pictures: dict(zip(names, session.run(fetches, {source.name: pictures})))


def _load_tflite(path: str, names: list[str]) -> Run:
    try:
        interpreter = importlib.import_module("ai_edge_litert.interpreter").Interpreter(model_path=path)
    except ModuleNotFoundError:
        interpreter = importlib.import_module("tensorflow").lite.Interpreter(model_path=path)
    (source,) = interpreter.get_input_details()

    def run(pictures: np.ndarray) -> dict[str, np.ndarray]:
        interpreter.resize_tensor_input(source["index"], pictures.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(source["index"], pictures)
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
    return lambda pictures: session.run(fetches, {"input:0": pictures})


# ---- pixels


def _decode_with_pillow(image_module: Any, data: bytes, channels: int) -> np.ndarray:
    with image_module.open(io.BytesIO(data)) as opened:
        if channels == 1 and opened.format == "JPEG":
            opened.draft("L", opened.size)  # the brightness that the file holds
        image = importlib.import_module("PIL.ImageOps").exif_transpose(opened)
    if image.mode.startswith("I;16"):
        return _with_channels((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)[:, :, None], channels)
    if image.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info:
        return _with_channels(_on_white(np.asarray(image.convert("RGBA"))), channels)
    pixels = np.array(image.convert("L" if image.mode in ("1", "L") else "RGB"))
    return _with_channels(pixels[:, :, None] if pixels.ndim == 2 else pixels, channels)


def _decode_with_opencv(data: bytes, channels: int) -> np.ndarray:
    cv2 = importlib.import_module("cv2")
    encoded = np.frombuffer(data, np.uint8)
    whole = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED)
    if whole is None:
        raise ValueError("no image that OpenCV can read")
    if whole.ndim == 3 and whole.shape[2] == 4:
        narrow = (whole >> 8).astype(np.uint8) if whole.dtype == np.uint16 else whole
        return _with_channels(_on_white(narrow[:, :, [2, 1, 0, 3]]), channels)
    if channels == 1 and data.startswith(b"\xff\xd8\xff"):
        return cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE)[:, :, None]
    return _with_channels(cv2.imdecode(encoded, cv2.IMREAD_COLOR)[:, :, ::-1], channels)


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


# ---- what is shown


def _described(outputs: Mapping[str, np.ndarray], labels: Sequence[str], top: int) -> dict[str, Any]:
    if "probabilities" not in outputs:
        values = {name: np.asarray(value[0], np.float64) for name, value in outputs.items()}
        return {"outputs": {name: {"shape": each.shape, "values": each.tolist()} for name, each in values.items()}}
    row = outputs["probabilities"][0]
    best = np.argsort(-row, kind="stable")[:top]
    return {"classes": [{"class": labels[n], "number": int(n), "probability": float(row[n])} for n in best]}


def _show(predictions: list[dict[str, Any]], failures: list[dict[str, Any]], *, as_json: bool) -> None:
    for failure in failures:
        sys.stderr.write(f"{failure['file']}: {failure['message']}\n")
    if as_json:
        sys.stdout.write(json.dumps({"predictions": predictions, "failures": failures}, indent=2) + "\n")
        return
    for each in predictions:
        found = each.get("classes") or []
        words = "  ".join(f"{one['class']} {one['probability']:.2%}" for one in found)
        sys.stdout.write(f"{each['file']}: {words or each['outputs']}\n")


if __name__ == "__main__":
    sys.exit(main())
