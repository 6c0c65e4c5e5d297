"""The weights that come with Ziggurat as a job starts from them, on either framework."""

from pathlib import Path

import numpy as np

from ziggurat.engine.program import Program
from ziggurat.settings import load_settings
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.workspace.workspace import open_folders

NAME = "convnet-fashion"
SIZE = 28


def weights_in(folder: Path) -> Path:
    """Return the folder of the weights of a new workspace to which they were added."""
    weights = open_folders(load_settings({"ZIGGURAT_WORKSPACE": str(folder), "HOME": str(folder)})).weights
    weights.download(NAME)
    return weights.folder.path


def program_of(backend: str, weights: Path, data: str) -> Program:
    """Return a new program that starts from them."""
    content = {"kind": "train", "version": 1, "backend": backend, "network": "convnet", "data": data, "batch_size": 4}
    spec = parse_spec({**content, "pretrained": f"weights:{NAME}"}, source="the test")
    assert isinstance(spec, TrainSpec)
    loaded = load_backend(backend)
    return loaded.build(program_request(spec, data_of(spec), loaded, [weights]))


def clothes() -> np.ndarray:
    """Return eight images like the ones that it learned from: a bright thing on black, (8, 28, 28, 1) float32."""
    rng = np.random.default_rng(5)
    x = np.zeros((8, SIZE, SIZE, 1), np.float32)
    for image in x:
        top, left, height, width = rng.integers((2, 2, 8, 6), (8, 10, 18, 14))
        image[top : top + height, left : left + width] = rng.uniform(80, 255, (1, 1, 1))
        image[top : top + 4, 2:26] = rng.uniform(80, 255, (1, 1, 1))
    return x + rng.uniform(0, 20, x.shape).astype(np.float32)
