"""Take 20 steps of an optimizer with given gradients on one framework, and save the weights; run as a program."""

import json
import sys
from typing import Any

import numpy as np

STEPS = 20
SHAPES = ((3, 4), (5,))
RATES = [0.2 / (1 + step / 10) for step in range(STEPS)]


def first_weights() -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.normal(size=shape).astype(np.float32) for shape in SHAPES]


def gradients() -> list[list[np.ndarray]]:
    """Return, for each step, a gradient of each weight."""
    random = np.random.default_rng(2)
    return [[random.normal(size=shape).astype(np.float32) for shape in SHAPES] for _ in range(STEPS)]


def on_tensorflow(name: str, options: dict[str, float]) -> list[Any]:
    from ziggurat.backends.tensorflow.optimizers import make_optimizer
    from ziggurat.backends.tensorflow.runtime import tf

    with tf.Graph().as_default(), tf.Session() as session:
        rate = tf.placeholder(tf.float32, ())
        weights = [tf.Variable(each) for each in first_weights()]
        given = [tf.placeholder(tf.float32, shape) for shape in SHAPES]
        count = tf.train.get_or_create_global_step()
        optimizer = make_optimizer(name, options, rate, 0.0)
        with tf.control_dependencies([optimizer.apply_gradients(list(zip(given, weights, strict=True)))]):
            step = tf.assign_add(count, 1)
        session.run(tf.global_variables_initializer())
        for now, arrays in zip(RATES, gradients(), strict=True):
            session.run(step, {rate: now, **dict(zip(given, arrays, strict=True))})
        return session.run(weights)


def on_torch(name: str, options: dict[str, float]) -> list[Any]:
    import torch
    from torch import nn

    from ziggurat.backends.torch.optimizers import make_optimizer

    weights = [nn.Parameter(torch.from_numpy(each)) for each in first_weights()]
    optimizer = make_optimizer(name, options, weights, 0.0, 0.0)
    for now, arrays in zip(RATES, gradients(), strict=True):
        for group in optimizer.param_groups:
            group["lr"] = now
        for weight, array in zip(weights, arrays, strict=True):
            weight.grad = torch.from_numpy(array)
        optimizer.step()
    return [each.detach().numpy() for each in weights]


def main(framework: str, cases: str) -> None:
    takes = {"tensorflow": on_tensorflow, "torch": on_torch}[framework]
    found = [takes(name, options) for name, options in json.loads(cases)]
    print(json.dumps([[each.tolist() for each in weights] for weights in found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
