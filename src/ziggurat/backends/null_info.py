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
        StandardNetwork("mlp", "Multilayer perceptron", other_tasks=("regression",)),
        StandardNetwork("linear", "Linear classifier", other_tasks=("regression",)),
        StandardNetwork("table_mlp", "Multilayer perceptron for tables", input="table", other_tasks=("regression",)),
        StandardNetwork("table_linear", "Linear model for tables", input="table", other_tasks=("regression",)),
    ),
)
