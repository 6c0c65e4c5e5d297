"""Standard networks with small sets, and their weights under the names and in the layouts of TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.program import TorchProgram
from ziggurat.engine.backend import ArraySpec, ProgramRequest
from ziggurat.zoo.names import to_tensorflow

SAMPLES = 4
TABLE = ArraySpec((5,), categories=(0, 0, 0, 4, 7))
TEXTS = ArraySpec((12,), "int32", classes=50)
CLASSES = ArraySpec((), "int64", classes=3)


@dataclass(frozen=True)
class Case:
    """A network with what it learns from.

    Args:
        x: what it gets of a sample.
        y: what it learns to give; None for nothing.
        weights: how many are trained, as TensorFlow's network has them.
        outputs: shapes for one sample.
        rate: of Adam.
        steps: in which the loss falls by a fifth at least.
    """

    x: ArraySpec
    y: ArraySpec | None
    weights: int
    outputs: tuple[tuple[int, ...], ...]
    rate: float = 0.003
    steps: int = 20


def image(*shape: int) -> ArraySpec:
    return ArraySpec(shape)


def masks(shape: tuple[int, ...], weights: int, rate: float = 0.001, steps: int = 5) -> Case:
    y = ArraySpec((*shape[:2], 1), "int64", classes=3)
    return Case(image(*shape), y, weights, ((*shape[:2], 3),), rate, steps)


LABELS = ArraySpec((3,), classes=3)
PAIRS = ArraySpec((), "int64")
CASES = {
    "lenet": Case(image(28, 32, 1), CLASSES, 527_573, ((3,),), 0.001),
    "alexnet": Case(image(65, 70, 3), CLASSES, 21_593_475, ((3,),), 0.0001, 4),
    "googlenet": Case(image(45, 66, 3), CLASSES, 5_983_907, ((3,),), 0.001, 5),
    "convnet": Case(image(27, 32, 3), CLASSES, 287_843, ((3,),)),
    "multilabel": Case(image(16, 17, 3), LABELS, 287_843, ((3,),)),
    "image_regression": Case(image(70, 43, 1), ArraySpec((2,)), 236_242, ((2,),)),
    "regression": Case(image(1, 13, 1), ArraySpec(), 14, ((1,),), 0.001, 40),
    "unet_small": masks((19, 33, 1), 482_595, 0.01, 20),
    "unet": masks((17, 33, 3), 31_038_723),
    "unet_lite0": masks((35, 66, 3), 3_477_875, steps=10),
    "deeplab": masks((21, 30, 3), 13_153_219),
    "deeplab of large images": masks((67, 74, 3), 13_160_899),
    "table_mlp": Case(TABLE, ArraySpec((2,)), 9702, ((2,),)),
    "table_mlp of classes": Case(TABLE, CLASSES, 9767, ((3,),)),
    "table_linear": Case(TABLE, ArraySpec((2,)), 30, ((2,),), 0.1),
    "table_linear of categories": Case(ArraySpec((2,), categories=(4, 7)), CLASSES, 36, ((3,),), 0.1),
    "text_cnn": Case(TEXTS, CLASSES, 161_203, ((3,),)),
    "text_transformer": Case(TEXTS, CLASSES, 104_259, ((3,),)),
    "siamese": Case(image(28, 29, 2), PAIRS, 427_072, ((2,), (2,))),
    "siamese16": Case(image(28, 29, 6), PAIRS, 435_086, ((16,), (16,))),
    "denoiser": Case(image(11, 13, 3), image(11, 13, 3), 29_507, ((11, 13, 3),)),
    "denoiser of other channels": Case(image(11, 13, 3), image(11, 13, 1), 28_929, ((11, 13, 1),)),
    "denoiser without targets": Case(image(11, 13, 3), None, 29_507, ((11, 13, 3),), 0.01, 60),
    "autoencoder": Case(image(9, 8, 3), None, 160_466, ((9, 8, 3),), 0.003, 40),
    "gan": Case(image(14, 19, 3), None, 440_132, ((14, 19, 3),)),
    "gan_encoder": Case(image(14, 19, 1), CLASSES, 318_757, ((14, 19, 1), (32,))),
    "gan_encoder without classes": Case(image(14, 19, 1), None, 312_994, ((14, 19, 1), (32,))),
}
"""Network, and of what it is made here → its set; odd sides, where the frameworks halve them in different ways."""


def program_of(name: str, **fields: Any) -> TorchProgram:
    """Return a new program of a network.

    Args:
        name: of its set.
        **fields: of the request, in place of those of the set.
    """
    return TorchBackend().build(request_of(name, **fields))


def request_of(name: str, **fields: Any) -> ProgramRequest:
    case = CASES[name]
    targets = {} if case.y is None else {"y": case.y}
    network = name.partition(" ")[0]
    arrays = {"inputs": {"x": case.x}, "targets": targets}
    return ProgramRequest(network=network, batch_size=SAMPLES, seed=1, **{**arrays, **fields})


def batch_of(case: Case) -> list[np.ndarray]:
    """Return a batch as datasets have it: images (N, H, W, C), masks (N, H, W, 1)."""
    rng = np.random.default_rng(0)
    x = _inputs(case.x, rng)
    return [x] if case.y is None else [x, _targets(case.y, x, rng)]


def _inputs(spec: ArraySpec, rng: np.random.Generator) -> np.ndarray:
    shape = (SAMPLES, *spec.shape)
    if spec.dtype == "int32":
        x = rng.integers(1, 50, shape).astype(np.int32)
        for sample, length in enumerate((5, 0, 1)):  # the last is full
            x[sample, length:] = 0
        return x
    if len(spec.shape) == 3:
        x = rng.uniform(0, 100, shape).astype(np.float32)
        for sample in range(SAMPLES):  # something bright in each image, at another place
            top, left = rng.integers(0, (shape[1] + 1) // 2), rng.integers(0, shape[2] // 2)
            x[sample, top : top + shape[1] // 2, left : left + shape[2] // 2] += 150
        return x
    columns = [
        rng.integers(0, count, SAMPLES) if count else rng.normal(size=SAMPLES) for count in spec.categories or ()
    ]
    return np.column_stack(columns).astype(np.float32)


def _targets(spec: ArraySpec, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    shape = (SAMPLES, *spec.shape)
    if len(spec.shape) == 3 and spec.classes:
        y = (x.mean(axis=3, keepdims=True) > 125).astype(np.int64)
        y[:, :2] = 255  # counts for nothing
        return y
    if len(spec.shape) == 3:
        return 255 - x[..., : spec.shape[2]]
    if spec.dtype == "int64":
        return np.arange(SAMPLES) % (spec.classes or 2)
    return rng.integers(0, 2, shape).astype(np.float32)


# ---- TensorFlow's names and layouts

FLAT = {
    "lenet": {"fc1.weight": (50, 4, 5)},
    "image_regression": {"fc1.weight": (64, 4, 5)},
    "siamese": {"embed.fc1.weight": (50, 4, 4)},
    "siamese16": {"embed.fc1.weight": (50, 4, 4)},
    "autoencoder": {"encode1.weight": (3, 9, 8), "decode2": (3, 9, 8)},
    "gan": {"discriminator.fc1.weight": (128, 4, 5), "generator.fc1": (128, 4, 5)},
    "gan_encoder": {
        "discriminator.fc1.weight": (64, 4, 5),
        "encoder.fc1.weight": (64, 4, 5),
        "generator.fc1": (64, 4, 5),
    },
}
"""Network → beginning of the name of a weight one of whose axes holds flat maps → their (C, H, W).

