"""Network file for PyTorch, written from a network of Caffe: layers under their names, preprocessing, losses, rates."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ziggurat.compat.caffe.emit import CLASSES, Names, forward_line, made_module
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.graph import LABEL, Graph, Loss, Node
from ziggurat.compat.caffe.helpers import HELPERS
from ziggurat.compat.caffe.text import Entry, Message, Scalar

__all__ = ["MEAN", "NetworkFile", "Preparation", "array_names", "state_names", "write_network"]

MEAN: Final = "mean_image"
"""Name of a mean image among the weights."""

_TARGET: Final = "{1}.reshape({0}.shape).to({0}.dtype)"
LOSSES_OF_TORCH: Final = {
    "MSECriterion": f"F.mse_loss({{0}}, {_TARGET})",
    "AbsCriterion": f"F.l1_loss({{0}}, {_TARGET})",
    "SmoothL1Criterion": f"F.smooth_l1_loss({{0}}, {_TARGET})",
    "BCECriterion": f"F.binary_cross_entropy({{0}}, {_TARGET})",
    "CosineEmbeddingCriterion": "F.cosine_embedding_loss({0}, {1}, {label}, margin={margin})",
    "MarginRankingCriterion": "F.margin_ranking_loss({0}.flatten(), {1}.flatten(), {label}.flatten(), margin={margin})",
}
"""Criterion of Torch → its expression of both parts, the labels and the margin."""

_WEIGHTED: Final = ("Convolution", "Deconvolution", "InnerProduct", "Scale", "Bias", "PReLU")
_WIDTH: Final = 112


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What Caffe did to images before the network.

    Args:
        color: ``BGR`` or ``RGB``: the order that the network takes.
        mean: of each channel, in that order; empty for none.
        mean_image: (C, H, W) of the network's size; None for none.
        scale: factor, after the mean.
    """

    color: str = "BGR"
    mean: tuple[float, ...] = ()
    mean_image: np.ndarray | None = None
    scale: float = 1.0


@dataclass
class NetworkFile:
    """A network file and what is known of it.

    Args:
        text: the Python source.
        modules: layer → its module in the file; only those that have one.
        always_list: whether it gives a list of outputs also outside of the training.
        notes: what was decided, for people.
    """

    text: str
    modules: dict[str, str]
    always_list: bool
    notes: list[str] = field(default_factory=list)


def write_network(
    graph: Graph,
    preparation: Preparation,
    *,
    file_name: str = "",
    weight_decay: float = 0.0,
    scales_rates: bool = True,
    tool: str = "Caffe",
) -> NetworkFile:
    """Return the network file of a network.

    Args:
        graph: the network.
        preparation: what is done to the images.
        file_name: of the old file, for its first line.
        weight_decay: of the solver, where the file is to apply ``decay_mult``; 0 to leave it to the studio.
        scales_rates: whether the optimizer moves weights in proportion to their gradients.
        tool: name of the tool that the network comes from, such as ``Caffe``.
    """
    return _Writer(graph, preparation, tool).write(file_name, weight_decay, scales_rates)


