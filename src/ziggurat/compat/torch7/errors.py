"""Error of a network or model of Torch that cannot be imported; it names the line where there is one."""

from __future__ import annotations

from ziggurat.compat.caffe.errors import CaffeError

__all__ = ["TorchError"]


class TorchError(CaffeError):
    """A file of Torch is damaged, or asks for what an import does not know."""

    code = "torch7"
