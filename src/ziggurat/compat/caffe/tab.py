"""Tab *Caffe* of the new-model page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ziggurat.compat.import_client import import_network
from ziggurat.compat.studio_imports import free_name, import_into_studio
from ziggurat.entities import Identity
from ziggurat.web.pages.new_model.network_tabs import NetworkTab, TabFile
from ziggurat.workspace.studio import Studio

__all__ = ["TAB"]

_SAMPLE: Final = """\
layer { name: "data" type: "Data" top: "data" top: "label" }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" }"""


def _convert(studio: Studio, who: Identity, request: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in request.items() if key != "classes"}  # the text has its own number
    name = free_name(studio, "caffe", request["weights"]) if request.get("weights") else ""
    return import_into_studio(studio, who, import_network, given, name=name, source="Caffe")


TAB: Final = NetworkTab(
    name="caffe",
    title="Caffe",
    text_title="prototxt",
    file_name="train_val.prototxt",
    files=(
        TabFile(name="network", title="Network", hint=".prototxt; or paste it below", accept=".prototxt,.txt"),
        TabFile(name="weights", title="Weights", hint=".caffemodel; optional", accept=".caffemodel"),
        TabFile(name="solver", title="Solver", hint="solver.prototxt; optional", accept=".prototxt,.txt"),
        TabFile(name="mean", title="Mean", hint=".binaryproto; optional", accept=".binaryproto"),
        TabFile(name="labels", title="Labels", hint="labels.txt; optional", accept=".txt"),
    ),
    sample=_SAMPLE,
    has_python_colors=True,
    convert=_convert,
)
