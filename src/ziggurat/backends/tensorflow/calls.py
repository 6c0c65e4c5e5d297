"""Session calls that are prepared once: a step then pays for no look-up of names, and for no check of its feeds."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError

__all__ = ["Feed", "prepared_call"]

# TensorFlow exports the class nowhere but beside this one.
_CALLABLE_OPTIONS: Final = importlib.import_module(tf.ConfigProto.__module__).CallableOptions

_CALLING_THREAD: Final = -1


@dataclass(frozen=True)
class Feed:
    """Placeholder of a batch component, with what an array must be to be fed to it.

    Args:
        noun: what one row is, for errors: ``sample``, ``label``.
        tensor: the placeholder.
        dtype: its dtype.
        row_shape: shape of one row.
    """

    noun: str
    tensor: Any
    dtype: np.dtype[Any]
    row_shape: tuple[int | None, ...]

    @classmethod
    def of(cls, noun: str, tensor: Any) -> Feed:
        """Return the feed of a placeholder whose first axis counts the rows."""
        return cls(noun, tensor, np.dtype(tensor.dtype.as_numpy_dtype), tuple(tensor.shape.as_list()[1:]))

    def array(self, part: Any) -> np.ndarray:
        """Return a component of a batch as a prepared call takes it: nothing behind this looks at it again.

        Raises:
            ConfigurationError: where its rows are of another shape, or its values do not convert to the dtype.
        """
        try:
            array = np.asarray(part, self.dtype)
        except (ValueError, TypeError) as error:
            raise ConfigurationError(
                f"A {self.noun} of this network is of type {self.dtype}.",
                received=f"{type(part).__name__} of {getattr(part, 'dtype', 'mixed values')} ({error})",
                advice="Give it numbers.",
            ) from error
        shape = array.shape
        # The equality is the whole check of nearly every batch; the rest is for open dimensions and for the error.
        if not shape or (shape[1:] != self.row_shape and not self._allows(shape[1:])):
            raise ConfigurationError(
                f"A {self.noun} of this network has shape {self.row_shape}.",
                received=str(shape[1:]) if shape else "a single number, without an axis of rows",
                advice="Give it data of the size it was made for, or set the crop.",
            )
        return array

    def _allows(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == len(self.row_shape) and all(
            wanted is None or wanted == size for wanted, size in zip(self.row_shape, shape, strict=True)
        )


def prepared_call(
    session: Any,
    feeds: Sequence[Any],
    fetches: Sequence[Any],
    targets: Sequence[Any] = (),
    *,
    in_own_thread: bool = False,
) -> Callable[..., Sequence[Any]]:
    """Return a function from one array a feed to one value a fetch.

    ``session.run`` and ``session.make_callable`` go through some hundred microseconds of Python with each call; this
    does not. So the arrays must be of the placeholders' dtypes and shapes.

    Args:
        session: its graph is not changed any more.
        feeds: placeholders.
        fetches: tensors; one may be there several times, and may be a feed.
        targets: operations that are run, too.
        in_own_thread: run one operation after the other in the calling thread, without the session's pool of threads.
            Single operations still use several threads.
    """
    fed = [feed.name for feed in feeds]
    names = [fetch.name for fetch in fetches]
    fetched = list(dict.fromkeys(name for name in names if name not in fed))
    options = _CALLABLE_OPTIONS(feed=fed, fetch=fetched, target=[target.name for target in targets])
    if in_own_thread:
        options.run_options.inter_op_thread_pool = _CALLING_THREAD
    call = session._make_callable_from_options(options)
    if fetched == names:
        return call
    places = {name: place for place, name in enumerate([*fetched, *fed])}
    order = [places[name] for name in names]

    def call_in_order(*arrays: Any) -> list[Any]:
        values = [*call(*arrays), *arrays]
        return [values[place] for place in order]

    return call_in_order