TensorFlow flattens (H, W, C), PyTorch (C, H, W).
"""

PUBLISHED = ("unet_lite0",)
"""Networks with published names on both frameworks; the others have slim's on TensorFlow."""

LAST = {"weight": "weights", "bias": "biases"}
LAST_OF_NORM = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


def on_tensorflow(name: str, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights of PyTorch's network under the names and in the layouts of TensorFlow's."""
    if name in PUBLISHED:
        return to_tensorflow(state)
    flat = FLAT.get(name.partition(" ")[0], {})
    found = {}
    for key, value in state.items():
        if not key.endswith("num_batches_tracked"):
            maps = next((shape for start, shape in flat.items() if key.startswith(start)), None)
            found[_name(key)] = _laid_out(key, value if maps is None else _permuted(key, value, maps))
    return found


def _name(key: str) -> str:
    """Return ``model/conv1/BatchNorm/gamma`` for ``conv1.norm.weight``, and so on."""
    *scopes, last = key.replace(".norm.", ".BatchNorm.").split(".")
    is_norm = scopes[-1] == "BatchNorm" or scopes[-1].startswith("norm")
    return "/".join(["model", *scopes, (LAST_OF_NORM if is_norm else LAST)[last]])


def _permuted(key: str, value: np.ndarray, maps: tuple[int, int, int]) -> np.ndarray:
    gives_maps = key.startswith(("decode2", "generator"))  # the others take them
    order = np.arange(np.prod(maps)).reshape(maps).transpose(1, 2, 0).ravel()
    return np.take(value, order, axis=0 if gives_maps else 1)


def _laid_out(key: str, value: np.ndarray) -> np.ndarray:
    if value.ndim == 4:
        return value.transpose(2, 3, 1, 0)
    if value.ndim == 3:  # TensorFlow's windows over texts are one pixel wide
        return value.transpose(2, 1, 0)[:, np.newaxis]
    is_table = key.startswith(("embedding.", "places.", "category"))  # a row for each token, not for each output
    return value.T if value.ndim == 2 and not is_table else value
