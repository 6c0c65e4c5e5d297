"""Load generator: a process with a given number of open event streams and of changes per second that cause events."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from urllib.parse import urlsplit

import httpx

__all__ = ["main"]


def main() -> None:
    """Work until a line comes; then say how many streams were open, notices came, and changes were made."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--streams", type=int, default=0)
    parser.add_argument("--per-second", type=float, default=0.0)
    parser.add_argument("--job", action="append", default=[])
    asyncio.run(_work(parser.parse_args()))


async def _work(asked: argparse.Namespace) -> None:
    counts = {"streams": 0, "notices": 0, "changes": 0}
    ready = [asyncio.Event() for _ in range(asked.streams)]
    tasks = [asyncio.create_task(_listen(asked.address, counts, each)) for each in ready]
    await asyncio.gather(*(each.wait() for each in ready))
    if asked.per_second:
        tasks.append(asyncio.create_task(_change(asked.address, asked.job, asked.per_second, counts)))
    print(json.dumps({"ready": True}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    print(json.dumps(counts), flush=True)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _listen(address: str, counts: dict[str, int], ready: asyncio.Event) -> None:
    place = urlsplit(address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(f"GET /api/v1/events?topics=jobs HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
    with contextlib.closing(writer):
        async for line in reader:
            if line == b"event: hello\n":
                counts["streams"] += 1
                ready.set()
            elif line == b"event: changed\n":
                counts["notices"] += 1


async def _change(address: str, jobs: list[str], per_second: float, counts: dict[str, int]) -> None:
    """Change the notes of one job after the other, each at its own moment: a slow answer delays no later one."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        while True:
            number = counts["changes"]
            await asyncio.sleep(max(0.0, began + number / per_second - loop.time()))
            job = jobs[number % len(jobs)]
            answer = await client.patch(f"/api/v1/jobs/{job}", json={"notes": f"note {number}"})
            answer.raise_for_status()
            counts["changes"] += 1


if __name__ == "__main__":
    main()
