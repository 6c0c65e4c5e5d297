"""Outputs of the weights that come with Ziggurat on TensorFlow, in a process without PyTorch.

``python backbone_on_tensorflow.py WEIGHTS SAME THREE OUTPUTS``: ``WEIGHTS`` is the folder of a workspace, ``SAME`` a
dataset with the classes that they know, ``THREE`` one with three others; ``OUTPUTS``, an ``.npz``, gets ``output`` of
the whole network, and ``three:KEY``, named by PyTorch, of one that starts from it for the others.
"""

import sys
from pathlib import Path

import numpy as np
from backbone import clothes, program_of

from ziggurat.zoo.names import to_torch


def main():
    weights, same, data, path = sys.argv[1:]
    whole = program_of("tensorflow", Path(weights), same)
    found = {"output": whole.predict(clothes())[0]}
    whole.close()
    three = program_of("tensorflow", Path(weights), data)
    found |= {f"three:{name}": array for name, array in to_torch(three.state(), "convnet").items()}
    three.close()
    np.savez(path, **found)


if __name__ == "__main__":
    main()
