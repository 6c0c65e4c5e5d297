"""Description of the NumPy backend; it imports no NumPy."""

from __future__ import annotations

from typing import Final

from ziggurat.entities.backend_info import BackendInfo, StandardNetwork

__all__ = ["INFO"]

INFO: Final = BackendInfo(
    title="NumPy",
    backend="ziggurat.backends.null:NullBackend",
    summary="Small networks that need no framework.",
    rank=90,  # behind the frameworks, before what other packages bring
    networks=(
        StandardNetwork("mlp", "Multilayer perceptron"),
        StandardNetwork("linear", "Linear classifier"),
    ),
)
