"""Tab *Torch (Lua)* of the new-model page."""

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
return function(params)
  local net = nn.Sequential()
  net:add(nn.View(-1):setNumInputDims(3))
  net:add(nn.Linear(784, params.nclasses or 10))
  net:add(nn.LogSoftMax())
  return { model = net, loss = nn.ClassNLLCriterion() }
end"""


def _convert(studio: Studio, who: Identity, request: Mapping[str, Any]) -> dict[str, Any]:
    name = free_name(studio, "torch", request["weights"]) if request.get("weights") else ""
    whole = {**request, "tool": "torch7"}
    return import_into_studio(studio, who, import_network, whole, name=name, source="Torch")


TAB: Final = NetworkTab(
    name="torch7",
    title="Torch (Lua)",
    text_title="Lua file",
    file_name="model.lua",
    files=(
        TabFile(name="network", title="Network", hint=".lua; or paste it below", accept=".lua,.txt"),
        TabFile(name="weights", title="Weights", hint=".t7; optional", accept=".t7"),
        TabFile(name="mean", title="Mean", hint="mean.jpg; optional", accept=".jpg,.png,.binaryproto"),
        TabFile(name="labels", title="Labels", hint="labels.txt; optional", accept=".txt"),
    ),
    sample=_SAMPLE,
    convert=_convert,
)
