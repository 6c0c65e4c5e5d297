"""Datasets of data flows whose errors are found again behind those that TensorFlow makes of them."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final

from ziggurat.dataflow.adapters import dataflow_to_dataset, to_tf_dataset
from ziggurat.dataflow.base import DataFlow

__all__ = ["dataset_of", "flow_error_behind"]

_KEPT_ERRORS: Final = 16
_MARK: Final = re.compile(r"\[data flow error (\d+)\]")
_numbers: Final = count(1)
_errors: Final[OrderedDict[int, BaseException]] = OrderedDict()


def dataset_of(df: DataFlow, *, types: Sequence[Any] | None = None, signature: Any = None) -> Any:
    """Return a dataset of a data flow; ``flow_error_behind`` finds an error of the flow again.

    Args:
        df: the flow.
        types: the ``tf.DType`` of each component, or
        signature: the ``tf.TensorSpec`` of each.
    """
    flow: Any = _ToldErrors(df)
    return to_tf_dataset(flow, signature) if types is None else dataflow_to_dataset(flow, types)


def flow_error_behind(error: BaseException) -> BaseException | None:
    """Return the error of a data flow that TensorFlow replaced by one of its own; None where it is none of these."""
    found = _MARK.search(str(getattr(error, "message", "") or error))
    return None if found is None else _errors.get(int(found.group(1)))


class _ToldErrors:
    """A data flow whose errors are kept under a number, which they tell TensorFlow.

    Args:
        flow: the data flow.
    """

    def __init__(self, flow: DataFlow) -> None:
        self._flow = flow

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._flow
        except Exception as error:
            number = next(_numbers)
            _errors[number] = error
            while len(_errors) > _KEPT_ERRORS:
                _errors.popitem(last=False)
            raise RuntimeError(f"[data flow error {number}] {type(error).__name__}: {error}") from error
