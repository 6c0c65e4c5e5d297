"""A small exported model, made without a framework: it classifies grey images of 4 x 4 px, rows or texts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ziggurat.dataflow import standalone_prediction
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.serving.manifest import write_manifest

CLASSES = ("cat", "dog", "owl")
SIDE = 4


def make_export(folder: Path, *, seed: int = 0, kind: str = "image", bias: float = 0.0) -> Path:
    """Write an export as the studio does, unsigned; return its folder.

    Args:
        folder: that does not exist yet.
        seed: of the weights.
        kind: ``image`` or ``table``.
        bias: added to the weights of the model alone, so that it fails its self-test.
    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    inputs: Any
    if kind == "image":
        Preprocessing(size=(SIDE, SIDE), channels=1).save(folder)
        shape, dtype = [None, SIDE, SIDE, 1], "float32"
        inputs = rng.integers(0, 256, (16, SIDE, SIDE, 1), dtype=np.uint8)
    else:
        (folder / "preprocessing.json").write_text(json.dumps(_table()))
        shape, dtype = [None, 2], "float64"
        inputs = rng.normal(size=(16, 2))
    weights = rng.normal(scale=0.01 if kind == "image" else 1, size=(int(np.prod(shape[1:])), 3)).astype(np.float32)
    _write_model(folder / "model.onnx", weights, shape, dtype)
    model = {
        "format": "onnx",
        "file": "model.onnx",
        "preprocessing": "inside",
        "input": {"shape": shape, "dtype": dtype, "images": 1 if kind == "image" else 0},
        "outputs": {"probabilities": [None, 3]},
        "self_test": {"file": "self-test.npz", "samples": 16, "split": "val", "seed": seed, "tolerance": 1e-3},
    }
    part = {"image": "image", "table": "row"}[kind]
    task = {
        "task": "classification",
        "title": "classification",
        "schema": {"kind": "classification", "parts": [part, "class"]},
        "postprocessing": {"form": "classes", "output": "probabilities"},
    }
    (folder / "model.json").write_text(json.dumps(model))
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    shutil.copyfile(str(standalone_prediction.__file__), folder / "predict.py")
    for name in ("standalone_preprocessing.py", "standalone_samples.py"):
        shutil.copyfile(Path(str(standalone_prediction.__file__)).with_name(name), folder / name)
    run, inside = standalone_prediction.load_model(folder)
    reader = standalone_prediction.Reader(folder, inside)
    outputs = np.stack([run(reader.prepared(sample[None]))["probabilities"][0] for sample in inputs])
    np.savez_compressed(folder / "self-test.npz", inputs=inputs, **{"output/probabilities": outputs})
    if bias:
        _write_model(folder / "model.onnx", weights + np.float32(bias) * np.arange(3, dtype=np.float32), shape, dtype)
    write_manifest(
        folder, {"job": "20260101-000000-abc", "name": "animals", "dataset": {"name": "zoo", "id": "1" * 64}}
    )
    return folder


def _write_model(path: Path, weights: np.ndarray, shape: list[Any], dtype: str) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    helper, kinds = onnx.helper, onnx.TensorProto
    kind = {"float32": kinds.FLOAT, "float64": kinds.DOUBLE}[dtype]
    nodes = [
        helper.make_node("Cast", ["input"], ["numbers"], to=kinds.FLOAT),
        helper.make_node("Flatten", ["numbers"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("input", kind, shape)],
        [helper.make_tensor_value_info("probabilities", kinds.FLOAT, [None, 3])],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))


def _table() -> dict[str, Any]:
    """Return the ``preprocessing.json`` of a table with two numbers and a target."""
    measured = {"type": "number", "parts": ["value"], "fill": [0.0], "has_indicator": False, "origin_s": 0.0}
    return {
        "kind": "table",
        "columns": [{"name": name, "type": "number"} for name in ("height", "weight")] + [{"name": "animal"}],
        "target": "animal",
        "measured": [{"name": name, **measured} for name in ("height", "weight")],
        "categorical": [],
        "offset": [0.0, 0.0],
        "matrix": [1.0, 1.0],
    }
