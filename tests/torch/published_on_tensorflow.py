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
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.zoo.names import to_tensorflow, to_torch

CLASSES = 10


def outputs(case):
    weights = to_tensorflow(made_up(case["shapes"]))
    shape = tuple(case["shape"])
    program = TensorFlowBackend().build(
        ProgramRequest(
            network=case["network"], **class_arrays(shape, CLASSES), batch_size=2, optimizer="sgd", learning_rate=0.0
        )
    )
    variables = {name: value.shape for name, value in program.state().items() if name.startswith("model/")}
    assert variables == {name: value.shape for name, value in weights.items()}
    program.load_state({**program.state(), **weights})
    found = {"output": program.predict(images(shape))[0]}
    if case["trains"]:
        program.step([images(shape), np.array([0, 1])], ())
        found |= to_torch(program.state())
    program.close()
    return found


def main():
    cases, path = sys.argv[1:]
    found = {}
    for number, case in enumerate(json.loads(Path(cases).read_text())):
        found |= {f"{number}:{key}": value for key, value in outputs(case).items()}
    np.savez(path, **found)


if __name__ == "__main__":
    main()
