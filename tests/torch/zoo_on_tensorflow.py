"""Answers of TensorFlow's standard networks to given weights and batches, in a process without PyTorch.

``python zoo_on_tensorflow.py CASES INPUTS OUTPUTS``: ``CASES`` is JSON, name → fields of ``ArraySpec`` of ``x`` and
``y``; ``INPUTS`` an ``.npz`` of ``name:x``, ``name:y``, ``name:noise`` and
``name:VARIABLE``; ``OUTPUTS`` gets ``name:NUMBER`` for each
output, ``name:cost``, and ``name:weights``, the number of trained weights.
"""

import json
import sys

import numpy as np

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.backend import ArraySpec, ProgramRequest


def array_spec(fields):
    return ArraySpec(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def answers(name, case, given):
    """Return the outputs, the cost and the number of weights of one network."""
    request = ProgramRequest(
        network=name.partition(" ")[0],
        inputs={"x": array_spec(case["x"])},
        targets={"y": array_spec(case["y"])} if "y" in case else {},
        batch_size=4,
    )
    program = TensorFlowBackend().build(request)
    trained = program.graph.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)
    found = {"weights": sum(int(np.prod(variable.shape)) for variable in trained)}
    if "x" in given:
        state = program.state()
        batch = [given.pop(key) for key in ("x", "y") if key in given]
        beside = {"noise": given.pop("noise")} if "noise" in given else {}
        names = {key for key in state if key.startswith("model/") and "Momentum" not in key}
        assert names == set(given), names ^ set(given)
        for key, value in given.items():
            assert state[key].shape == value.shape, (key, state[key].shape, value.shape)
        program.load_state({**state, **given})
        found.update({str(number): each for number, each in enumerate(program.predict(batch[0], beside))})
        found["cost"] = program.evaluate(batch, ("cost",))["cost"]
    program.close()
    return found


def main():
    cases, inputs, outputs = sys.argv[1:]
    with np.load(inputs) as arrays:
        given = dict(arrays)
    found = {}
    for name, case in json.loads(cases).items():
        own = {key.partition(":")[2]: value for key, value in given.items() if key.partition(":")[0] == name}
        found.update({f"{name}:{key}": value for key, value in answers(name, case, own).items()})
    np.savez(outputs, **found)


if __name__ == "__main__":
    main()
