"""Head of a network as one fully connected layer: its inputs, and weights that were fitted to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ziggurat.backends.torch.network import MODEL
from ziggurat.engine.fine_tuning import FineTuningRequest, head_of, no_linear_head

__all__ = ["head_inputs", "linear_head"]


def head_inputs(
    module: nn.Module, request: FineTuningRequest | None, run: Callable[[], Sequence[torch.Tensor]], count: int
) -> np.ndarray:
    """Return the inputs of the head of a network, (N, D) float32.

    Args:
        module: the network.
        request: of its fine-tuning, which names the head; None for the last layer with weights.
        run: runs it once on the samples.
        count: of the samples.

    Raises:
        ConfigurationError: if the head is not one layer that is computed once, from one vector for each sample.
    """
    _, head = _head(module, request)
    seen: list[Any] = []
    hook = head.register_forward_hook(lambda _, inputs, __: seen.append(inputs))
    try:
        run()
    finally:
        hook.remove()
    if len(seen) != 1 or len(seen[0]) != 1:
        raise no_linear_head(f"a layer that is computed {len(seen)} times for a batch")
    (features,) = seen[0]
    if features.ndim != 2 or len(features) != count:
        raise no_linear_head(f"an input of shape {tuple(features.shape)} for {count} samples")
    return features.detach().float().cpu().numpy()


def linear_head(
    module: nn.Module, request: FineTuningRequest | None, run: Callable[[], Sequence[torch.Tensor]]
) -> tuple[str, str]:
    """Return the names of weights (K, D) and bias (K,) of the head in a checkpoint.

    Args:
        module: the network.
        request: of its fine-tuning, which names the head; None for the last layer with weights.
        run: runs it once on any samples, and gives its outputs.

    Raises:
        ConfigurationError: if the output of the network is not that of one fully connected layer with a bias.
    """
    path, head = _head(module, request)
    if not isinstance(head, nn.Linear) or head.bias is None:
        raise no_linear_head(f"`{path}`: {head}")
    seen: list[Any] = []
    hook = head.register_forward_hook(lambda *parts: seen.append(parts[-1]))
    try:
        outputs = run()
    finally:
        hook.remove()
    if len(outputs) != 1 or len(seen) != 1 or seen[0] is not outputs[0]:
        raise no_linear_head(f"outputs that are computed from those of `{path}`")
    return f"{MODEL}{path}.weight", f"{MODEL}{path}.bias"


def _head(module: nn.Module, request: FineTuningRequest | None) -> tuple[str, nn.Module]:
    """Return the name and the module of the head."""
    shapes = {f"{MODEL}{name}": tuple(each.shape) for name, each in module.named_parameters()}
    names = head_of(shapes, "" if request is None else request.head)
    paths = {name.removeprefix(MODEL).rpartition(".")[0] for name in names}
    modules = dict(module.named_modules())
    if len(paths) != 1 or not (path := paths.pop()) or path not in modules:
        raise no_linear_head(", ".join(names) or "no weights")
    return path, modules[path]
