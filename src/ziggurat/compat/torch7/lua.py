"""Run of a network file in Lua, in a process of its own with limits on time and memory; it gives a record."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

from ziggurat.compat.torch7.errors import TorchError
from ziggurat.errors import MissingDependencyError

__all__ = ["MOST_TEXT_BYTES", "run_lua"]

MOST_TEXT_BYTES: Final = 1 << 20
_TIME_LIMIT_S: Final = 60.0
"""Longest time by the clock, on a busy machine; the limit of processor time comes first."""

_MOST_ANSWER_BYTES: Final = 32 << 20
_COMMAND: Final = (sys.executable, "-m", "ziggurat.compat.torch7.lua_process")
_PLACE: Final = re.compile(r"network\.lua:(\d+): ?")
_CALL: Final = re.compile(r"attempt to call (field|method|global|local|upvalue) '([^']{1,80})'")
_REQUIRED: Final = re.compile(r"require '(.{0,80}?)' is not known to an import")
_NIL: Final = re.compile(r"attempt to (?:index|concatenate|perform arithmetic on) (\w+) '([^']{1,80})' \(a nil value\)")


def run_lua(text: str, *, classes: int = 0, shape: Sequence[int] | None = None, hook: bool = False) -> dict[str, Any]:
    """Return the record of what a network file builds.

    Args:
        text: of the file.
        classes: ``params.nclasses``; 0 for nil.
        shape: ``params.inputShape``, (C, H, W); None for nil.
        hook: whether ``fineTuneHook`` runs.

    Raises:
        TorchError: if the file is no Lua, asks for what an import does not know, or takes too long; names the line.
        MissingDependencyError: without lupa.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MOST_TEXT_BYTES:
        raise TorchError("A network file of Torch is read up to 1 MiB.", received=f"{len(text):,} characters")
    if find_spec("lupa") is None:
        raise MissingDependencyError("lupa", extra="torch7", purpose="networks in Lua")
    request = json.dumps(
        {"text": text, "classes": classes, "shape": None if shape is None else list(shape), "hook": hook}
    )
    try:
        done = subprocess.run(_COMMAND, input=request.encode(), capture_output=True, timeout=_TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise _too_long() from None
    if done.returncode < 0 and -done.returncode in (9, 24):  # SIGKILL and SIGXCPU: the limit of processor time
        raise _too_long()
    answer = done.stdout
    if done.returncode or len(answer) > _MOST_ANSWER_BYTES or not answer:
        raise TorchError(
            "The network file used more memory or a deeper stack than an import gives it.",
            received=f"exit code {done.returncode}",
        )
    said = answer.decode("latin-1")
    if said.startswith("!"):
        _, line, message = said.split("!", 2)
        raise _error(message, int(line))
    record: dict[str, Any] = json.loads(said)
    return record


def _too_long() -> TorchError:
    return TorchError(
        "The network file runs longer than 4 seconds of processor time.", advice="Is there an endless loop?"
    )


def _error(message: str, line: int) -> TorchError:
    """Return the error of what Lua said, as one sentence."""
    place = _PLACE.search(message)
    if place is not None and not line:
        line = int(place[1])
    text = _PLACE.sub("", message).split("\n")[0].strip()[:300]
    if called := _CALL.search(text):
        what = {"method": "method", "field": "function or module"}.get(called[1], "function")
        return TorchError(
            f"`{called[2]}` is not a {what} that an import knows.",
            line=line,
            advice="The guide lists the modules of nn that are known. Leave the line out, or write it with these.",
        )
    if indexed := _NIL.search(text):
        return TorchError(
            f"`{indexed[2]}` has no value here.",
            line=line,
            advice="A network file has the names of Torch, and neither options nor other files; `params` has "
            "`nclasses`, `ngpus` and `inputShape` (with --input).",
        )
    if required := _REQUIRED.search(text):
        return TorchError(
            f"`require '{required[1]}'` asks for a module that an import does not have.",
            line=line,
            advice="It has nn, cudnn, inn, nngraph and dpnn. A file beside the network is not read: put its text in.",
        )
    if "not enough memory" in text:
        return TorchError("The network file used more memory than an import gives it.", line=line)
    if "stack overflow" in text:
        return TorchError("The network file calls itself too deeply.", line=line)
    begin = text[:1] if text.startswith("nn.") else text[:1].upper()
    return TorchError(f"{begin}{text[1:].rstrip('.')}.", line=line)
