"""The metrics of the studio: names, values, and who gets them."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest

from ziggurat.api.app import create_app
from ziggurat.workspace.accounts import LOCAL

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)+)\})? (-?[0-9.e+-]+)')


def read(text: str) -> dict[str, float]:
    """Return name with labels → value; every line is a sample or a type."""
    found = {}
    typed = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert kind in ("gauge", "counter")
            assert name not in typed, "samples of a name stand together"
            typed.add(name)
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] in typed
        found[match[1] + (f"{{{match[2]}}}" if match[2] else "")] = float(match[3])
    return found


def ask_from(app: Any, address: str, host: str = "127.0.0.1:5000", **headers: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(address, 40000))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.get("/metrics", headers=headers)

    return asyncio.run(asked())


def test_jobs_machine_and_requests_are_counted(app: Any, ask: Any, train: Any) -> None:
    train()
    before = read(ask("GET", "/metrics").text)
    ask("GET", "/api/v1/jobs/nobody")

    answer = ask("GET", "/metrics")

    found = read(answer.text)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert (found['ziggurat_jobs{state="queued"}'], found['ziggurat_jobs{state="done"}']) == (1, 0)
    assert found["ziggurat_queue_jobs"] == 1
    assert 0 <= found["ziggurat_cpu_load_ratio"] <= 1
    for name in ("memory", "disk"):
        assert 0 < found[f"ziggurat_{name}_free_bytes"] <= found[f"ziggurat_{name}_total_bytes"]
    missing = 'ziggurat_http_requests_total{method="GET",status="404"}'
    good = 'ziggurat_http_requests_total{method="GET",status="200"}'
    assert found[missing] - before.get(missing, 0) == 1
    assert found[good] - before.get(good, 0) == 1, "the first scrape"
    assert found["ziggurat_http_request_seconds_total"] > 0


@pytest.mark.parametrize(
    ("address", "host", "headers", "public", "status"),
    [
        ("127.0.0.1", "127.0.0.1:5000", {}, False, 200),
        ("127.0.0.1", "127.0.0.1:5000", {"X-Forwarded-For": "192.0.2.7"}, False, 401),
        ("127.0.0.1", "127.0.0.1:5000", {}, True, 401),
        ("192.0.2.7", "127.0.0.1:5000", {}, False, 401),
        ("192.0.2.7", "127.0.0.1:5000", {"Authorization": "Bearer zig_x"}, False, 401),
    ],
)
def test_only_this_machine_or_a_token_gets_them(
    studio: Any, address: str, host: str, headers: dict[str, str], public: bool, status: int
) -> None:
    studio.people.create_user("ann", "correct horse battery", role="admin", by=LOCAL)
    app = create_app(studio, public_bind=public)

    assert ask_from(app, address, host, **headers).status_code == status


def test_a_token_may_read_them_from_elsewhere(studio: Any) -> None:
    studio.people.create_user("first", None, role="admin", by=LOCAL)
    studio.people.create_user("ann", None, role="viewer", by=LOCAL)
    secret = studio.people.create_token("ann", "prometheus", scope="read", by=LOCAL)[1]

    answer = ask_from(create_app(studio, public_bind=True), "192.0.2.7", Authorization=f"Bearer {secret}")

    assert answer.status_code == 200
