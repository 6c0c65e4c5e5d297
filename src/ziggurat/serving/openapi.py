"""OpenAPI document of a server of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ziggurat import __version__

__all__ = ["document"]

_JSON: Final = "application/json"
_FILE: Final = {"type": "string", "format": "binary"}
_TOP: Final = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5}
_REFUSALS: Final = {
    "400": "The body did not arrive completely.",
    "404": "No model of that name or version is served.",
    "405": "The method is not one of this path.",
    "413": "The body is too large.",
    "415": "The body is of another type than the model takes.",
    "422": "The body cannot be used; `error` says why.",
    "429": "Too many requests wait; see Retry-After.",
    "503": "The model is being loaded; see Retry-After.",
}
_PROBLEM: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}, "failures": {"type": "array", "items": {"type": "object"}}},
}
_PREDICTIONS: Final = {
    "type": "object",
    "required": ["model", "version", "task", "predictions", "failures"],
    "properties": {
        "model": {"type": "string"},
        "version": {"type": "string"},
        "task": {"type": "string"},
        "predictions": {"type": "array", "items": {"type": "object", "required": ["file"]}},
        "failures": {"type": "array", "items": {"type": "object", "required": ["file", "message"]}},
    },
}
_TENSOR: Final = {
    "type": "object",
    "required": ["name", "shape", "datatype", "data"],
    "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "datatype": {"type": "string"},
        "data": {"type": "array", "items": {}},
    },
}
_INFER: Final = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "inputs": {"type": "array", "items": _TENSOR, "minItems": 1, "maxItems": 1},
        "outputs": {
            "type": "array",
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        },
    },
}
_INFERRED: Final = {
    "type": "object",
    "required": ["model_name", "model_version", "outputs"],
    "properties": {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "outputs": {"type": "array", "items": _TENSOR},
    },
}


def document(kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document.

    Args:
        kinds: name of each model that is loaded, and what it takes: ``image``, ``table`` or ``text``.
    """
    paths: dict[str, Any] = {
        "/": _get("List the models, their versions and where they come from"),
        "/v2": _get("Return name and version of the server"),
        "/v2/health/live": _get("Return whether the server runs"),
        "/v2/health/ready": _get("Return whether all models are loaded", "503"),
        "/metrics": _get("Return counters as Prometheus reads them", media_type="text/plain"),
        "/openapi.json": _get("Return this document"),
    }
    for name, kind in kinds.items():
        predict = _post("Predict", _body(kind), _PREDICTIONS)
        if len(kinds) == 1:
            paths["/predict"] = predict
        paths[f"/models/{name}/predict"] = predict
        paths[f"/v2/models/{name}"] = _get("Return the inputs and outputs of the model", "503")
        paths[f"/v2/models/{name}/ready"] = _get("Return whether the model is loaded", "503")
        body = {"required": True, "content": {_JSON: {"schema": _INFER}}}
        paths[f"/v2/models/{name}/infer"] = _post("Run the model on tensors", body, _INFERRED)
    return {"openapi": "3.1.0", "info": {"title": "Ziggurat models", "version": __version__}, "paths": paths}


def _body(kind: str) -> dict[str, Any]:
    if kind == "image":
        form = {
            "type": "object",
            "properties": {"image": {"type": "array", "items": _FILE, "minItems": 1}, "top": _TOP},
        }
        content = {"multipart/form-data": {"schema": form}, "image/*": {"schema": _FILE}}
        return {"required": True, "content": content}
    name, item = ("rows", {"type": ["object", "array"]}) if kind == "table" else ("texts", {"type": "string"})
    values = {"type": "array", "items": item, "minItems": 1, "maxItems": 1000}
    properties = {name: values, "top": _TOP}
    schema = {"type": "object", "required": [name], "properties": properties, "additionalProperties": False}
    return {"required": True, "content": {_JSON: {"schema": schema}}}


def _post(summary: str, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": summary, "content": {_JSON: {"schema": answer}}}}
    return {"post": {"summary": summary, "requestBody": body, "responses": responses | _refused(*_REFUSALS)}}


def _get(summary: str, *refusals: str, media_type: str = _JSON) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": summary, "content": {media_type: {"schema": {}}}}}
    return {"get": {"summary": summary, "responses": responses | _refused("405", *refusals)}}


def _refused(*statuses: str) -> dict[str, Any]:
    schema = {_JSON: {"schema": _PROBLEM}}
    return {status: {"description": _REFUSALS[status], "content": schema} for status in statuses}
