"""Description of the PyTorch backend, which this version does not have yet."""

from __future__ import annotations

from typing import Final

from ziggurat.entities.backend_info import BackendInfo

__all__ = ["INFO"]

INFO: Final = BackendInfo(
    title="PyTorch",
    unavailable="This version has no backend for it yet.",
    rank=20,
    accelerators=("gpu",),
    takes_network_files=True,
    worker_variables=("TORCH_*", "PYTORCH_*", "TRITON_*"),
    requires={"torch": "torch"},
    extra="torch",
)
