"""Files of the zoo with published names, executed in a namespace like the worker's."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ziggurat.zoo import ZOO


def network(name, nclasses, input_shape):
    """Return the network of a file of the zoo.

    Args:
        name: of the file.
        nclasses: number of classes.
        input_shape: [C, H, W].
    """
    path = ZOO / "torch" / f"{name}.py"
    names = {"torch": torch, "nn": nn, "F": functional, "np": np}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["UserModel"](nclasses, input_shape)


def shapes_of(model):
    """Return key → shape of the state of a model, in its order."""
    return {key: list(value.shape) for key, value in model.state_dict().items()}
