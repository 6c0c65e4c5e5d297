"""Owns ``Tower``: the class that a user's network inherits, one object a device and stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar, overload

__all__ = ["Tower", "model_property"]

Value = TypeVar("Value")


class model_property(Generic[Value]):  # noqa: N801 - the name that DIGITS's users write
    """A property of a network that is evaluated once for each tower, and kept."""

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self._name = function.__name__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, tower: None, owner: type) -> model_property[Value]: ...
    @overload
    def __get__(self, tower: object, owner: type) -> Value: ...
    def __get__(self, tower: object | None, owner: type) -> Any:
        if tower is None:
            return self
        kept = tower.__dict__.setdefault("_model_properties", {})
        if self._name not in kept:
            kept[self._name] = self.function(tower)
        return kept[self._name]


class Tower:
    """What a user's ``UserModel`` inherits: its input, its labels, and which graph it is built for.

    Args:
        x: float32 (N, H, W, C), RGB, 0 to 255 less the mean that the job asks for.
        y: int64 (N) for class labels, otherwise (N, H, W, C); None for inference.
        input_shape: [H, W, C] after the crop.
        nclasses: number of classes of a classification dataset; None otherwise.
        is_training: True in the training graph, False in the validation graph and for inference.
        is_inference: True for inference.
    """

    disableAutoDataParallelism: ClassVar[bool] = False  # noqa: N815 - the guide's name
    """Set to True in the class for one tower, however many devices the job has."""

    newest_x: ClassVar[Any] = None
    """Input of the tower that was made last: the one that is being built."""

    def __init__(
        self,
        x: Any,
        y: Any,
        input_shape: Sequence[int],
        nclasses: int | None,
        is_training: bool,
        is_inference: bool,
    ) -> None:
        Tower.newest_x = x
        self.x = x
        self.y = y
        self.input_shape = list(input_shape)
        self.nclasses = nclasses
        self.is_training = is_training
        self.is_inference = is_inference
        self.summaries: list[Any] = []
        self.train = None

    def gradientUpdate(self, grads: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:  # noqa: N802
        """Return the (gradient, variable) pairs to apply; a pair left out is not trained. Override it at will."""
        return grads

    def fineTuneHook(self, net: Any) -> Any:  # noqa: N802
        """Return the output to use when the job starts from a pretrained model.

        Args:
            net: the untuned output, ``inference``.
        """
        return net
