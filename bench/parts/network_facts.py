"""Writer of ``facts.json`` beside the standard networks: ``python -m bench.parts.network_facts BACKEND``.

The file says what each network takes at usual inputs, so that the studio need not build it: for each ``HxWxC`` the
parameters without classes, the parameters of a class, the other variables, the numbers that its operations give for one
sample, and the multiply-adds of a sample. Run it when a standard network changes; a test compares the file with
networks that are built.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ziggurat.entities.backend_info import backend_info
from ziggurat.errors import ZigguratError
from ziggurat.worker.commands.networks import describe
from ziggurat.workspace.training_estimates import facts_of

_GRAY = (28, 32, 64, 128, 224)
_COLOR = (28, 32, 48, 64, 72, 96, 112, 128, 160, 192, 224, 227, 256)
_CLASSES = (10, 20)
_LEFT_OUT = ("gan_encoder",)  # it takes classes where the data has some, and is described without


def main() -> None:
    """Describe every network that learns from images, and write the file."""
    (backend,) = sys.argv[1:]
    info = backend_info(backend)
    if info.zoo is None:
        raise SystemExit(f"The networks of {backend} have no files.")
    found: dict[str, dict[str, Any]] = {}
    for network in info.networks:
        if network.input == "image" and network.name not in _LEFT_OUT:
            found[network.name] = _facts(backend, network.name)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(sizes)}" for name, sizes in found.items())
    (info.zoo / "facts.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _facts(backend: str, network: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for channels, sides in ((1, _GRAY), (3, _COLOR)):
        for side in sides:
            shape = [side, side, channels]
            asked: dict[str, Any] = {"network": network, "backend": backend, "input_shape": shape}
            try:
                facts = facts_of(describe({**asked, "classes": _CLASSES[0]}))
                more = facts_of(describe({**asked, "classes": _CLASSES[1]}))
            except ZigguratError:  # the image is too small
                continue
            per_class = (more.parameters - facts.parameters) // (_CLASSES[1] - _CLASSES[0])
            other = facts.variables - facts.parameters
            fixed = facts.parameters - per_class * _CLASSES[0]
            found["x".join(map(str, shape))] = [fixed, per_class, other, facts.per_sample, facts.multiply_adds]
            print(network, shape, facts, flush=True)
    return found


if __name__ == "__main__":
    main()
