"""Sessions: how the session of a training is made, and the devices and memory that it takes."""

from __future__ import annotations

import os
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf

__all__ = [
    "NewSessionCreator",
    "ReuseSessionCreator",
    "SessionInit",
    "device_name",
    "get_default_sess_config",
    "get_global_step_value",
    "get_global_step_var",
    "visible_gpus",
]


def get_default_sess_config(mem_fraction: float = 0.99) -> Any:
    """Return the ``tf.ConfigProto`` of a training: soft placement, and GPU memory as it is needed.

    Args:
        mem_fraction: share of a GPU's memory that may be taken at most, in (0, 1].
    """
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.per_process_gpu_memory_fraction = mem_fraction
    config.gpu_options.allow_growth = True
    return config


class NewSessionCreator:
    """Makes a session over the default graph and initializes variables and tables.

    Args:
        target: address of a TensorFlow server; empty for this process.
        config: a ``tf.ConfigProto``; ``get_default_sess_config()`` where it is None.
    """

    def __init__(self, target: str = "", config: Any = None) -> None:
        self.target = target
        self.config = get_default_sess_config() if config is None else config
        self.user_provided_config = config is not None

    def create_session(self) -> Any:
        """Return an open session whose variables have their first values."""
        session = tf.Session(target=self.target, config=self.config)
        try:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        except BaseException:
            session.close()
            raise
        return session


class ReuseSessionCreator:
    """Gives a session that exists. Variables that have values keep them; the others get their first values.

    The others are what the training itself counts with, and what its callbacks have added.

    Args:
        sess: the session, over the default graph.
    """

    def __init__(self, sess: Any) -> None:
        self.sess = sess

    def create_session(self) -> Any:
        """Return the session, with values for all variables."""
        variables = [*tf.global_variables(), *tf.local_variables()]
        have_values = self.sess.run([tf.is_variable_initialized(each) for each in variables])
        missing = [each for each, has_value in zip(variables, have_values, strict=True) if not has_value]
        self.sess.run(tf.variables_initializer(missing))
        return self.sess


class SessionInit:
    """Base of what gives variables their values after they were initialized: loaders of checkpoints and files."""

    def setup_graph(self) -> None:
        """Add operations while the graph is open."""
        self._setup_graph()

    def init(self, sess: Any) -> None:
        """Give the variables their values."""
        self._run_init(sess)

    def _setup_graph(self) -> None:
        """Tensorpack's name of ``setup_graph``, for subclasses."""

    def _run_init(self, sess: Any) -> None:
        """Tensorpack's name of ``init``, for subclasses."""


def get_global_step_var() -> Any:
    """Return the variable that counts the steps of a training; made where the graph has none."""
    return tf.train.get_or_create_global_step()


def get_global_step_value() -> int:
    """Return the steps done, as the default session knows them."""
    return int(tf.train.global_step(tf.get_default_session(), get_global_step_var()))


def device_name(device: int | str) -> str:
    """Return the TensorFlow name of a device; the processor where there is no such GPU.

    Args:
        device: number of a GPU, or a name such as ``/cpu:0``.
    """
    if isinstance(device, str):
        return device if device.startswith("/") else f"/{device}"
    return f"/gpu:{device}" if device < len(visible_gpus()) else "/cpu:0"


def visible_gpus() -> list[Any]:
    """Return the GPUs that TensorFlow may use."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return []
    return tf.config.list_physical_devices("GPU")
