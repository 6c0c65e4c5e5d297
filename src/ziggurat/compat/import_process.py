"""One-shot process of an import: ``python -m ziggurat.compat.import_process NAME < request.json``.

Everything that reads a file of a stranger happens here, with a limit on processor time.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ziggurat.compat.caffe.importing import ImportOptions, convert, digest, parity, parse_shape, write_folder
from ziggurat.compat.caffe.running import run_network
from ziggurat.compat.caffe.sources import TORCH_SUFFIXES, ImportFiles, given_files
from ziggurat.compat.torch7.importing import convert_torch
from ziggurat.worker.commands.process import main

__all__ = ["TASKS", "import_network"]

_PROCESSOR_S: Final = 900


def import_network(request: Mapping[str, Any]) -> dict[str, Any]:
    """Import a network; see ``ziggurat.compat.import_client`` for the request.

    Returns:
        the report, with ``network`` (the text of the network file) and ``files`` where a folder was written.
    """
    is_torch = request.get("tool") == "torch7" or str(request.get("source") or "").lower().endswith((".lua", ".t7"))
    paths = {name: Path(request[name]) for name in ("weights", "mean", "labels", "solver") if request.get(name)}
    options = ImportOptions(
        shape=parse_shape(request["input"]) if request.get("input") else None,
        usual_shape=parse_shape(request["usual_input"]) if request.get("usual_input") else None,
        until=request.get("until") or "",
        color=request.get("color") or ("RGB" if is_torch else "BGR"),
    )
    given = ImportFiles(
        network=Path(request.get("source") or ("network.lua" if is_torch else "network.prototxt")),
        weights=paths.get("weights"),
        mean=paths.get("mean"),
        labels=paths.get("labels"),
        solver=paths.get("solver"),
    )
    classes = int(request.get("classes") or 0)
    with given_files(given) as files:
        if files.network.suffix.lower() in TORCH_SUFFIXES:
            options = replace(options, color=request.get("color") or "RGB")
            conversion = convert_torch(files, options, text=request.get("text"), classes=classes)
        else:
            conversion = convert(files, options, text=request.get("text"), classes=classes)
        report: dict[str, Any] = {
            "name": files.name or conversion.graph.name,
            "tool": "Torch" if files.network.suffix.lower() in TORCH_SUFFIXES else "Caffe",
            "network_file": files.network.name,
            "input": list(conversion.graph.shapes[conversion.graph.image]),
            "classes": conversion.graph.class_count,
            "layers": conversion.layers(),
            "done": conversion.notes,
            "warnings": conversion.warnings,
            "training": conversion.fields,
            "arrays": len(conversion.state),
            "parity": parity(conversion, run_network) if request.get("compare", True) else None,
        }
        if files.weights is not None:
            report["weights"] = {"file": files.weights.name, "sha256": digest(files.weights)}
        answer = {**report, "network": conversion.file.text}
        if request.get("out"):
            answer["files"] = write_folder(conversion, Path(request["out"]), report)
            answer["out"] = request["out"]
        return answer


TASKS: Final = {"import_network": import_network}

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
    code = main(tasks=TASKS)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
