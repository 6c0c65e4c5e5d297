"""Debug command: the network of a request, run eagerly; call ``choose_eager`` first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.debug import debug_network
from ziggurat.engine.backend import ProgramRequest, single_arrays
from ziggurat.zoo import network_path

__all__ = ["TensorFlowDebugging"]


class TensorFlowDebugging:
    """Runs networks eagerly, in a process in which nothing else uses TensorFlow."""

    def debug(self, request: ProgramRequest, batch: Sequence[np.ndarray]) -> Mapping[str, Any]:
        """Run ``inference`` and ``loss`` once; an error stops at the user's line."""
        text, path = request.network_text, request.network
        if text is None:
            file: Path = network_path(request.network, "tensorflow")
            text, path = file.read_text(encoding="utf-8"), str(file)
        x, y = single_arrays(request)
        classes = None if y is None else y.classes
        found = debug_network(text, path, batch=batch, input_shape=x.shape, classes=classes)
        return asdict(found)
