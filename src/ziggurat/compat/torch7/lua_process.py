"""One-shot process that runs a network file in Lua: ``python -m ziggurat.compat.torch7.lua_process < request.json``.

The request has ``text``, ``classes`` (0 for none), ``shape`` (None for unknown) and ``hook``; the answer is the
record, or ``!LINE!MESSAGE``. Processor time and memory are limited; the text reaches no file, no program and no
object of Python.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["MEMORY_BYTES", "PROCESSOR_S", "run_text"]

PROCESSOR_S: Final = 4
MEMORY_BYTES: Final = 384 << 20
_LUA_BYTES: Final = 192 << 20


def run_text(request: dict[str, Any]) -> str:
    """Return what a file records, as JSON; or its error as ``!LINE!MESSAGE``."""
    from lupa import lua51  # pyright: ignore[reportMissingTypeStubs]

    make: Any = lua51.LuaRuntime  # its stubs are those of another build
    runtime = make(
        register_eval=False,
        register_builtins=False,
        unpack_returned_tuples=True,
        max_memory=_LUA_BYTES,
        encoding="latin-1",
    )
    recorder = Path(__file__).with_name("recorder.lua").read_text(encoding="utf-8")
    values = runtime.table_from({})
    if request.get("classes"):
        values["nclasses"] = request["classes"]
    if request.get("shape"):
        values["shape"] = runtime.table_from(request["shape"])
    text = request["text"].encode("utf-8", "replace").decode("latin-1")
    if text.startswith("\x1b"):
        return "!0!the file is compiled, and no text"
    if text.startswith("#"):
        text = "--" + text
    try:
        return str(runtime.execute(recorder, text, values, bool(request.get("hook"))))
    except lua51.LuaMemoryError:
        return "!0!not enough memory"
    except lua51.LuaError as error:
        return f"!0!{error}"


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(run_text(json.loads(sys.stdin.read())))
    sys.stdout.flush()
