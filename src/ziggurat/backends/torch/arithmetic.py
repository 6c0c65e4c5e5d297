"""What decides the last bits of a training on PyTorch."""

from __future__ import annotations

import re
from typing import Any

import torch

__all__ = ["torch_arithmetic"]


def torch_arithmetic(
    device: torch.device,
    *,
    count: int = 1,
    precision: str = "float32",
    channels_last: bool = False,
    is_compiled: bool = False,
    threads: int = 0,
) -> dict[str, str | int | bool]:
    """Return name → value, as ``ziggurat.engine.capabilities.HasArithmetic`` describes.

    Threads between operations are not among them: a step runs one operation after the other.

    Args:
        device: where it computes.
        count: devices that share a batch.
        precision: of the layers.
        channels_last: whether images have their channels last in memory.
        is_compiled: whether ``torch.compile`` is used.
        threads: of each process; 0 for those that PyTorch has now.
    """
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    found: dict[str, str | int | bool] = {
        "backend": "torch",
        "framework": f"PyTorch {torch.__version__}",
        "framework_instructions": torch.backends.cpu.get_cpu_capability(),
        "libraries": _libraries(),
        "threads": threads or torch.get_num_threads(),
        "devices": name if count == 1 else f"{count} × {name}",
        "precision": precision,
        "channels_last": channels_last,
        "compiled": is_compiled,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "float32_products": torch.get_float32_matmul_precision(),
    }
    if device.type == "cuda":
        cudnn: Any = torch.backends.cudnn
        found |= {
            "cuda": str(torch.version.cuda or torch.version.hip),
            "cudnn": f"{cudnn.version()}{'' if cudnn.enabled else ' off'}",
            "cudnn_benchmark": bool(cudnn.benchmark),
            "cudnn_tf32": bool(cudnn.allow_tf32),
        }
    return found


def _libraries() -> str:
    """Return names and versions of the libraries that multiply matrices on the CPU."""
    build = torch.__config__.show()
    math_kernel = re.search(r"Math Kernel Library Version ([\d.]+)", build)
    one = re.search(r"MKL-DNN v([\d.]+)", build)
    found = [f"MKL {math_kernel.group(1)}"] if math_kernel else []
    found += [f"oneDNN {one.group(1)}"] if one and torch.backends.mkldnn.enabled else []
    return ", ".join(found)
