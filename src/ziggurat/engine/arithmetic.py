"""Record of the arithmetic of a process: the versions, instructions, threads and switches that decide the last bits.

A training that resumes with the same state, data and arithmetic gives the same bits. Each checkpoint has the record of
the attempt that wrote it, so that a resume can tell.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.engine.capabilities import HasArithmetic

__all__ = ["arithmetic_of", "blas_threads", "usable_cores"]

_VARIABLES: Final = (
    *("CUBLAS_*", "CUDNN_*", "DNNL_*", "MKL_CBWR", "MKL_DYNAMIC", "MKL_ENABLE_INSTRUCTIONS", "NVIDIA_TF32_OVERRIDE"),
    *("ONEDNN_*", "OPENBLAS_CORETYPE", "TF_CUDNN_*", "TF_DETERMINISTIC_OPS", "TF_ENABLE_*", "TF_XLA_FLAGS"),
    *("TORCH_ALLOW_TF32_*", "XLA_FLAGS", "ATEN_CPU_CAPABILITY", "NPY_DISABLE_CPU_FEATURES", "GLIBC_TUNABLES"),
)
"""Patterns of environment variables that change which kernels run."""

_IMAGE_LIBRARIES: Final = ("cv2", "PIL.Image", "PIL.features", "ziggurat.dataflow.fast.engines")
_SPEAKS_ONLY: Final = ("*VERBOSE*", "*LOG*", "*PROFILE*")
_THREADS: Final = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def arithmetic_of(*parts: object) -> dict[str, str | int | bool]:
    """Return the arithmetic of this process, name → value.

    Args:
        parts: program and source of batches of the training; one that is no ``HasArithmetic`` adds nothing.
    """
    found = {**_machine(), "variables": _variables(os.environ)}
    for part in parts:
        found |= part.arithmetic() if isinstance(part, HasArithmetic) else {}
    return found


def usable_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def blas_threads(environment: Mapping[str, str]) -> int:
    """Return the threads of NumPy's BLAS, which it chooses when it is loaded: by default one for each usable core.

    Args:
        environment: variables of the process.
    """
    asked = next((environment[name] for name in _THREADS if environment.get(name, "").isdigit()), "0")
    return min(int(asked), usable_cores()) or usable_cores()


@functools.cache
def _machine() -> Mapping[str, str | int | bool]:
    # Here, and not above: OpenCV's import takes time and changes the environment.
    cv2, image, features, engines = map(import_module, _IMAGE_LIBRARIES)
    images = engines.engine()
    jpeg = "libjpeg-turbo" if features.check_feature("libjpeg_turbo") else "libjpeg"
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "opencv": cv2.__version__,
        "pillow": image.__version__,
        "jpeg": f"{jpeg} {_jpeg_version(features)}",
        "image_engine": f"{images.name} {images.version}".strip(),
        "processor": _processor(),
        "instructions": " ".join(config.get("SIMD Extensions", {}).get("found", [])),
    }


def _jpeg_version(features: Any) -> str:
    found = features.version_feature("libjpeg_turbo") or features.version_codec("jpg")
    return found or "unknown"


def _processor() -> str:
    """Return architecture and model of the processor: libraries choose kernels and block sizes by them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{platform.machine()} {model or platform.processor()}".strip()


def _variables(environment: Mapping[str, str]) -> str:
    """Return the set variables that change kernels, as ``NAME=VALUE`` in alphabetical order."""
    found = [
        f"{name}={value}"
        for name, value in sorted(environment.items())
        if any(fnmatchcase(name, each) for each in _VARIABLES)
        and not any(fnmatchcase(name, each) for each in _SPEAKS_ONLY)
    ]
    return " ".join(found)
