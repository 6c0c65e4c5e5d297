"""A server of one ONNX model in forty lines, as one would write it: Starlette, and a batcher that takes what waits."""

import asyncio
import json
import sys

import numpy as np
import onnxruntime
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
source = session.get_inputs()[0].name
waiting: list[tuple[np.ndarray, asyncio.Future[np.ndarray]]] = []
arrived = asyncio.Event()


async def work() -> None:
    while True:
        await arrived.wait()
        arrived.clear()
        taken, waiting[:] = waiting[:64], waiting[64:]
        batch = np.concatenate([each for each, _ in taken])
        outputs = await asyncio.to_thread(session.run, None, {source: batch})
        for row, (_, answer) in enumerate(taken):
            answer.set_result(outputs[0][row])
        if waiting:
            arrived.set()


async def infer(request: Request) -> Response:
    tensor = json.loads(await request.body())["inputs"][0]
    answer = asyncio.get_running_loop().create_future()
    waiting.append((np.array(tensor["data"], np.float32).reshape(tensor["shape"]), answer))
    arrived.set()
    return Response(json.dumps({"outputs": [{"data": (await answer).tolist()}]}), media_type="application/json")


async def start() -> None:
    server = uvicorn.Server(uvicorn.Config(app, port=int(sys.argv[2]), log_config=None, access_log=False, ws="none"))
    await asyncio.gather(server.serve(), work())


app = Starlette(routes=[Route("/infer", infer, methods=["POST"])])
asyncio.run(start())
