"""Benchmark of ``ziggurat serve``: LeNet and ResNet-18 beside bare ONNX Runtime, a server of forty lines, and LitServe.

LitServe (https://github.com/Lightning-AI/LitServe) takes part where it is installed. The servers alternate round by
round, so that any other load on the machine affects all; the clients are coroutines of this process, which write
prepared bytes to open connections.
"""

from __future__ import annotations

import asyncio
import compileall
import importlib.util
import io
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import psutil
from PIL import Image

from bench.parts.report import Options, Report, Row
from ziggurat.dataflow.standalone_prediction import Reader

__all__ = ["run"]

_OURS, _FLOOR, _BARE, _LIT = "ziggurat serve", "forty lines of Starlette", "bare ONNX Runtime", "LitServe"
_UNTESTED = "ziggurat serve without its self-test"
_PARTS = Path(__file__).parent / "parts"
_STARTS = 5
_CLIENTS = 64
_ALONE = 200
"""Requests of a round by one client."""

_TOGETHER = 3000
"""Requests of a round by all clients."""

_LARGE_PX, _LARGE_BATCH, _LARGE_BATCHES = 224, 16, 4
"""Side of the images of ResNet-18, images of a bare batch, and batches of a round."""

_SERVE_UNTESTED = """
from ziggurat.cli.main import main
from ziggurat.serving.model import ServedModel
ServedModel.test = lambda self: None
main()
"""


def run(options: Options) -> Report:
    """Measure."""
    report = Report(
        "One digit (28 x 28) classified by LeNet over HTTP",
        "request",
        f"{_CLIENTS} clients, JSON: {_FLOOR}",
        [
            f"{options.rounds} interleaved rounds; one ONNX Runtime thread; CPU time is that of the server alone",
            f"with {_CLIENTS} clients, wall time is that of a round by its {_TOGETHER} requests",
        ],
        left_out={} if importlib.util.find_spec("litserve") else {_LIT: "LitServe is not installed"},
    )
    with tempfile.TemporaryDirectory() as folder:
        export = _lenet(Path(folder))
        _measure_starts(report, export)
        with ExitStack() as servers:
            names = [_OURS, _FLOOR, *([] if report.left_out else [_LIT])]
            _measure(report, export, {name: servers.enter_context(_server(name, export)) for name in names}, options)
        large = _resnet(Path(folder))
        with _server(_OURS, large) as ours:
            _measure_large(report, large, ours, options.rounds)
    return report


