"""What decides the last bits of a training on TensorFlow."""

from __future__ import annotations

from typing import Any

from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.engine.arithmetic import usable_cores

__all__ = ["tensorflow_arithmetic"]


def tensorflow_arithmetic(config: Any, *, towers: int = 1) -> dict[str, str | int | bool]:
    """Return name → value, as ``ziggurat.engine.capabilities.HasArithmetic`` describes.

    Args:
        config: the ``tf.ConfigProto`` of the session; None for TensorFlow's own choices.
        towers: parts of a batch that are computed side by side.
    """
    # Its public half can only turn it on.
    from tensorflow.python.framework.config import is_op_determinism_enabled

    config = tf.ConfigProto() if config is None else config
    rewrites = config.graph_options.rewrite_options
    gpus = [] if config.device_count.get("GPU") == 0 else tf2.config.list_physical_devices("GPU")
    kinds = [tf2.config.experimental.get_device_details(each).get("device_name", "GPU") for each in gpus]
    found: dict[str, str | int | bool] = {
        "backend": "tensorflow",
        "framework": f"TensorFlow {tf2.__version__}",
        "threads": config.intra_op_parallelism_threads or usable_cores(),
        "devices": f"{towers} × {', '.join(kinds) or 'cpu'}" if towers > 1 else ", ".join(kinds) or "cpu",
        "precision": "bf16" if rewrites.auto_mixed_precision_onednn_bfloat16 == type(rewrites).ON else "float32",
        "compiled": config.graph_options.optimizer_options.global_jit_level > 0,
        "deterministic": is_op_determinism_enabled(),
    }
    # Operations that run side by side give the same numbers in any order, unless a graph was made for a number of them.
    if config.inter_op_parallelism_threads:
        found["inter_threads"] = config.inter_op_parallelism_threads
    if kinds:
        build = tf2.sysconfig.get_build_info()
        found |= {
            "cuda": str(build.get("cuda_version", "")),
            "cudnn": str(build.get("cudnn_version", "")),
            "float32_products": "tf32" if tf2.config.experimental.tensor_float_32_execution_enabled() else "highest",
        }
    return found
