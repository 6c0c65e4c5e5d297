"""One run of a network, written down: its operations with what they read, and its layers with what they gave."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, Self

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from ziggurat.backends.torch import digits

__all__ = ["LayerRun", "Operation", "Recorder", "tensors_in"]

_ATTRIBUTES: Final = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
"""Attributes of a tensor that are tensors made of it."""

_SHAPING: Final = frozenset(
    {
        *("T", "contiguous", "data", "detach", "expand", "flatten", "float", "getitem", "mT", "movedim", "permute"),
        *("reshape", "squeeze", "swapaxes", "to", "transpose", "type", "unflatten", "unsqueeze", "view"),
    }
)
"""Operations that are no layers: they only put numbers elsewhere."""


@dataclass
class Operation:
    """One function of PyTorch that made a tensor of others.

    Args:
        name: scope of the layer and kind, such as ``layer1/0/conv1/conv2d``.
        kind: name of the function.
        inputs: places of the operations that it reads, in their order; what no operation made is left out.
        shape: of its first tensor.
        weights: names of the weights and buffers that it reads.
        line: of the user's file; None where nothing there called it.
        tensor: its first tensor, where tensors are kept; None elsewhere.
        source: its first argument that is a tensor, likewise.
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    weights: tuple[str, ...] = ()
    line: int | None = None
    tensor: torch.Tensor | None = None
    source: torch.Tensor | None = None


@dataclass
class LayerRun:
    """One layer as it ran: a module that holds no other one, or an operation outside of such modules that computes.

    Args:
        name: of the module, such as ``layer1.0.conv1``, or of the operation; it is there once.
        kind: class of the module, or name of the function.
        place: of the operation that made its output.
        scope: name of the module that it is, or that it runs in; empty for the network itself.
        operations: how many it has.
        weights: names of the weights and buffers that it reads.
        line: of the user's file; None where nothing there called it.
    """

    name: str
    kind: str
    place: int
    scope: str
    operations: int
    weights: tuple[str, ...]
    line: int | None = None


@dataclass
class _Call:
    """A module that runs."""

    path: str
    first: int
    line: int | None
    is_layer: bool


@dataclass
class _Names:
    """Gives each name once: the second ``relu`` is ``relu_1``."""

    counts: dict[str, int] = field(default_factory=dict)

    def one(self, name: str) -> str:
        count = self.counts.get(name, 0)
        self.counts[name] = count + 1
        return f"{name}_{count}" if count else name


Seen = Callable[[LayerRun, torch.Tensor], None]


