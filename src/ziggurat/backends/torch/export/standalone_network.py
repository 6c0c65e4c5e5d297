"""A network made of its network file and its weights, without Ziggurat: an export of weights contains this file.

    from pathlib import Path
    from standalone_network import load_module

    module = load_module(Path("model.safetensors"))  # a torch.nn.Module that takes images (N, C, H, W)

It needs PyTorch and safetensors. ``network.py`` is the network file, ``network.json`` says what it was made with, and
``standalone_boxes.py`` has operations on boxes that network files may call.
"""

from __future__ import annotations

import builtins
import copy
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

__all__ = ["load_module", "load_network"]


def load_network(path: Path) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """Return what runs a network: a batch in, name → output out; images (N, H, W, C) on both sides.

    Args:
        path: the file of weights.
    """
    facts = _facts(path)
    module: Any = load_module(path)

    def run(batch: np.ndarray) -> dict[str, np.ndarray]:
        x = torch.from_numpy(np.ascontiguousarray(batch))
        x = x.permute(0, 3, 1, 2) if x.ndim == 4 else x if x.is_floating_point() else x.long()
        with torch.no_grad():
            found = module(x)
            if facts["pretrained"] and hasattr(module, "fineTuneHook"):
                found = module.fineTuneHook(found)
        outputs = list(found) if isinstance(found, (list, tuple)) else [found]
        named = {f"output_{place}" if place else "output": each for place, each in enumerate(outputs)}
        arrays = {name: (each.permute(0, 2, 3, 1) if each.ndim == 4 else each) for name, each in named.items()}
        if facts["scores"]:
            arrays["probabilities"] = outputs[0].float().softmax(1)
        return {name: each.numpy() for name, each in arrays.items()}

    return run


def load_module(path: Path) -> nn.Module:
    """Return the network as a module with its weights, in evaluation mode."""
    from safetensors.torch import load_file

    facts = _facts(path)
    file = path.with_name("network.py")
    names = _namespace(str(file))
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
    module = _made(names["UserModel"], facts)
    module.load_state_dict(load_file(path))
    return module.eval()


def _facts(path: Path) -> dict[str, Any]:
    return json.loads(path.with_name("network.json").read_text(encoding="utf-8"))


def _made(kind: Any, facts: dict[str, Any]) -> nn.Module:
    given = {name: facts[name] for name in ("target_shape", "vocabulary_size")}
    given["target_mean"] = torch.tensor(facts["target_mean"] or [0.0], dtype=torch.float32)
    given["target_std"] = torch.tensor(facts["target_std"] or [1.0], dtype=torch.float32)
    given["categories"] = tuple(facts["categories"])
    if issubclass(kind, Tower):
        tower = kind(facts["input_shape"], facts["nclasses"])
        tower.__dict__.update(given)
        tower.build()
        return tower
    known = inspect.signature(kind).parameters
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values())
    chosen = {name: value for name, value in given.items() if takes_all or name in known}
    return kind(facts["nclasses"], facts["input_shape"], **chosen)


class model_property:  # noqa: N801 - the name that network files use
    """A property that is computed once for each batch."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __get__(self, tower: Any, owner: type) -> Any:
        if tower is None:
            return self
        kept = tower.__dict__.setdefault("_kept", {})
        if self._function not in kept:
            kept[self._function] = self._function(tower)
        return kept[self._function]


class Tower(nn.Module):
    """What a network file's ``UserModel`` inherits, as far as a prediction needs it."""

    def __init__(self, input_shape: list[int], nclasses: int | None) -> None:
        super().__init__()
        self.input_shape = input_shape
        self.nclasses = nclasses
        self.is_training = False
        self.is_inference = True
        self.step = 0
        self.x: Any = None
        self.y: Any = None

    def build(self) -> None:
        """Make the layers."""

    def inference_input(self, name: str, default: Any) -> Any:
        """Return the default: nothing else is given."""
        return default

    def fineTuneHook(self, net: Any) -> Any:  # noqa: N802 - the name that network files use
        """Return the output as it is."""
        return net

    def cuda(self, device: Any = None) -> Any:
        """Return the tower."""
        return self

    def forward(self, x: Any) -> Any:
        """Return ``inference`` for samples."""
        view: Any = copy.copy(self)
        view.__dict__.update(x=x, summaries=[], _kept={})
        return view.inference


class _Digits(ModuleType):
    """The helpers; losses and summaries, which a prediction does not need, give nothing."""

    model_property = model_property
    nhwc_to_nchw = staticmethod(lambda x: x.permute(0, 3, 1, 2))
    nchw_to_nhwc = staticmethod(lambda x: x.permute(0, 2, 3, 1))
    hwc_to_chw = staticmethod(lambda x: x.permute(2, 0, 1))
    chw_to_hwc = staticmethod(lambda x: x.permute(1, 2, 0))
    bgr_to_rgb = rgb_to_bgr = staticmethod(lambda x: x.flip(-3))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: None


def _namespace(path: str) -> dict[str, Any]:
    digits: Any = _Digits("digits")
    names: dict[str, Any] = {}
    boxes = Path(path).with_name("standalone_boxes.py")
    exec(compile(boxes.read_text(encoding="utf-8"), str(boxes), "exec"), names)
    for name in ("anchor_points", "nms", "roi_align"):
        setattr(digits, name, names[name])
    model: Any = ModuleType("model")
    model.Tower, model.model_property = Tower, model_property
    aliases = {"model": model, "utils": digits, "digits": digits}

    def imported(name: str, *others: Any) -> Any:
        return aliases[name] if name in aliases else builtins.__import__(name, *others)

    return {
        "__name__": "network_file",
        "__file__": path,
        "__builtins__": {**vars(builtins), "__import__": imported},
        "torch": torch,
        "nn": nn,
        "F": functional,
        "np": np,
        "digits": digits,
        "Tower": Tower,
        "model_property": model_property,
    }