class _Served:
    """A server process.

    Args:
        process: it.
        port: where it listens.
        start_cpu_s: CPU time until it answered.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = psutil.Process(process.pid)
        self.port = port
        self.start_cpu_s = self.cpu_s

    @property
    def cpu_s(self) -> float:
        """CPU time so far, with that of its processes."""
        processes = [self.process, *self.process.children(recursive=True)]
        return sum(times.user + times.system for times in (each.cpu_times() for each in processes))


def _measure(report: Report, export: Path, servers: dict[str, _Served], options: Options) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    tensor = {
        "name": "input",
        "datatype": "FP32",
        "shape": [1, 28, 28, 1],
        "data": pixels.astype(float).ravel().tolist(),
    }
    body = json.dumps({"inputs": [tensor], "outputs": [{"name": "output"}]}).encode()
    image = _request("/predict", "image/png", file.getvalue())
    infer = _request(f"/v2/models/{export.name}/infer", "application/json", body)
    simple = _request("/infer", "application/json", body)
    batch, _ = Reader(export, _model_facts(export)["preprocessing"] == "inside").image(file.getvalue())
    model = _bare(export)
    ours, floor = servers[_OURS], servers[_FLOOR]
    sides = {
        f"1 client, PNG: {_OURS}": (ours, image, 1),
        f"1 client, JSON: {_OURS}": (ours, infer, 1),
        f"1 client, JSON: {_FLOOR}": (floor, simple, 1),
        f"{_CLIENTS} clients, JSON: {_OURS}": (ours, infer, _CLIENTS),
        **{
            f"{_CLIENTS} clients, JSON: {name}": (server, simple, _CLIENTS)
            for name, server in servers.items()
            if name != _OURS
        },
    }
    rows = {name: Row(name, [], []) for name in (_BARE, *sides)}
    for _ in range(options.rounds):
        bare = [_timed(lambda: model(batch)) for _ in range(_ALONE)]
        rows[_BARE].wall_us.append(1e6 * statistics.median(bare))
        rows[_BARE].cpu_us.append(1e6 * statistics.mean(bare))
        for name, (server, request, clients) in sides.items():
            count = _ALONE if clients == 1 else _TOGETHER
            cpu_s = server.cpu_s
            times, wall_s = asyncio.run(_ask(server.port, request, clients, count))
            rows[name].cpu_us.append(1e6 * (server.cpu_s - cpu_s) / count)
            rows[name].wall_us.append(1e6 * (statistics.median(times) if clients == 1 else wall_s / count))
    report.rows += rows.values()
    medians = {name: statistics.median(row.wall_us) for name, row in rows.items()}
    for kind in ("PNG", "JSON"):
        above_ms = (medians[f"1 client, {kind}: {_OURS}"] - medians[_BARE]) / 1000
        report.notes.append(f"1 client, {kind}: median {above_ms:.2f} ms above bare ONNX Runtime")
    for name in servers:
        if name != _OURS:
            wall, cpu = (_ratio(rows, name, kind) for kind in ("wall_us", "cpu_us"))
            report.notes.append(f"{_CLIENTS} clients: {wall} times the requests a second of {name}, in CPU time {cpu}")


def _ratio(rows: dict[str, Row], name: str, kind: str) -> str:
    """Return how often ours is the other one's: median and range of the rounds."""
    theirs, ours = (getattr(rows[f"{_CLIENTS} clients, JSON: {each}"], kind) for each in (name, _OURS))
    ratios = [one / other for one, other in zip(theirs, ours, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _measure_large(report: Report, export: Path, ours: _Served, rounds: int) -> None:
    """Compare the images a second of ResNet-18 over HTTP with those of batches without a server."""
    side = _LARGE_PX
    rows, columns = np.mgrid[:side, :side]
    file = io.BytesIO()
    Image.fromarray(np.stack([rows, columns, (rows + columns) // 2], 2).astype(np.uint8)).save(file, "JPEG")
    batch, _ = Reader(export, _model_facts(export)["preprocessing"] == "inside").image(file.getvalue())
    batch = np.repeat(batch, _LARGE_BATCH, 0)
    model, request = _bare(export), _request("/predict", "image/jpeg", file.getvalue())
    count = _LARGE_BATCH * _LARGE_BATCHES
    served, bare = (Row(f"ResNet-18, {side} px: {name}", [], []) for name in (_OURS, f"{_BARE}, {_LARGE_BATCH}"))
    for number in range(rounds + 1):  # the first one warms up
        began, began_cpu = time.perf_counter(), time.process_time()
        for _ in range(_LARGE_BATCHES):
            model(batch)
        found = [(time.process_time() - began_cpu, time.perf_counter() - began)]
        cpu_s = ours.cpu_s
        _, wall_s = asyncio.run(_ask(ours.port, request, 2 * _LARGE_BATCH, count))
        found.append((ours.cpu_s - cpu_s, wall_s))
        for row, (taken_cpu_s, taken_s) in zip((bare, served), found if number else (), strict=False):
            row.cpu_us.append(1e6 * taken_cpu_s / count)
            row.wall_us.append(1e6 * taken_s / count)
    report.rows += [bare, served]
    shares = {
        kind: statistics.median(
            one / other for one, other in zip(getattr(bare, kind), getattr(served, kind), strict=True)
        )
        for kind in ("wall_us", "cpu_us")
    }
    report.notes.append(
        f"ResNet-18, JPEG files of {side} px, {2 * _LARGE_BATCH} clients: {shares['wall_us']:.2f} of the images a "
        f"second of bare batches of {_LARGE_BATCH}, in CPU time {shares['cpu_us']:.2f}; goal: at least 0.9"
    )


def _measure_starts(report: Report, export: Path) -> None:
    """Compare the CPU time until a server answers; the modules are compiled, as in an installed package."""
    compileall.compile_dir(Path(__file__).parents[1] / "src", quiet=2)
    times: dict[str, list[float]] = {_OURS: [], _UNTESTED: [], _FLOOR: []}
    for _ in range(_STARTS):
        for name, taken in times.items():
            with _server(name, export) as server:
                taken.append(server.start_cpu_s)
    ours, untested, floor = (statistics.median(taken) for taken in times.values())
    report.notes.append(
        f"CPU time of the start: {untested:.2f} s without the self-test, {untested / floor:.2f} times that of {_FLOOR} "
        f"({floor:.2f} s), goal: at most 1.3; {ours:.2f} s with it"
    )


def _bare(export: Path) -> Callable[[np.ndarray], Any]:
    """Return a function that computes a batch, in one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(export / "model.onnx"), options, providers=["CPUExecutionProvider"])
    source = session.get_inputs()[0].name
    return lambda batch: session.run(None, {source: batch})


def _model_facts(export: Path) -> dict[str, Any]:
    return json.loads((export / "model.json").read_text(encoding="utf-8"))


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _request(path: str, media_type: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _ask(port: int, request: bytes, clients: int, count: int) -> tuple[list[float], float]:
    """Return the seconds of each answer, and of all."""
    times: list[float] = []
    left = count

    async def client() -> None:
        nonlocal left
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while left > 0:
            left -= 1
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            times.append(time.perf_counter() - began)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return times, time.perf_counter() - began


@contextmanager
def _server(name: str, export: Path) -> Iterator[_Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = ["serve", str(export), "--port", str(port), "--threads", "1"]
    words = {
        _OURS: ["-m", "ziggurat", *serve],
        _UNTESTED: ["-c", _SERVE_UNTESTED, *serve],
        _FLOOR: [str(_PARTS / "serving_floor.py"), str(export / "model.onnx"), str(port)],
        _LIT: [str(_PARTS / "serving_litserve.py"), str(export / "model.onnx"), str(port)],
    }[name]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(port, process)
            yield _Served(process, port)
        finally:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.terminate()
            process.terminate()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when a server answers anything but 503."""
    request = b"GET /v2/health/ready HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"
    while process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(request)
                if b" 503 " not in connection.recv(64):
                    return
        except ConnectionError:
            pass
        time.sleep(0.05)
    raise SystemExit(f"The server ended with {process.returncode}.")


def _lenet(folder: Path) -> Path:
    """Train LeNet for an epoch, and export it."""
    return _export(folder / "lenet", {"network": "lenet"})


def _resnet(folder: Path) -> Path:
    """Export ResNet-18 after a single step: what its weights are, does not matter here."""
    preprocessing = {"size": [_LARGE_PX, _LARGE_PX], "channels": 3}
    short = {"steps_per_epoch": 1, "batch_size": 2, "validation": {"every_epochs": 0}}
    return _export(folder / "resnet18", {"network": "resnet18", "preprocessing": preprocessing, **short})


def _export(export: Path, fields: dict[str, Any]) -> Path:
    job, spec = export.with_name(f"{export.name}-job"), export.with_suffix(".json")
    base = {"kind": "train", "version": 1, "backend": "torch", "data": {"source": "digits"}, "epochs": 1}
    spec.write_text(json.dumps({**base, **fields}), encoding="utf-8")
    train = ["train", str(spec), "--out", str(job)]
    for words in (train, ["export", str(job), "--format", "onnx", "--out", str(export)]):
        subprocess.run([sys.executable, "-m", "ziggurat", *words], check=True, stdout=subprocess.DEVNULL)
    return export
