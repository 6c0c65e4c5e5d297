"""User's summaries: their tensors, the scalars among them, and the message that TensorBoard gets."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf, tf2

__all__ = ["merged_summaries", "scalars_of", "single_summaries", "tag_of", "with_short_tags"]

_logger = logging.getLogger(__name__)
_SCOPE: Final = re.compile(r"((train/tower_0|val)/(model/)?)+")
_SHOWN_SCOPES: Final = re.compile(r"(?!inf/|train/tower_[1-9])")
# Stateful to TensorFlow, and yet reading them changes nothing.
_READERS: Final = frozenset({"VarHandleOp", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableV2"})


def single_summaries(summaries: Iterable[Any]) -> list[Any]:
    """Return the summaries that were made one by one: merged ones taken apart, each once.

    What stands in a branch or loop of the graph is left out: it cannot be fetched from outside.

    Args:
        summaries: serialized summaries, as the user's ``self.summaries`` and the graph's collection hold them.
    """
    found: dict[str, Any] = {}
    waiting = [each for each in summaries if isinstance(each, tf.Tensor)][::-1]
    while waiting:
        tensor = waiting.pop()
        if tensor.op.type == "MergeSummary":
            waiting.extend(list(tensor.op.inputs)[::-1])
        elif tensor.graph is tf.get_default_graph() and tensor.op._get_control_flow_context() is None:
            found.setdefault(tensor.name, tensor)
    return list(found.values())


def scalars_of(summaries: Sequence[Any]) -> dict[str, Any]:
    """Return the numbers behind scalar summaries, by the last part of their tags; by the whole tag where that is taken.

    Args:
        summaries: what ``single_summaries`` gave.
    """
    scalars: dict[str, Any] = {}
    for summary in summaries:
        if summary.op.type == "ScalarSummary":
            tag = tag_of(summary)
            last = tag.rsplit("/", 1)[-1]
            scalars[tag if last in scalars else last] = summary.op.inputs[1]
    return scalars


def merged_summaries(validation: Sequence[Any], curves: Mapping[str, Any]) -> Any:
    """Return one tensor with all of the user's summaries that are not curves already; None where there are none.

    Those of the validation tower come first: computing them changes nothing. Others (of gradients, or made only where
    ``is_training``) join them unless computing them would change the training: draw random numbers, move an average.

    Args:
        validation: single summaries of the validation tower.
        curves: name → the first training tower's number that is logged under it.
    """
    everything = single_summaries(tf.get_collection(tf.GraphKeys.SUMMARIES))
    chosen = {tag_of(each): each for each in validation if each.op.type != "ScalarSummary"}
    known = {tensor.name for tensor in curves.values()}
    own = {each.name for each in validation}
    for each in everything:
        is_shown = _SHOWN_SCOPES.match(each.op.name) and each.name not in own
        if not is_shown or tag_of(each) in chosen or each.op.inputs[-1].name in known:
            continue
        if _changes_state(each):
            _logger.warning(
                "The summary %r is left out: computing it beside a training step would change the training.",
                tag_of(each),
            )
        else:
            chosen[tag_of(each)] = each
    return tf.summary.merge(list(chosen.values()), collections=[]) if chosen else None


def tag_of(summary: Any) -> str:
    """Return the tag of a single summary, without the scopes that the towers add."""
    tags = [source for source in summary.op.inputs if source.dtype == tf.string]
    tag = tf2.get_static_value(tags[0]) if tags else None
    return _short(tag.decode() if isinstance(tag, bytes) else summary.op.name)


def with_short_tags(summary: bytes) -> bytes:
    """Return a serialized ``Summary`` whose tags are without the scopes that the towers add."""
    message = tf.Summary.FromString(summary)
    for value in message.value:
        value.tag = _short(value.tag)
    return message.SerializeToString()


def _short(tag: str) -> str:
    return _SCOPE.sub("", tag, count=1) or tag


def _changes_state(tensor: Any) -> bool:
    """Return whether anything that a tensor is computed from has a state that computing changes."""
    waiting, seen = [tensor.op], set[str]()
    while waiting:
        operation = waiting.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        if operation.op_def.is_stateful and operation.type not in _READERS:
            return True
        waiting.extend([source.op for source in operation.inputs] + list(operation.control_inputs))
    return False
