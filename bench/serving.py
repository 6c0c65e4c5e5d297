"""Benchmark of ``ziggurat serve``: LeNet on digits beside bare ONNX Runtime and beside a server of forty lines.

The servers alternate round by round, so that any other load on the machine affects both; the clients are coroutines of
this process, which write prepared bytes to open connections.
"""

from __future__ import annotations

import asyncio
import io
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
from PIL import Image

from bench.parts.report import Options, Report, Row
from ziggurat.dataflow.standalone_prediction import Reader, load_model

__all__ = ["run"]

_OURS, _FLOOR, _BARE = "ziggurat serve", "forty lines of Starlette", "bare ONNX Runtime"
_CLIENTS = 64
_ALONE = 200
"""Requests of a round by one client."""

_TOGETHER = 3000
"""Requests of a round by all clients."""


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
    )
    with tempfile.TemporaryDirectory() as folder:
        export = _export(Path(folder))
        with _server(_OURS, export) as ours, _server(_FLOOR, export) as floor:
            _measure(report, export, ours, floor, options.rounds)
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
        """CPU time so far."""
        times = self.process.cpu_times()
        return times.user + times.system


def _measure(report: Report, export: Path, ours: _Served, floor: _Served, rounds: int) -> None:
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
    model, inside = load_model(export)
    batch, _ = Reader(export, inside).image(file.getvalue())
    sides = {
        f"1 client, PNG: {_OURS}": (ours, image, 1),
        f"1 client, JSON: {_OURS}": (ours, infer, 1),
        f"1 client, JSON: {_FLOOR}": (floor, simple, 1),
        f"{_CLIENTS} clients, JSON: {_OURS}": (ours, infer, _CLIENTS),
        f"{_CLIENTS} clients, JSON: {_FLOOR}": (floor, simple, _CLIENTS),
    }
    rows = {name: Row(name, [], []) for name in (_BARE, *sides)}
    for _ in range(rounds):
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
    pairs = zip(rows[f"{_CLIENTS} clients, JSON: {_FLOOR}"].wall_us, rows[f"{_CLIENTS} clients, JSON: {_OURS}"].wall_us)
    ratios = [one / other for one, other in pairs]
    report.notes.append(
        f"{_CLIENTS} clients: {statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f}) the "
        "requests a second of the forty lines"
    )
    report.notes.append(
        f"CPU time of the start: {ours.start_cpu_s:.2f} s with self-test and manifest, {floor.start_cpu_s:.2f} s of "
        "the forty lines"
    )


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
    if name == _OURS:
        words = ["-m", "ziggurat", "serve", str(export), "--port", str(port), "--threads", "1"]
    else:
        words = [str(Path(__file__).parent / "parts" / "serving_floor.py"), str(export / "model.onnx"), str(port)]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(port, process)
            yield _Served(process, port)
        finally:
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


def _export(folder: Path) -> Path:
    """Train LeNet for an epoch, and export it."""
    job, export = folder / "job", folder / "lenet"
    train = ["train", "--framework", "torch", "--network", "lenet", "--data", "digits", "--epochs", "1"]
    for words in ([*train, "--out", str(job)], ["export", str(job), "--format", "onnx", "--out", str(export)]):
        subprocess.run([sys.executable, "-m", "ziggurat", *words], check=True, stdout=subprocess.DEVNULL)
    return export
