"""Outputs of TensorFlow's networks with published names, in a process without PyTorch.

``python published_on_tensorflow.py CASES OUTPUTS``: ``CASES`` is a JSON file, a list of ``network``, ``shape`` (H, W,
C), ``shapes`` (key of PyTorch → shape) and ``trains``; ``OUTPUTS``, an ``.npz``, gets ``NUMBER:output`` of each, and
where it trains, the variables after a step with a rate of 0 as ``NUMBER:KEY``, named by PyTorch.
"""

import json
import sys
from pathlib import Path

import numpy as np
from published_weights import images, made_up

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.network_file import load_network
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import TowerInput, build_tower, make_placeholders
from ziggurat.engine.backend import ProgramRequest, class_arrays, single_arrays
from ziggurat.zoo import network_path
from ziggurat.zoo.names import to_tensorflow, to_torch

CLASSES = 10


def request_of(case):
    arrays = class_arrays(tuple(case["shape"]), CLASSES)
    return ProgramRequest(network=case["network"], **arrays, batch_size=2, optimizer="sgd", learning_rate=0.0)


def predicted(case, weights):
    """Return the output of the network, built for inference alone."""
    path = network_path(case["network"], "tensorflow")
    with tf.Graph().as_default(), tf.Session() as session:
        shared = TowerInput(load_network(path.read_text(), str(path)), str(path), *single_arrays(request_of(case)))
        x, _ = make_placeholders(shared)
        tower = build_tower(shared, x, None, stage="inf")
        variables = {each.op.name: each for each in tf.global_variables() if each.op.name.startswith("model/")}
        shapes = {name: tuple(each.shape.as_list()) for name, each in variables.items()}
        assert shapes == {name: value.shape for name, value in weights.items()}
        given = {each.initializer.inputs[1]: weights[name] for name, each in variables.items()}
        session.run([each.initializer for each in variables.values()], given)
        return session.run(tower.outputs[0], {x: images(tuple(case["shape"]))})


def trained(case, weights):
    """Return the variables after a step with a rate of 0, named by PyTorch."""
    program = TensorFlowBackend().build(request_of(case))
    program.load_state({**program.state(), **weights})
    program.step([images(tuple(case["shape"])), np.array([0, 1])], ())
    found = to_torch(program.state())
    program.close()
    return found


def outputs(case):
    weights = to_tensorflow(made_up(case["shapes"]))
    return {"output": predicted(case, weights), **(trained(case, weights) if case["trains"] else {})}


def main():
    cases, path = sys.argv[1:]
    found = {}
    for number, case in enumerate(json.loads(Path(cases).read_text())):
        found |= {f"{number}:{key}": value for key, value in outputs(case).items()}
    np.savez(path, **found)


if __name__ == "__main__":
    main()
