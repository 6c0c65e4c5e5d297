"""``tf.app.flags`` for scripts: a flag of the script replaces one that today's libraries define for themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["flags_module"]


def flags_module(path: str) -> ModuleType:
    """Return the flags of TensorFlow 1.

    absl defines flags such as ``log_dir`` and ``v`` when it is imported; a script may have its own.

    Args:
        path: the module's name, as a script writes it.
    """
    defining = [name for name in dir(tf.flags) if name.startswith("DEFINE_")]
    return StandInModule(path, tf.flags, names={name: _replacing(getattr(tf.flags, name)) for name in defining})


def _replacing(define: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(define)
    def define_flag(name: str, *arguments: Any, **options: Any) -> Any:
        flags: Any = tf.flags.FLAGS
        module = flags.find_module_defining_flag(name) if isinstance(name, str) else None
        if module and module.startswith("absl."):
            delattr(flags, name)
        return define(name, *arguments, **options)

    return define_flag


tf.flags.disclaim_key_flags()  # flags belong to the module that calls these functions, not to this one
