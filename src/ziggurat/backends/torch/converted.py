"""Single run of a network file with given weights: what an import of another framework's network compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from ziggurat.backends.torch.network_file import load_network, users_errors
from ziggurat.errors import CheckpointError

__all__ = ["run_converted"]


def run_converted(
    text: str, state: Mapping[str, np.ndarray], samples: np.ndarray, path: str = "network.py"
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Return the outputs of a network in inference and in training order, and layer → what it gave last.

    A network that gives more outputs in training than in inference gives those of the training, computed as in
    inference.

    Args:
        text: of the network file, whose ``UserModel`` is a module.
        state: name → array of all of its weights.
        samples: (N, …) float32.
        path: name of the file, for errors.

    Raises:
        NetworkCodeError: where the file fails.
        CheckpointError: where names or shapes are of another network.
    """
    with users_errors(path):
        kind: Any = load_network(text, path)
        module: nn.Module = kind(None, list(samples.shape[1:]))
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
    try:
        missing, unexpected = module.load_state_dict(tensors, strict=False)
    except RuntimeError as error:
        raise CheckpointError(
            f"The weights have other shapes than the network: {str(error)[:300].rstrip('.')}."
        ) from None
    if missing or unexpected:
        names = ", ".join([*missing, *unexpected][:6])
        raise CheckpointError(f"The weights have other names than the network: {names}.")
    module.eval()
    inside: dict[str, torch.Tensor] = {}
    for name, layer in module.named_modules():
        if name:
            layer.register_forward_hook(lambda _layer, _inputs, output, name=name: inside.__setitem__(name, output))
    module.training = True  # all outputs; the layers themselves stay in inference
    with users_errors(path), torch.no_grad():
        output = module(torch.from_numpy(samples))
    outputs = list(output) if isinstance(output, list | tuple) else [output]
    return [each.numpy() for each in outputs], {
        name: each.numpy() for name, each in inside.items() if isinstance(each, torch.Tensor)
    }