class _Writer:
    """Writes one file."""

    def __init__(self, graph: Graph, preparation: Preparation, tool: str) -> None:
        self.tool = tool
        self.graph = graph
        self.preparation = preparation
        self.notes: list[str] = []
        self.modules: dict[str, str] = {}
        self.used: set[str] = set()
        self._names, self._locals = Names(), Names()
        self._makers: dict[str, Node] = {}
        self._ties: list[str] = []
        self._arrays_by_name: dict[str, tuple[str, str]] = {}

    def write(self, file_name: str, weight_decay: float, scales_rates: bool) -> NetworkFile:
        """Return the file."""
        layers = self._module_lines()
        fillers = self._filler_lines()
        rates, hook = self._rate_lines(weight_decay, scales_rates)
        forward, is_list, always_list = self._forward_lines()
        loss = self._loss_lines(is_list, always_list)
        init = ["super().__init__()"]
        if self.graph.heads:
            init.append(f"{CLASSES} = nclasses or {self.graph.class_count}")
        body = [*rates, "def __init__(self, nclasses, input_shape):", *_indented([*init, *self._mean_lines(), *layers])]
        body += _indented([*self._ties, *self._frozen_lines(), *fillers])
        body += ["", f"def forward(self, {self._local(self.graph.image)}):", *_indented(forward), *loss, *hook]
        text = f'"""{self._title(file_name)}\n\n{self._story()}\n"""\n'
        helpers = [HELPERS[name].strip("\n") for name in HELPERS if name in self.used]
        text += "".join(f"\n\n{each}\n" for each in helpers)
        text += "\n\nclass UserModel(nn.Module):\n" + "\n".join(_indented(body)) + "\n"
        return NetworkFile(text, self.modules, always_list, self.notes)

    def _title(self, file_name: str) -> str:
        name = "".join(c for c in self.graph.name if c.isprintable() and c not in '"\\')[:60] or "A network"
        return f"{name}, converted from {file_name or 'a text'} of {self.tool}."

    def _story(self) -> str:
        shape = " x ".join(map(str, self.graph.shapes[self.graph.image]))
        return f"It takes images of {shape} (channels, height, width), 0 to 255, RGB where they have colors."

    # ---- what __init__ makes

    def _module_lines(self) -> list[str]:
        lines, shared = [], {}
        for node in self.graph.nodes:
            layer = node.layer
            made = made_module(self.graph, node)
            if not made:
                continue
            names = tuple(rule.name for rule in layer.rules if rule.name)
            key = (made, names) if names and len(names) == self._array_count(node) else None
            if key in shared:  # all of its weights are another layer's, and so it is that layer
                self.modules[layer.name] = shared[key]
                continue
            module = self._names.of(layer.name if layer.name not in self._makers else f"{layer.name}_{layer.line}")
            self._makers[layer.name] = node
            self.modules[layer.name] = module
            self._tie(node, module)
            if key is not None:
                shared[key] = module
            for helper in ("BatchNorm", "Scale", "Bias"):
                if made.startswith(f"{helper}("):
                    self.used.add(helper)
            comment = f"  # {_comment(layer.name)}" if module != layer.name else ""
            lines.append(f"self.{module} = {made}{comment}")
        return lines

    def _array_count(self, node: Node) -> int:
        return len(state_names(node))

    def _tie(self, node: Node, module: str) -> None:
        """Share single arrays with the layer that named them first."""
        for rule, name in zip(node.layer.rules, state_names(node)):
            if not rule.name:
                continue
            first = self._arrays_by_name.setdefault(rule.name, (module, name))
            if first != (module, name):
                self._ties.append(
                    f"self.{module}.{name} = self.{first[0]}.{first[1]}  # shared as {_comment(rule.name)}"
                )

    def _mean_lines(self) -> list[str]:
        found = self.preparation
        if found.mean_image is not None:
            means = tuple(round(float(each), 4) for each in found.mean_image.mean((1, 2)))
            high, wide = found.mean_image.shape[1:]
            value = f"torch.tensor({means}).view(-1, 1, 1).repeat(1, {high}, {wide})"
            return ["# The mean image is among the weights; without them, the mean of each channel.",
                    f'self.register_buffer("{MEAN}", {value})']  # fmt: skip
        if any(found.mean):
            return [f'self.register_buffer("{MEAN}", torch.tensor({found.mean}).view(-1, 1, 1), persistent=False)']
        return []

    def _frozen_lines(self) -> list[str]:
        """Return lines for arrays that do not learn."""
        lines = []
        for name, node in self._makers.items():
            for place, array in enumerate(array_names(node)):
                if node.layer.rule(place).rate == 0:
                    lines.append(f"self.{self.modules[name]}.{array}.requires_grad_(False)  # lr_mult: 0")
        return lines

    def _filler_lines(self) -> list[str]:
        """Return lines that fill the arrays as Caffe did; layers that are filled alike share them."""
        nodes = [
            node
            for node in self._makers.values()
            if node.layer.kind in _WEIGHTED or (node.layer.definition is not None and node.layer.definition.trained)
        ]
        if not any(entry.name.endswith("filler") for node in nodes for entry in node.layer.options.entries):
            if nodes:
                self.notes.append("The file has no fillers: without weights, layers begin as PyTorch begins them.")
            return []
        groups: dict[tuple[str, ...], list[str]] = {}
        for node in nodes:
            lines = []
            for place, (array, filler) in enumerate(_fillers(node)):
                target = f"layer.{array}"
                if node.layer.kind == "InnerProduct" and not place and node.layer.options.flag("transpose", False):
                    target += ".t()"
                lines.append(self._filled(target, filler, node))
            groups.setdefault(tuple(filter(None, lines)), []).append(f"self.{self.modules[node.layer.name]}")
        found = []
        for lines, modules in groups.items():
            if not lines:
                continue
            if len(modules) == 1:
                found += [line.replace("layer.", f"{modules[0]}.", 1) for line in lines]
                continue
            listed = ", ".join(modules)
            if len(listed) < _WIDTH - 24:
                found.append(f"for layer in ({listed}):")
            else:
                found += ["for layer in (", *_indented(textwrap.wrap(listed + ",", _WIDTH - 12)), "):"]
            found += _indented(lines)
        return found

    def _filled(self, target: str, filler: Message, node: Node) -> str:
        """Return the line that fills an array; empty where it is what a module begins with."""
        kind = filler.text("type", "constant")
        if kind == "usual":  # of Torch, which began as PyTorch does
            return ""
        norm = filler.choice("variance_norm", ("FAN_IN", "FAN_OUT", "AVERAGE"), "FAN_IN")
        named = "" if norm == "FAN_IN" else f', "{norm.lower()}"'
        if kind in ("xavier", "msra", "bilinear"):
            self.used.add(kind)
            return f"{kind}({target}{'' if kind == 'bilinear' else named})"
        if kind == "gaussian":
            if filler.has("sparse"):
                self.notes.append(f"`sparse` of the filler of `{node.layer.name}` is left out: all weights are filled.")
            return f"nn.init.normal_({target}, {filler.number('mean', 0.0)!r}, {filler.number('std', 1.0)!r})"
        if kind == "uniform":
            return f"nn.init.uniform_({target}, {filler.number('min', 0.0)!r}, {filler.number('max', 1.0)!r})"
        if kind == "constant":
            value = filler.number("value", 0.0)
            if not value and node.layer.kind in _WEIGHTED[:3] and target.startswith("layer.weight"):
                self.notes.append(f"`{node.layer.name}` has no filler for its weights: they begin as 0, as in Caffe.")
            usual = {"Scale": 1.0, "PReLU": 0.25}.get(node.layer.kind, 0.0) if target == "layer.weight" else 0.0
            is_usual = value == usual and node.layer.kind in ("Scale", "Bias", "PReLU")
            return "" if is_usual else f"nn.init.constant_({target}, {value!r})"
        raise CaffeError(
            f"`{kind[:40]}` is not a filler that an import knows.",
            line=filler.line,
            advice="Known: xavier, msra, gaussian, uniform, constant and bilinear.",
        )

    # ---- rates

    def _rate_lines(self, weight_decay: float, scales_rates: bool) -> tuple[list[str], list[str]]:
        rates, decays = {}, {}
        for name, node in self._makers.items():
            for place, array in enumerate(array_names(node)):
                rule, key = node.layer.rule(place), f"{self.modules[name]}.{array}"
                rates[key], decays[key] = rule.rate, rule.decay
        trained = {key: rate for key, rate in rates.items() if rate}
        if not scales_rates and len(set(trained.values()) | {1.0}) > 1:
            self.notes.append(
                "`lr_mult` was left out: this optimizer divides by the size of the gradients, and a training has no "
                "field for rates by layer."
            )
            trained = dict.fromkeys(trained, 1.0)
        decayed = {key: weight_decay * decays[key] for key in trained} if weight_decay else {}
        is_plain = all(rate == 1 for rate in trained.values())
        if is_plain and not decayed:
            return [], []
        if not is_plain:
            self.notes.append("`lr_mult` became factors of the gradients (`RATES`): right for SGD with momentum.")
        if decayed:
            self.notes.append("`weight_decay` with `decay_mult` is in the network file (`DECAYS`), biases as in Caffe.")
        head = ["# lr_mult: factors of the learning rate.", *_table("RATES", trained, 1.0)]
        change = "rate(self.RATES, name) * gradient"
        if decayed:
            head += ["# weight_decay times decay_mult.", *_table("DECAYS", decayed, 0.0)]
            change = "rate(self.RATES, name) * (gradient + rate(self.DECAYS, name, 0.0) * weight)"
        hook = [
            "",
            "def gradientUpdate(self, grads):",
            "    names = {id(weight): name for name, weight in self.named_parameters()}",
            "    changed = []",
            "    for gradient, weight in grads:",
            "        name = names[id(weight)]",
            f"        changed.append(({change}, weight))",
            "    return changed",
        ]
        self.used.add("rate")
        return [*head, ""], hook

    # ---- what forward computes

    def _local(self, number: int) -> str:
        return self._locals.of(self.graph.names[number])

    def _forward_lines(self) -> tuple[list[str], bool, bool]:
        """Return the lines of ``forward``, whether it gives a list in the training, and whether it always does."""
        image = self._local(self.graph.image)
        lines = [f"self.target = {image}  # what is learned"] if self.graph.label == "self.target" else []
        lines += self._prepared(image)
        for node in self.graph.nodes:
            module = self.modules.get(node.layer.name, "")
            value = forward_line(
                self.graph, node, f"self.{module}" if module else "", [self._local(n) for n in node.inputs]
            )
            targets = [self._local(number) for number in node.outputs]
            if node.layer.kind == "Split":
                lines.append(f"{' = '.join(targets)} = {self._local(node.inputs[0])}")
            elif node.layer.kind == "Slice" and len(targets) == 1:
                lines.append(f"{targets[0]} = {self._local(node.inputs[0])}")
            elif value != targets[0]:
                lines.append(f"{', '.join(targets)} = {value}")
        outputs = [self._output(number) for number in self.graph.outputs]
        if len(outputs) == 1:
            return [*lines, f"return {outputs[0]}"], False, False
        has_parts = all(self._is_score_loss(loss) for loss in self.graph.losses)
        if self.graph.losses and has_parts:
            lines += ["if not self.training:", f"    return {outputs[0]}"]
        return [*lines, f"return [{', '.join(outputs)}]"], True, not (self.graph.losses and has_parts)

    def _is_score_loss(self, loss: Loss) -> bool:
        return loss.layer.kind in ("SoftmaxWithLoss", "Softmax") and loss.inputs[1:2] in ((LABEL,), ())

    def _output(self, number: int) -> str:
        name, shape = self._local(number), self.graph.shapes[number]
        is_score = any(self._is_score_loss(loss) and loss.inputs[0] == number for loss in self.graph.losses)
        return f"{name}.flatten(1)" if is_score and shape[1:] == (1, 1) else name

    def _prepared(self, image: str) -> list[str]:
        """Return the lines that do to the images what Caffe did."""
        channels, found = self.graph.shapes[self.graph.image][0], self.preparation
        lines = []
        if found.color == "BGR" and channels == 3:
            lines.append(f"{image} = {image}.flip(1)  # the network takes BGR")
        elif found.color == "BGR" and channels == 6:
            lines.append(f"{image} = {image}.unflatten(1, (2, 3)).flip(2).flatten(1, 2)  # pairs of BGR")
        value = image
        if any(found.mean) or found.mean_image is not None:
            value = f"{image} - self.{MEAN}"
        if found.scale != 1:
            value = f"({value}) * {found.scale!r}" if value != image else f"{image} * {found.scale!r}"
        return lines if value == image else [*lines, f"{image} = {value}"]

    # ---- what is minimized

    def _loss_lines(self, is_list: bool, always_list: bool) -> list[str]:
        losses = [loss for loss in self.graph.losses if loss.layer.kind != "Softmax"]
        if not losses or (len(losses) == 1 and self._is_usual(losses[0])):
            return []
        place = {number: index for index, number in enumerate(self.graph.outputs)}
        terms = []
        for loss in losses:
            parts = [
                self.graph.label if n == LABEL else f"output[{place[n]}]" if is_list else "output"
                for n in loss.inputs[:2]
            ]
            terms.append(self._term(loss, parts))
        lines = ["", "def loss(self, output, y):"]
        if not is_list or always_list:
            return [*lines, *_indented(_summed(terms))]
        main = next(loss for loss in losses if loss.inputs[0] == self.graph.outputs[0])
        lines += ["    if not isinstance(output, list):", f"        return {self._term(main, ['output', 'y'])}"]
        lines += _indented(_summed(terms))
        if len(self.graph.shapes[self.graph.outputs[0]]) == 3 and self.graph.shapes[self.graph.outputs[0]][1:] != (
            1,
            1,
        ):
            return lines
        return [
            *lines,
            "",
            "def scalars(self, output, y):",
            "    scores = output[0] if isinstance(output, list) else output",
            '    return {"accuracy": digits.classification_accuracy(scores, y)}',
        ]

    def _is_usual(self, loss: Loss) -> bool:
        """Return whether a loss is the one that the studio takes by itself."""
        if loss.weight != 1 or self.graph.label != "y" or loss.layer.kind in LOSSES_OF_TORCH:
            return False
        if loss.layer.kind == "ContrastiveLoss":
            return loss.layer.options.number("margin", 1.0) == 1 and not self._is_legacy(loss)
        return self._is_score_loss(loss) and (self._normalization(loss) == "VALID" or self._is_flat(loss))

    def _is_legacy(self, loss: Loss) -> bool:
        if loss.layer.options.flag("legacy_version", False):
            raise CaffeError(
                "`legacy_version` of a contrastive loss is not imported.",
                line=loss.layer.options.line_of("legacy_version"),
                advice="Leave it out: the loss is then that of the paper.",
            )
        return False

    def _is_flat(self, loss: Loss) -> bool:
        return self.graph.shapes[loss.inputs[0]][1:] in ((), (1, 1))

    def _normalization(self, loss: Loss) -> str:
        options = loss.layer.message.message("loss_param")
        words = ("FULL", "VALID", "BATCH_SIZE", "NONE")
        usual = "BATCH_SIZE" if loss.layer.kind == "SigmoidCrossEntropyLoss" else "VALID"
        if options.has("normalize") and not options.has("normalization"):
            usual = "VALID" if options.flag("normalize", True) else "BATCH_SIZE"
        if options.has("ignore_label") and options.integer("ignore_label", 255, -1) != 255:
            self.notes.append(
                f"`ignore_label` of `{loss.layer.name}` was left out: what does not count in a dataset's masks is 255."
            )
        return options.choice("normalization", words, usual)

    def _term(self, loss: Loss, parts: Sequence[str]) -> str:
        kind, (first, second) = loss.layer.kind, parts
        if kind in LOSSES_OF_TORCH:
            margin = loss.layer.options.number("margin", 0.0)
            value = LOSSES_OF_TORCH[kind].format(first, second, label=self.graph.label, margin=repr(margin))
            return value if loss.weight == 1 else f"{loss.weight!r} * {value}"
        norm = self._normalization(loss)
        if kind == "ContrastiveLoss":
            self._is_legacy(loss)
            value = f"digits.contrastive_loss({first}, {second}, y, {loss.layer.options.number('margin', 1.0)!r})"
        elif kind == "EuclideanLoss":
            value = f"(({first} - {second}.reshape({first}.shape)) ** 2).sum() / (2 * len({first}))"
        elif kind == "L1Loss":
            value = f"({first} - {second}.reshape({first}.shape)).abs().sum() / len({first})"
        elif kind == "SigmoidCrossEntropyLoss":
            same = f"{second}.reshape({first}.shape).to({first}.dtype)"
            reduction = "mean" if norm in ("FULL", "VALID") else "sum"
            value = f'F.binary_cross_entropy_with_logits({first}, {same}, reduction="{reduction}")'
            value += f" / len({first})" if norm == "BATCH_SIZE" else ""
        elif self._is_flat(loss):
            value = f"digits.classification_loss({first}, {second})"
            value += f" * len({first})" if norm == "NONE" else ""
        elif norm in ("VALID", "FULL"):
            value = f"digits.segmentation_loss({first}, {second})"
        else:
            value = f'F.cross_entropy({first}, {second}, ignore_index=255, reduction="sum")'
            value += f" / len({first})" if norm == "BATCH_SIZE" else ""
        return value if loss.weight == 1 else f"{loss.weight!r} * {value}"


