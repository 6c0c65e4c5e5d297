"""Chains of layers, without a Python variable between one layer and the next."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import ziggurat.tf.models  # noqa: F401 - registers the layers
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf.models.registry import get_registered_layer

__all__ = ["LinearWrap"]


class LinearWrap:
    """A tensor with the layers as methods: each applies the layer to the tensor and returns the next link of the chain.

    >>> logits = LinearWrap(image).Conv2D("conv0", 32, 3).MaxPooling("pool0", 2).FullyConnected("fc", 10)()

    ``.tf.<function>(...)`` calls a function of TensorFlow with the tensor first; names with dots work too, as in
    ``.tf.nn.relu()``. A call without arguments, ``()``, ends the chain and gives the tensor.

    Args:
        tensor: what the chain begins with.
    """

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        """Return the layer of a name as a method.

        Raises:
            AttributeError: where no layer has the name.
            ConfigurationError: where two layers have it.
        """
        if name == "tf":
            return _Functions(tf, self._tensor)
        layer = None if name.startswith("__") else get_registered_layer(name)
        if layer is None:
            raise AttributeError(
                f"`{name}` is no layer: register it by `layer_register()`, or write `.apply({name}, ...)`."
            )
        return self._method(layer)

    def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> LinearWrap:
        """Apply a function to the tensor: ``func(tensor, *args, **kwargs)``."""
        return LinearWrap(func(self._tensor, *args, **kwargs))

    def apply2(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> LinearWrap:
        """Apply a function with the tensor as its second argument: ``func(args[0], tensor, *args[1:], **kwargs)``."""
        return LinearWrap(func(args[0], self._tensor, *args[1:], **kwargs))

    def tensor(self) -> Any:
        """Return the tensor, as ``()`` does."""
        return self._tensor

    def print_tensor(self) -> LinearWrap:
        """Print the tensor's name, shape and type; return the chain."""
        print(self._tensor)  # noqa: T201 - what it is for
        return self

    def __call__(self) -> Any:
        """Return the tensor: the end of the chain."""
        return self._tensor

    def _method(self, layer: Callable[..., Any]) -> Callable[..., LinearWrap]:
        def call(*args: Any, **kwargs: Any) -> LinearWrap:
            has_name = bool(args) and isinstance(args[0], str)
            leading = args[:1] if has_name else ()
            return LinearWrap(layer(*leading, self._tensor, *args[len(leading) :], **kwargs))

        return call


class _Functions:
    """The functions of a module of TensorFlow, applied to the tensor of a chain."""

    def __init__(self, module: ModuleType, tensor: Any) -> None:
        self._module = module
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return _Functions(found, self._tensor)

        def call(*args: Any, **kwargs: Any) -> LinearWrap:
            return LinearWrap(found(self._tensor, *args, **kwargs))

        return call
