"""What a backbone that stands still gives of each sample, kept for the epochs in which only the head is trained."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from ziggurat.backends.torch.network import Network, Results

__all__ = ["FrozenFeatures", "frozen_features", "sample_keys"]

_MOST_BYTES: Final = 256 << 20
_KEY_BYTES: Final = 16


def frozen_features(network: Network, beginning: str) -> FrozenFeatures | None:
    """Return what keeps the inputs of a head; None where the head is not one module.

    Args:
        network: a standard one: it draws nothing at random where it computes as in validation.
        beginning: of the names of the head's weights, such as ``fc.``; see ``FineTuningRequest``.
    """
    path = beginning.rstrip(".")
    modules = dict(network.module.named_modules())
    return FrozenFeatures(network, modules[path]) if path and path in modules else None


def sample_keys(array: Any) -> list[bytes] | None:
    """Return what names each sample of a batch by its content; None where they do not lie in the memory of the host.

    Args:
        array: (N, …).
    """
    if not isinstance(array, np.ndarray):
        return None
    rows = np.ascontiguousarray(array)
    return [hashlib.blake2b(row.data, digest_size=_KEY_BYTES).digest() for row in rows.reshape(len(rows), -1)]


class FrozenFeatures:
    """Runs the backbone once for each sample, and after that the head alone.

    A sample is known by its content, so that data which is varied anew in each epoch is never mistaken. A batch in
    which any sample is new is computed as a whole: what a sample gives does not depend on what is kept.

    Args:
        network: whose backbone stands still, and computes as in validation.
        head: gives the output of the network.
        most_bytes: of features; further samples are not kept.
    """

    def __init__(self, network: Network, head: nn.Module, most_bytes: int = _MOST_BYTES) -> None:
        self._network = network
        self._head = head
        self._most_bytes = most_bytes
        self._kept: dict[bytes, torch.Tensor] = {}
        self._bytes = 0
        self.is_of_use = True
        """Whether the output of the head is all that follows from its input; known after the first batch."""

    def clear(self) -> None:
        """Forget everything: the backbone is another one from now on."""
        self._kept.clear()
        self._bytes = 0

    def results(
        self, keys: Sequence[bytes], x: torch.Tensor, y: torch.Tensor | None, forward: Callable[[], Results]
    ) -> Results:
        """Return outputs, losses and numbers of a batch.

        Args:
            keys: of the samples.
            x: the samples.
            y: their labels.
            forward: computes them with the backbone.
        """
        known = [self._kept.get(key) for key in keys]
        found = [each for each in known if each is not None]
        if len(found) == len(known):
            return self._network.results_of(self._head(torch.stack(found)), x, y)
        seen: list[tuple[Any, Any]] = []
        hook = self._head.register_forward_hook(lambda _, inputs, output: seen.append((inputs, output)))
        try:
            results = forward()
        finally:
            hook.remove()
        self._keep(keys, seen, results.outputs[0])
        return results

    def _keep(self, keys: Sequence[bytes], seen: Sequence[tuple[Any, Any]], output: torch.Tensor) -> None:
        """Keep the inputs of the head, where its output is all that follows from them."""
        if len(seen) != 1 or seen[0][1] is not output or len(seen[0][0]) != 1 or len(seen[0][0][0]) != len(keys):
            self.is_of_use = False
            return
        features = seen[0][0][0].detach()
        for key, row in zip(keys, features, strict=True):
            size = row.numel() * row.element_size()
            if self._bytes + size > self._most_bytes:
                return
            if key not in self._kept:
                self._kept[key] = row.clone()
                self._bytes += size
