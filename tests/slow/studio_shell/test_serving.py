"""The server says when it answers, and ends within seconds, whatever is still open."""

import signal
import socket
import subprocess
import sys

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

from ziggurat.workspace.server_process import take_port

SERVER = """
import asyncio, sys
from contextlib import asynccontextmanager
from pathlib import Path
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, StreamingResponse
from ziggurat.server.serving import serve
from ziggurat.workspace.server_process import address_of, take_port

class Streams:
    def close(self):
        print("streams closed", flush=True)

@asynccontextmanager
async def lifespan(app):
    if sys.argv[2] == "fails":
        raise RuntimeError("the cause")
    yield
    print("shut down", flush=True)

async def endless():
    yield b"hello\\n"
    await asyncio.Event().wait()

application = FastAPI(lifespan=lifespan)
application.state.streams = Streams()
application.add_api_route("/endless", lambda: StreamingResponse(endless()))
application.add_api_route("/{path:path}", lambda: PlainTextResponse("hello\\n"))
listener = take_port("127.0.0.1", 0)
ended_by = serve(application, listener, logs=Path(sys.argv[1]), grace_s=1,
                 ready=lambda: print(address_of(listener, "127.0.0.1"), flush=True))
print("ended by", ended_by, flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """Start a server in a process of its own; return the process and its address."""
    processes = []

    def start_one(kind="works", words=()):
        process = subprocess.Popen(
            [*words, sys.executable, "-c", SERVER, str(tmp_path / "logs"), kind],
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # whoever runs the tests may ignore it
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process, process.stdout.readline().strip()

    yield start_one
    for process in processes:
        process.kill()
        process.communicate()


def ask(address, path="/"):
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = b""
    while b"hello" not in answer:
        answer += connection.recv(4096)
    return connection, answer.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(start, number):
    process, address = start()
    connection, answer = ask(address)
    assert "server:" not in answer.lower()
    connection.close()
    process.send_signal(number)
    out, err = process.communicate(timeout=90)
    assert out.splitlines() == ["streams closed", "shut down", f"ended by {number.name}"], err
    assert process.returncode == 0


def test_an_endless_answer_does_not_keep_it(start):
    process, address = start()
    connection, _ = ask(address, "/endless")
    process.terminate()
    out, _ = process.communicate(timeout=90)
    assert "ended by SIGTERM" in out
    connection.close()


def test_requests_stand_in_the_access_log(start, tmp_path):
    process, address = start()
    ask(address, "/some/path")[0].close()
    process.terminate()
    process.communicate(timeout=90)
    assert '"GET /some/path HTTP/1.1" 200' in (tmp_path / "logs" / "access.log").read_text()
    assert "Finished server process" in (tmp_path / "logs" / "server.log").read_text()


def test_an_application_that_does_not_start_says_the_cause(start, tmp_path):
    process, _ = start("fails")
    _, err = process.communicate(timeout=90)
    assert "ZigguratError: The application did not start." in err
    assert "the cause" in (tmp_path / "logs" / "server.log").read_text()


def test_a_killed_server_frees_the_port(start):
    process, address = start()
    connection, _ = ask(address)
    process.kill()
    process.wait()
    port = int(address.rstrip("/").rpartition(":")[2])
    take_port("127.0.0.1", port).close()  # although the connection to it is not closed yet
    connection.close()


def test_under_nohup_a_closed_terminal_means_nothing(start):
    process, address = start(words=["nohup"])
    process.send_signal(signal.SIGHUP)
    ask(address)[0].close()
    process.terminate()
    assert "ended by SIGTERM" in process.communicate(timeout=90)[0]
