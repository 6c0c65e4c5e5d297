"""Files of the zoo, executed in a namespace like the worker's, with plain stand-ins for what the backend gives."""

import types

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ziggurat.zoo import ZOO


class model_property:  # noqa: N801
    def __init__(self, function):
        self.function = function

    def __get__(self, tower, owner):
        kept = tower.__dict__["kept"]
        if self.function.__name__ not in kept:
            kept[self.function.__name__] = self.function(tower)
        return kept[self.function.__name__]


class Tower(nn.Module):
    def __init__(self, **facts):
        super().__init__()
        self.kept = {}
        self.__dict__.update(facts)
        self.asked, self.inference_inputs, self.summaries = {}, {}, []
        self.build()

    def inference_input(self, name, default):
        self.inference_inputs[name] = default
        return self.asked.get(name, default)

    def start(self, x, y=None, stage="inf", given=None):
        self.kept.clear()
        self.summaries.clear()
        self.x, self.y, self.asked = x, y, given or {}
        self.is_training, self.is_inference = stage == "train", stage == "inf"
        self.train(self.is_training)


def contrastive_loss(lhs, rhs, y, margin=1.0):
    squared = (lhs - rhs).square().sum(1)
    apart = (margin - (squared + 1e-12).sqrt()).clamp(min=0).square()
    return (y * squared + (1 - y) * apart).mean() / 2


def l2_regularization(module, scale):
    return sum(0.5 * scale * each.square().sum() for each in module.parameters() if each.ndim > 1)


DIGITS = types.SimpleNamespace(
    classification_loss=F.cross_entropy,
    segmentation_loss=lambda pred, y: F.cross_entropy(pred, y, ignore_index=255),
    mse_loss=F.mse_loss,
    contrastive_loss=contrastive_loss,
    l2_regularization=l2_regularization,
    scalar=lambda tag, value: (tag, value),
    image=lambda tag, value: (tag, value),
)


def network(name, **facts):
    """Return the network of a file with facts that a job would give."""
    namespace = {"torch": torch, "nn": nn, "F": F, "np": np}
    namespace |= {"digits": DIGITS, "Tower": Tower, "model_property": model_property}
    path = ZOO / "torch" / f"{name}.py"
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    model = namespace["UserModel"]
    names = model.__init__.__code__.co_varnames[1 : model.__init__.__code__.co_argcount]
    return model(**(facts if issubclass(model, Tower) else {key: facts[key] for key in names}))
