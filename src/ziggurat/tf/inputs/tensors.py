"""Input sources of tensors that the graph itself makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow.base import UnknownLengthError
from ziggurat.errors import ConfigurationError
from ziggurat.tf.inputs.base import InputSource, check_components, shape_text

__all__ = ["DummyConstantInput", "TensorInput", "checked_tensors"]


class TensorInput(InputSource):
    """Takes tensors that a function defines, such as those of a reader; they are evaluated with every step.

    The function is called once a tower, in its scopes. When the tensors run out (``tf.errors.OutOfRangeError``)
    the training is complete. A resumed training goes on with whatever they give then.

    Args:
        get_tensor_fn: returns one tensor an input, or a mapping by names.
        size: batches in a pass, for ``steps_per_epoch``; None where it is not known.
    """

    def __init__(self, get_tensor_fn: Callable[[], Any], size: int | None = None) -> None:
        super().__init__()
        if not callable(get_tensor_fn):
            raise ConfigurationError(
                "`TensorInput` takes a function that returns tensors.",
                received=type(get_tensor_fn).__name__,
                advice="Write `TensorInput(lambda: [image, label])`.",
            )
        self.get_tensor_fn = get_tensor_fn
        self._given_size = size

    def _size(self) -> int:
        if self._given_size is None:
            raise UnknownLengthError(self)
        return self._given_size

    def _get_input_tensors(self) -> list[Any]:
        with self.cached_name_scope():
            return checked_tensors("what `get_tensor_fn` returned", self.get_tensor_fn(), self.signature)


class DummyConstantInput(InputSource):
    """Zeros that lie on the device: to measure a graph without its data.

    Args:
        shapes: sizes of each input, all known, the batch's included.
    """

    def __init__(self, shapes: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.shapes = [tuple(shape) for shape in shapes]

    def _setup(self, input_signature: Sequence[Any]) -> None:
        wrong = [
            f"{shape} for `{spec.name}` of shape {shape_text(spec.shape)}"
            for shape, spec in zip(self.shapes, input_signature, strict=False)
            if not spec.shape.is_compatible_with(shape)
        ]
        if wrong or len(self.shapes) != len(input_signature):
            raise ConfigurationError(
                f"`shapes` has the sizes of each input: {', '.join(spec.name for spec in input_signature)}.",
                received="; ".join(wrong) or f"{len(self.shapes)} shape(s)",
                advice="Give one shape an input, without None.",
            )

    def _get_input_tensors(self) -> list[Any]:
        with self.cached_name_scope():
            return [_zeros(spec, shape) for spec, shape in zip(self.signature, self.shapes, strict=True)]


def _zeros(spec: Any, shape: Sequence[int]) -> Any:
    """Return a constant of which the graph holds a single number."""
    zero = "" if spec.dtype == tf.string else spec.dtype.as_numpy_dtype(0)
    return tf.constant(zero, spec.dtype, shape, name=spec.name)


def checked_tensors(what: str, tensors: Any, signature: Sequence[Any]) -> list[Any]:
    """Return one tensor an input, with all that the signature knows of its shape.

    Args:
        what: where they are from, for errors.
        tensors: in the order of the inputs, or a mapping by names.
        signature: a ``tf.TensorSpec`` for each input.

    Raises:
        ConfigurationError: where a type or a shape is not that of the input.
        DataError: where there are more or fewer of them.
    """
    found = [tf.convert_to_tensor(each) for each in check_components(what, tensors, signature)]
    wrong = [
        f"{spec.name}: {tensor.dtype.base_dtype.name} {shape_text(tensor.shape)} instead of "
        f"{spec.dtype.name} {shape_text(spec.shape)}"
        for tensor, spec in zip(found, signature, strict=True)
        if tensor.dtype.base_dtype != spec.dtype or not tensor.shape.is_compatible_with(spec.shape)
    ]
    if wrong:
        raise ConfigurationError(
            f"The tensors of an input have another type or shape than its `tf.TensorSpec`: {what}: {'; '.join(wrong)}.",
            advice="Cast and reshape them, or change the signature of the model.",
        )
    for tensor, spec in zip(found, signature, strict=True):
        tensor.set_shape(spec.shape)
    return found