def array_names(node: Node) -> tuple[str, ...]:
    """Return what the module of a layer calls its trained arrays, in Caffe's order."""
    kind, options = node.layer.kind, node.layer.options
    if node.layer.definition is not None:
        names = node.layer.definition.trained
        return names if options.flag("bias_term", True) else names[:1]
    if kind in ("Convolution", "Deconvolution", "InnerProduct"):
        return ("weight", "bias") if options.flag("bias_term", True) else ("weight",)
    if kind == "Scale" and len(node.inputs) == 1:
        return ("weight", "bias") if options.flag("bias_term", False) else ("weight",)
    if kind == "Bias" and len(node.inputs) == 1:
        return ("bias",)
    return ("weight",) if kind == "PReLU" else ()


def state_names(node: Node) -> tuple[str, ...]:
    """Return what the module of a layer calls all of its arrays."""
    definition = node.layer.definition
    if definition is None:
        return array_names(node)
    return definition.state if node.layer.options.flag("bias_term", True) else definition.state[:1]


def _fillers(node: Node) -> list[tuple[str, Message]]:
    """Return the arrays of a layer with their fillers."""
    options, kind = node.layer.options, node.layer.kind
    names = array_names(node)
    if kind in ("Scale", "Bias", "PReLU"):
        first = options.message("filler")
        if not first.entries:
            usual = Scalar({"Scale": "1", "Bias": "0", "PReLU": "0.25"}[kind])
            first = Message(node.layer.line, [Entry("value", usual, node.layer.line)])
        return list(zip(names, (first, options.message("bias_filler"))))
    return list(zip(names, (options.message("weight_filler"), options.message("bias_filler"))))


def _summed(terms: Sequence[str]) -> list[str]:
    if len(terms) == 1:
        return [f"return {terms[0]}"]
    return ["return (", *(f"    {'+ ' if place else ''}{term}" for place, term in enumerate(terms)), ")"]


def _table(name: str, values: dict[str, float], usual: float) -> list[str]:
    """Return the lines of a dictionary; where all weights, or all biases, have one value, that is said once."""
    kept: dict[str, float] = {}
    for suffix in ("weight", "bias"):
        found = {key: value for key, value in values.items() if key.endswith(f".{suffix}")}
        if found and len(set(found.values())) == 1:
            value = next(iter(found.values()))
            if value != usual:
                kept[suffix] = value
        else:
            kept |= {key: value for key, value in found.items() if value != usual}
    shown = ", ".join(f'"{key}": {value:.9g}' for key, value in kept.items())
    if len(shown) < _WIDTH - 16:
        return [f"{name} = {{{shown}}}"]
    return [f"{name} = {{", *(f'    "{key}": {value:.9g},' for key, value in kept.items()), "}"]


def _comment(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)[:80]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]
