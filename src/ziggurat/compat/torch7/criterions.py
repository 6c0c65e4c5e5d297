"""Criterion and ``labelHook`` of a recorded network of Torch: what is minimized, and what is learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.compat.caffe.graph import LABEL, Graph, Loss
from ziggurat.compat.caffe.layers import Layer
from ziggurat.compat.caffe.text import Message
from ziggurat.compat.torch7.errors import TorchError
from ziggurat.compat.torch7.options import message

__all__ = ["add_loss", "label_of"]

_SIGNS: Final = {"mul": "*", "div": "/", "add": "+", "sub": "-"}
_SCORES: Final = (
    "ClassNLLCriterion",
    "CrossEntropyCriterion",
    "SpatialClassNLLCriterion",
    "SpatialCrossEntropyCriterion",
)
_PAIRS: Final = ("CosineEmbeddingCriterion", "MarginRankingCriterion")
_NUMBERS: Final = ("MSECriterion", "BCECriterion", "AbsCriterion", "SmoothL1Criterion")


def label_of(record: Mapping[str, Any], graph: Graph) -> str:
    """Return the expression of what is learned: the labels, as ``labelHook`` changes them."""
    hook = record.get("labelHook")
    if not hook:
        return "y"
    if hook.get("of") == "input":
        graph.notes.append("`labelHook` returns its input: the network learns to give its images.")
        if hook["ops"]:
            raise TorchError(
                "`labelHook` changes its input, which is not known to an import.", line=_line(hook["ops"][0])
            )
        return "self.target"
    text = "y"
    for op in hook["ops"]:
        name, *values = op[:-1]
        numbers = [float(each) for each in values]
        if name == "replace":
            text = f"torch.where({text} == {numbers[0]:g}, {numbers[1]:g}, {text})"
        elif name in _SIGNS:
            text = f"({text} {_SIGNS[name]} {numbers[0]:g})"
        else:
            raise TorchError(f"`{name}` in `labelHook` is not known to an import.", line=_line(op))
    if text != "y":
        graph.notes.append("`labelHook` became part of the loss.")
    return text


def _line(op: Sequence[Any]) -> int:
    return int(op[-1]) if op and isinstance(op[-1], int | float) else 0


def add_loss(record: Mapping[str, Any], graph: Graph) -> None:
    """Add the criterion; scores are taken before a softmax at the end."""
    criterion = record.get("loss")
    kind = str(criterion["kind"]) if criterion else ""
    if criterion and kind == "ParallelCriterion":
        _add_losses(criterion, graph)
        return
    ends = _end(graph)
    if not kind and ends in ("LogSoftMax", "Softmax"):
        kind = "ClassNLLCriterion"
    if not kind:
        return
    line = criterion["line"] if criterion else 0
    if kind in _SCORES:
        takes_scores = "CrossEntropy" in kind
        if ends == "LogSoftMax" or (ends == "Softmax" and not criterion):
            _without_end(graph)
        elif not takes_scores:
            raise TorchError(
                f"`nn.{kind}` takes logarithms of probabilities.",
                line=line,
                advice="End the network with nn.LogSoftMax(), or use nn.CrossEntropyCriterion().",
            )
        if graph.label != "y":
            raise TorchError("`labelHook` changes the numbers of classes, which is not known to an import.", line=line)
        parts, target = ("SoftmaxWithLoss", (graph.outputs[0], LABEL)), "y"
    elif kind in _PAIRS:
        if len(graph.outputs) != 2:
            raise TorchError(
                f"The network has {len(graph.outputs)} output(s), and `nn.{kind}` compares two.",
                line=line,
            )
        parts, target = (kind, (*graph.outputs, LABEL)), graph.label
        if target == "y":
            target = "(2 * y - 1)"
            graph.notes.append(f"Labels 0 and 1 become -1 and 1, as `nn.{kind}` takes them.")
    elif kind in _NUMBERS:
        parts, target = (kind, (graph.outputs[0], LABEL)), graph.label
    else:
        raise TorchError(
            f"`nn.{kind[:60]}` is not a criterion that an import knows.",
            line=line,
            advice=f"Known: {', '.join((*_SCORES, *_PAIRS, *_NUMBERS))}.",
        )
    graph.label = target
    margin = criterion["args"][0] if criterion and criterion["args"] and kind in _PAIRS else None
    usual = 1.0 if kind == "MarginRankingCriterion" else 0.0
    options = [("margin", float(margin) if isinstance(margin, int | float) else usual)] if kind in _PAIRS else []
    layer = Layer("loss", parts[0], (), (), message(line, options), (), (), line, Message(line), Message(line))
    graph.losses.append(Loss(layer, parts[1], 1.0))


def _add_losses(criterion: Mapping[str, Any], graph: Graph) -> None:
    """Add a criterion for each output, all of one label: those of a network with auxiliary classifiers."""
    line, parts = criterion["line"], criterion["modules"]
    is_one_label, *weights = criterion["args"] or [False]
    if is_one_label is not True or graph.label != "y":
        raise TorchError(
            "`nn.ParallelCriterion` gets a label for each output, and a dataset has one.",
            line=line,
            advice="Write `nn.ParallelCriterion(true)` where all outputs learn the same label.",
        )
    if len(parts) != len(graph.outputs):
        raise TorchError(
            f"`nn.ParallelCriterion` has {len(parts)} criterion(s) for {len(graph.outputs)} output(s).",
            line=line,
        )
    for place, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        kind = str(part["kind"])
        node = next((each for each in graph.nodes if graph.outputs[place] in each.outputs), None)
        if kind not in _SCORES or ("CrossEntropy" not in kind and (node is None or node.layer.kind != "LogSoftMax")):
            raise TorchError(
                f"`nn.{kind[:60]}` in `nn.ParallelCriterion` does not fit output {place + 1}.",
                line=line,
                advice="Known: nn.ClassNLLCriterion behind nn.LogSoftMax, and nn.CrossEntropyCriterion.",
            )
        if node is not None and node.layer.kind == "LogSoftMax":
            graph.nodes.remove(node)
            graph.outputs[place] = node.inputs[0]
        layer = Layer(
            f"loss{place + 1}", "SoftmaxWithLoss", (), (), message(line, []), (), (), line, Message(line), Message(line)
        )
        graph.losses.append(Loss(layer, (graph.outputs[place], LABEL), float(weight)))
    graph.notes.append(
        "A network gives scores: `LogSoftMax` at the ends was left out; the first output is the prediction."
    )


def _end(graph: Graph) -> str:
    """Return the kind of the last layer where the network has one output."""
    if len(graph.outputs) != 1 or not graph.nodes or graph.outputs[0] not in graph.nodes[-1].outputs:
        return ""
    return graph.nodes[-1].layer.kind


def _without_end(graph: Graph) -> None:
    node = graph.nodes.pop()
    graph.outputs[0] = node.inputs[0]
    graph.notes.append(f"`{node.layer.kind}` at the end was left out: a network gives scores, the studio shares.")