class Recorder(TorchFunctionMode):
    """Writes down what a network does while the block is open. What a function does inside itself is not seen.

    Args:
        module: the user's network.
        path: its file, to find lines.
        keep: whether tensors are kept.
        seen: called with each layer and what it gave, as soon as it gave it: later layers may write over it.

    Attributes:
        operations: in the order in which they ran.
        layers: in the order in which they ended.
    """

    def __init__(self, module: nn.Module, path: str = "", *, keep: bool = False, seen: Seen | None = None) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self.layers: list[LayerRun] = []
        self._module = module
        self._path = path
        self._keep = keep
        self._seen = seen
        self._makers: Any = WeakTensorKeyDictionary()
        self._calls = [_Call("", 0, None, is_layer=False)]
        # An operation has no name of a module: both would be one box in an image of the network.
        scopes = (path.replace(".", "/") for path, _ in module.named_modules())
        self._scopes, self._paths = _Names(dict.fromkeys(scopes, 1)), _Names()
        self._weights = {id(each): name for name, each in (*module.named_parameters(), *module.named_buffers())}
        self._hooks = ExitStack()

    def __enter__(self) -> Self:
        inside = ""
        for path, module in self._module.named_modules():
            if not path or (inside and path.startswith(inside)):
                continue
            is_layer = _is_layer(module)
            inside = f"{path}." if is_layer else ""
            before = module.register_forward_pre_hook(self._entered(path, is_layer))
            behind = module.register_forward_hook(self._left)
            self._hooks.callback(before.remove)
            self._hooks.callback(behind.remove)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self._hooks.close()
        super().__exit__(*error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        found = func(*args, **options)
        kind = _kind_of(func)
        made = tensors_in(found) if kind else []
        given = tensors_in((args, options)) if made else []
        if given and made and not (made[0] is given[0] and not _is_in_place(func, options)):
            self._add(kind, given, made)
        return found

    def maker(self, tensor: torch.Tensor) -> int | None:
        """Return the place of the operation that made a tensor; None where none did."""
        return self._makers.get(tensor)

    def behind(self, place: int) -> set[int]:
        """Return the places of an operation and of everything that it is made of."""
        found: set[int] = set()
        waiting = [place]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting.extend(self.operations[each].inputs)
        return found

    # ---- inside

    def _add(self, kind: str, given: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        call = self._calls[-1]
        scope = f"{call.path.replace('.', '/')}/" if call.path else ""
        inputs = dict.fromkeys(self._makers.get(each) for each in given)
        operation = Operation(
            self._scopes.one(f"{scope}{kind}"),
            kind,
            tuple(place for place in inputs if place is not None),
            tuple(made[0].shape),
            tuple(self._weights[id(each)] for each in given if id(each) in self._weights),
            self._line(sys._getframe(2)),
        )
        if self._keep:
            operation.tensor, operation.source = made[0], given[0]
        place = len(self.operations)
        self.operations.append(operation)
        for each in made:
            self._makers[each] = place
        if not call.is_layer and kind not in _SHAPING:
            name = self._paths.one(f"{call.path}.{kind}" if call.path else kind)
            self._tell(LayerRun(name, kind, place, call.path, 1, operation.weights, operation.line), made[0])

    def _tell(self, layer: LayerRun, tensor: torch.Tensor) -> None:
        self.layers.append(layer)
        if self._seen is not None:
            with torch._C.DisableTorchFunction():
                self._seen(layer, tensor)

    def _entered(self, path: str, is_layer: bool) -> Callable[[nn.Module, Any], None]:
        def entered(_module: nn.Module, _arguments: Any) -> None:
            self._calls.append(_Call(path, len(self.operations), self._line(sys._getframe(1)), is_layer))

        return entered

    def _left(self, module: nn.Module, _arguments: Any, output: Any) -> None:
        call = self._calls.pop()
        if not call.is_layer or call.first == len(self.operations):  # a dropout that predicts, for one, does nothing
            return
        made = next((each for each in tensors_in(output) if self._makers.get(each) is not None), None)
        if made is None:
            return
        own = self.operations[call.first :]
        weights = dict.fromkeys(name for each in own for name in each.weights)
        name = self._paths.one(call.path)
        kind, place = type(module).__name__, self._makers[made]
        self._tell(LayerRun(name, kind, place, call.path, len(own), tuple(weights), call.line), made)

    def _line(self, frame: FrameType | None) -> int | None:
        """Return the line of the user's file that a frame belongs to, or was called from."""
        while frame is not None and frame.f_code.co_filename not in (self._path, digits.__file__):
            frame = frame.f_back
        # What a helper computes inside itself is not the user's.
        return None if frame is None or frame.f_code.co_filename != self._path else frame.f_lineno


def _is_layer(module: nn.Module) -> bool:
    # The module inside an attention holds weights alone.
    return isinstance(module, nn.MultiheadAttention) or next(module.children(), None) is None


def tensors_in(values: Any) -> list[torch.Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries, in their order."""
    return list(_leaves(values))


def _leaves(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for each in values:
            yield from _leaves(each)
    elif isinstance(values, dict):
        for each in values.values():
            yield from _leaves(each)


def _kind_of(function: Any) -> str:
    """Return the name of a function for people; empty where it makes nothing new."""
    name = getattr(function, "__name__", "")
    if name == "__get__":
        attribute = getattr(getattr(function, "__self__", None), "__name__", "")
        return attribute if attribute in _ATTRIBUTES else ""
    return name.strip("_")


def _is_in_place(function: Any, options: Any) -> bool:
    name = getattr(function, "__name__", "")
    return bool(options.get("inplace")) or (name.endswith("_") and not name.endswith("__"))
