"""Application of a server of models: routes for people and for the Open Inference Protocol, health, and metrics."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ziggurat import __version__
from ziggurat.errors import DatapointError
from ziggurat.serving.batcher import Batcher, QueueFullError
from ziggurat.serving.bodies import BodyBudget, PredictRequest, json_object, predict_request
from ziggurat.serving.inference_protocol import answer_tensors, metadata, request_outputs, request_tensor
from ziggurat.serving.metrics import Metrics
from ziggurat.serving.model import ServedModel
from ziggurat.serving.openapi import document
from ziggurat.serving.request_error import RequestError
from ziggurat.serving.served import ServedName

__all__ = ["ServingApp"]

_INLINE_BYTES: Final = 8 << 10
"""Images up to this size are decoded in the event loop: a change of threads takes longer."""

_INLINE_VALUES: Final = 16
_ENCODER: Final = json.JSONEncoder(allow_nan=False)


class ServingApp:
    """Routes over some models.

    Args:
        models: served models, with different names.
        metrics: counts answers.
        budget: of the bodies in memory.
        decoders: threads that decode images.
        failed: called with the error if a model cannot be loaded at the start.
    """

    def __init__(
        self,
        models: Sequence[ServedName],
        metrics: Metrics,
        *,
        budget: BodyBudget,
        decoders: int,
        failed: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self._models = {each.name: each for each in models}
        self._metrics = metrics
        self._budget = budget
        self._decoders = ThreadPoolExecutor(decoders, thread_name_prefix="decode")
        self._failed = failed

    def asgi(self) -> ASGIApp:
        """Return the application: Starlette, and before it a short way for the paths that are asked often."""
        route = self._route
        routes = [
            predict := route("/predict", self._predict),
            named := route("/models/{name}/predict", self._predict),
            infer := route("/v2/models/{name}/infer", self._infer),
            Route("/v2", self._server),
            Route("/v2/health/live", self._live),
            Route("/v2/health/ready", self._ready),
            Route("/v2/models/{name}", self._metadata),
            Route("/v2/models/{name}/ready", self._model_ready),
            Route("/v2/models/{name}/versions/{version}", self._metadata),
            Route("/v2/models/{name}/versions/{version}/ready", self._model_ready),
            route("/v2/models/{name}/versions/{version}/infer", self._infer),
            Route("/", self._index),
            Route("/metrics", self._metric_text),
            Route("/openapi.json", self._openapi),
        ]
        handlers = {RequestError: _problem, HTTPException: _http_problem}
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        often = {"/predict": (predict.endpoint, {})}
        for name in self._models:
            often[f"/models/{name}/predict"] = (named.endpoint, {"name": name})
            often[f"/v2/models/{name}/infer"] = (infer.endpoint, {"name": name})

        async def short(scope: Scope, receive: Receive, send: Send) -> None:
            """Answer without the middleware and the patterns of Starlette, which take as long as a small model."""
            found = often.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
            if found is None:
                await app(scope, receive, send)
                return
            answer, scope["path_params"] = found
            request = Request(scope, receive)
            try:
                response = await answer(request)
            except RequestError as error:
                response = await _problem(request, error)
            await response(scope, receive, send)

        return short

    # ---- life

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        loading = asyncio.create_task(self._load())
        try:
            yield
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
            self._decoders.shutdown(wait=False, cancel_futures=True)
            for each in self._models.values():
                each.close()

    async def _load(self) -> None:
        """Load all models, then follow their aliases."""
        try:
            for each in self._models.values():
                await each.load()
        except Exception as error:  # whatever it is: a server without its models would answer 503 for ever
            self._failed(error)
            return
        await asyncio.gather(*(each.follow() for each in self._models.values() if each.source.follows))

    # ---- routes for people

    async def _predict(self, request: Request) -> Response:
        served, model, queue = self._open(request)
        body = await self._budget.read(request)
        try:
            asked = await predict_request(request.headers, body, model.kind, model.wanted)
            read = await self._read(model, asked)
        finally:
            self._budget.release(len(body))
        good = [each for each in read if not isinstance(each[1], DatapointError)]
        failures = [{"file": name, **each.as_dict()} for name, each, _ in read if isinstance(each, DatapointError)]
        if not good:
            text = failures[0]["message"] if len(failures) == 1 else "No sample of the request can be used."
            raise RequestError(422, text, more={"failures": failures})
        batch = good[0][1] if len(good) == 1 else np.concatenate([each for _, each, _ in good])
        outputs = await _computed(queue, batch)
        predictions = []
        for row, (name, _, picture) in enumerate(good):
            sample = {output: values[row] for output, values in outputs.items()}
            predictions.append({"file": name, **model.described(sample, asked.top, picture)})
        about = {"model": served.name, "version": served.version, "task": model.task}
        return _json({**about, "predictions": predictions, "failures": failures})

    async def _read(self, model: ServedModel, asked: PredictRequest) -> list[tuple[str, Any, np.ndarray | None]]:
        """Return name, batch of one or error, and image of each sample."""

        def read(name: str, content: Any) -> tuple[str, Any, np.ndarray | None]:
            try:
                if asked.kind == "image":
                    return (name, *model.read_image(name, content))
                return name, model.read_value(name, content), None
            except DatapointError as error:
                return name, error, None

        if asked.kind == "image":
            is_quick = len(asked.samples) == 1 and len(asked.samples[0][1]) <= _INLINE_BYTES
        else:
            is_quick = len(asked.samples) <= _INLINE_VALUES
        if is_quick:
            return [read(name, content) for name, content in asked.samples]
        loop = asyncio.get_running_loop()
        return await asyncio.gather(
            *(loop.run_in_executor(self._decoders, read, name, content) for name, content in asked.samples)
        )

    # ---- the Open Inference Protocol

    async def _infer(self, request: Request) -> Response:
        served, model, queue = self._open(request)
        body = await self._budget.read(request)
        try:
            content = json_object(body)
            identity = content.get("id")
            if identity is not None and not isinstance(identity, str):
                raise RequestError(422, "`id` must be a text.")
            names = request_outputs(content, model.outputs)
            batch = request_tensor(content, model.source)
        finally:
            self._budget.release(len(body))
        outputs = await _computed(queue, batch)
        answer = {"model_name": served.name, "model_version": served.version}
        if identity is not None:
            answer["id"] = identity
        return _json({**answer, "outputs": answer_tensors(outputs, names)})

    async def _metadata(self, request: Request) -> Response:
        served, model, _ = self._open(request)
        return _json(metadata(served.name, served.version, model))

    async def _model_ready(self, request: Request) -> Response:
        self._open(request)
        return _json({"ready": True})

    async def _server(self, _request: Request) -> Response:
        return _json({"name": "ziggurat", "version": __version__, "extensions": []})

    async def _live(self, _request: Request) -> Response:
        return _json({"live": True})

    async def _ready(self, _request: Request) -> Response:
        if any(each.model is None for each in self._models.values()):
            raise _loading()
        return _json({"ready": True})

    # ---- about the server

    async def _index(self, _request: Request) -> Response:
        models = [
            {
                "name": each.name,
                "version": each.version,
                "follows": each.source.text,
                "ready": each.model is not None,
                "refused": each.refused,
                "self_test": 0 if each.model is None else each.model.self_test,
                "provenance": {} if each.model is None else dict(each.model.provenance),
            }
            for each in self._models.values()
        ]
        return _json({"server": f"Ziggurat {__version__}", "models": models, "api": "/openapi.json"})

    async def _metric_text(self, _request: Request) -> Response:
        queues = [(name, 0 if each.queue is None else each.queue.waiting) for name, each in self._models.items()]
        versions = [(name, each.version) for name, each in self._models.items() if each.version]
        return Response(self._metrics.text(queues, versions), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _openapi(self, _request: Request) -> Response:
        kinds = {name: each.model.kind for name, each in self._models.items() if each.model is not None}
        return _json(document(kinds))

    # ---- within

    def _route(self, path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
        """Return a route whose answers are counted."""

        async def counted(request: Request) -> Response:
            began, status = time.perf_counter(), 500
            try:
                response = await answer(request)
                status = response.status_code
                return response
            except RequestError as problem:
                status = problem.status
                raise
            finally:
                # Only names that are served: what strangers ask for must not become labels.
                name = request.path_params.get("name") or next(iter(self._models))
                label = name if name in self._models else ""
                self._metrics.request(label, path, status, time.perf_counter() - began)

        return Route(path, counted, methods=["POST"])

    def _open(self, request: Request) -> tuple[ServedName, ServedModel, Batcher]:
        """Return the model that a request names.

        Raises:
            RequestError: 404 if there is none, or it does not answer by that version; 503 while it is loading.
        """
        name = request.path_params.get("name")
        if name is None and len(self._models) > 1:
            raise RequestError(404, f"Several models are served: ask /models/NAME/predict, {self._known()}.")
        served = next(iter(self._models.values())) if name is None else self._models.get(name)
        if served is None:
            raise RequestError(404, f"There is no model of that name; {self._known()}.")
        model, queue = served.model, served.queue
        if model is None or queue is None:
            raise _loading()
        version = request.path_params.get("version", served.version)
        if version != served.version:
            raise RequestError(404, f"The model answers by its version {served.version}.")
        return served, model, queue

    def _known(self) -> str:
        return f"NAME is one of {', '.join(self._models)}"


async def _computed(queue: Batcher, batch: np.ndarray) -> Any:
    try:
        return await queue.predict(batch)
    except QueueFullError as error:
        headers = {"Retry-After": str(error.retry_after_s)}
        raise RequestError(429, "Too many requests wait. Try again later.", headers=headers) from None
    except Exception as error:  # of the runtime: such as the number of a token that the model does not have
        raise RequestError(422, f"The model cannot compute this: {str(error)[:300]}") from error


def _loading() -> RequestError:
    return RequestError(503, "The model is being loaded.", headers={"Retry-After": "1"})


async def _problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return _json(error.as_json(), error.status, error.headers)


async def _http_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json({"error": error.detail}, error.status_code, dict(error.headers or {}))


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    try:
        text = _ENCODER.encode(content)
    except ValueError:  # an output that is not finite: JSON has no word for it
        text = _ENCODER.encode(_finite(content))
    return Response(text, status, headers, media_type="application/json")


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
