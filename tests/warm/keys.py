"""What an import of a framework reads from the environment: a start whose values differ is a cold one."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

PATTERNS = (
    "CUDA_*",
    "GOTO_*",
    "HIP_*",
    "KERAS_*",
    "KMP_*",
    "LANG",
    "LC_*",
    "LD_*",
    "MALLOC_*",
    "MKL_*",
    "NUMEXPR_*",
    "NVIDIA_*",
    "OMP_*",
    "ONEDNN_*",
    "OPENBLAS_*",
    "OPENCV_*",
    "PYTHON*",
    "PYTORCH_*",
    "TF2_*",
    "TF_*",
    "TORCH_*",
    "TRITON_*",
    "XLA_*",
    "ZIGGURAT_OUTPUT_IS_LOG",
)
"""Patterns of variables. A worker behind a shim has the last one, and starts cold: its process number is kept."""


def read_at_import(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an import reads."""
    read = {name: value for name, value in environment.items() if any(fnmatchcase(name, each) for each in PATTERNS)}
    # OpenCV's import puts its own folder in front, once in each process that inherits the value.
    folders = [folder for folder in read.pop("LD_LIBRARY_PATH", "").split(":") if folder and "/cv2/" not in folder]
    return {**read, "LD_LIBRARY_PATH": ":".join(folders)} if folders else read
