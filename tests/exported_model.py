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
from ziggurat.dataflow.standalone_samples import stored_values
from ziggurat.records.schema import Schema
from ziggurat.serving.manifest import write_manifest
from ziggurat.tasks import TaskContext, task

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


SIZE = (8, 8)


def task_context(name: str, thresholds: tuple[float, ...] = ()) -> TaskContext:
    """Return a task with two classes, for grey images of 8 x 8 px: classification, multi-label, detection, …"""
    kinds = {"multi-label": "image-regression", "classification": "image-classification"}
    schema = Schema(kind=kinds.get(name, name), class_names=("cat", "dog"))
    return TaskContext(task(name), schema, Preprocessing(size=SIZE, channels=1), {"most": 2}, thresholds)


def make_task_export(folder: Path, context: TaskContext) -> Path:
    """Write an unsigned export of a small network for a task of ``task_context``; return its folder."""
    folder.mkdir(parents=True)
    context.preprocessing.save(folder)
    shape = [None, *SIZE, 1]
    name, tail = _write_task_model(folder / "model.onnx", context.task.name)
    model = {
        "format": "onnx",
        "file": "model.onnx",
        "preprocessing": "inside",
        "input": {"shape": shape, "dtype": "float32", "images": 1},
        "outputs": {name: [None, *tail]},
        "self_test": {"file": "self-test.npz", "samples": 2, "split": "val", "seed": 0, "tolerance": 1e-3},
    }
    content = {
        "task": context.task.name,
        "title": context.task.title,
        "schema": context.schema.as_json(),
        "postprocessing": dict(context.task.postprocessing(context)),
    }
    (folder / "model.json").write_text(json.dumps(model))
    (folder / "task.json").write_text(json.dumps(content))
    (folder / "labels.txt").write_text("".join(f"{each}\n" for each in context.class_names))
    shutil.copyfile(str(standalone_prediction.__file__), folder / "predict.py")
    shutil.copyfile(
        Path(str(standalone_prediction.__file__)).with_name("standalone_samples.py"), folder / "standalone_samples.py"
    )
    inputs = np.random.default_rng(1).integers(0, 256, (2, *SIZE, 1), dtype=np.uint8)
    run, inside = standalone_prediction.load_model(folder)
    reader = standalone_prediction.Reader(folder, inside)
    outputs = np.stack([stored_values(run(reader.prepared(sample[None]))[name][0]) for sample in inputs])
    np.savez_compressed(folder / "self-test.npz", inputs=inputs, **{f"output/{name}": outputs})
    write_manifest(folder, {"job": "20260101-000000-abc", "name": context.task.name})
    return folder


def _write_task_model(path: Path, name: str) -> tuple[str, list[int]]:
    """Write a model whose scores depend on the brightness; return name and shape of its output for one sample."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    helper, made = onnx.helper, onnx.numpy_helper.from_array
    pixels = SIZE[0] * SIZE[1]
    values: dict[str, np.ndarray] = {}
    output, tail = "output", [2]
    if name == "segmentation":
        values = {"weights": np.array([[-0.01, 0.01]], np.float32), "bias": np.array([1.2, -1.2], np.float32)}
        nodes = [("MatMul", ["input", "weights"], "raw"), ("Add", ["raw", "bias"], "output")]
        tail = [*SIZE, 2]
    else:
        count = 12 if name == "detection" else 2
        weights = np.zeros((pixels, count), np.float32)
        bias = np.zeros(count, np.float32)
        if name == "detection":  # two boxes far from each other, each with scores for both classes
            bias[:] = [0, 0, 3, 3, -0.4, -2, 4, 4, 8, 8, -2, 0.9]
        else:
            weights[:, 1], bias[:] = 0.008 / pixels, [0.4, -1]
        values = {"weights": weights, "bias": bias}
        nodes = [
            ("Flatten", ["input"], "flat"),
            ("MatMul", ["flat", "weights"], "raw"),
            ("Add", ["raw", "bias"], "sum"),
        ]
        if name == "detection":
            values |= {"shape": np.array([-1, 2, 6], np.int64), "split": np.array([4, 2], np.int64)}
            nodes += [("Reshape", ["sum", "shape"], "rows"), ("Split", ["rows", "split"], "boxes logits")]
            nodes += [("Sigmoid", ["logits"], "scores"), ("Concat", ["boxes", "scores"], "output")]
            tail = [2, 6]
        elif name == "classification":
            nodes.append(("Softmax", ["sum"], "probabilities"))
            output = "probabilities"
        else:
            nodes.append(("Identity", ["sum"], "output"))
    given = {"Split": {"axis": 2}, "Concat": {"axis": 2}}
    graph = helper.make_graph(
        [helper.make_node(kind, sources, target.split(), **given.get(kind, {})) for kind, sources, target in nodes],
        "small",
        [helper.make_tensor_value_info("input", onnx.TensorProto.FLOAT, [None, *SIZE, 1])],
        [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, [None, *tail])],
        [made(value, key) for key, value in values.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
    return output, tail
