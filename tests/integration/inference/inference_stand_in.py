"""Fake inference process: answers at once, or does what the name of the first image says."""

import os
import signal
import subprocess
import sys
import threading

from ziggurat.records.codec import read_frame, write_frame

SLEEP = [sys.executable, "-c", "import threading; threading.Event().wait(600)"]


def forked_sleeper() -> int:
    """Start a child that holds all our pipes, as a careless ``fork`` does."""
    child = os.fork()
    if not child:
        threading.Event().wait(600)
        os._exit(0)
    return child


def act(name: str) -> dict:
    if name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "exit":
        print("the last words", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "retire":
        os._exit(0)
    if name == "hang":
        threading.Event().wait(600)
    if name == "garbage":
        os.write(1, b"\x05" + bytes(7) + b"hello")
        threading.Event().wait(600)
    if name == "child":
        return {"child": subprocess.Popen(SLEEP).pid}
    if name == "fork and die":
        with open(os.environ["CHILD"], "w") as file:
            file.write(str(forked_sleeper()))
        os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("wait"):
        threading.Event().wait(float(name.split()[1]))
    return {}


def main() -> None:
    if "not ready" in os.environ.get("STAND_IN", ""):
        threading.Event().wait(600)
    write_frame(sys.stdout.buffer, {"id": 0, "result": {}})
    while (request := read_frame(sys.stdin.buffer)) is not None:
        names = [name for name, _ in request.get("pictures", [])]
        found = act(names[0]) if names else {}
        result = {**found, "pid": os.getpid(), "arguments": sys.argv[1:], "predictions": names, "failures": []}
        write_frame(sys.stdout.buffer, {"id": request["id"], "result": result})


main()
