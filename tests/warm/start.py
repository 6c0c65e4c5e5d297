"""Command that stands for a forked worker: passes signals and the exit code on, and dies with it.

``python -I -S start.py SOCKET PYTHON -m MODULE WORDS...``. If the template refuses, it becomes the cold process.
"""

import json
import os
import select
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from keys import read_at_import

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
PARENT_WATCH_S = 0.5


def main() -> None:
    """Ask the template for a process, and end as it ends."""
    path, python, *words = sys.argv[1:]
    parent = os.getppid()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        answers = ask(connection, words)
        first = answers.readline()
    except OSError:
        first = b"cold\n"
    if not first.strip().isdigit():
        os.execv(python, [python, *words])
    pid = int(first)
    for number in FORWARDED:
        signal.signal(number, lambda received, _frame: os.kill(pid, received))
    for number in range(3):
        os.close(number)  # a pipe ends for its reader when the forked process closes it
    ends_with_parent = "--end-with" in words
    while not select.select([connection], [], [], PARENT_WATCH_S)[0]:
        if ends_with_parent and os.getppid() != parent:
            os._exit(1)
    status = answers.readline()
    end_like(int(status) if status.strip() else 9)


def ask(connection: socket.socket, words: list[str]):
    """Send the request; return a file with the answers."""
    mask = os.umask(0)
    os.umask(mask)
    request = {
        "read_at_import": read_at_import(os.environ),
        "words": words[1:],
        "folder": os.getcwd(),
        "umask": mask,
        "nice": os.nice(0),
        "environment": dict(os.environ),
    }
    socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
    return connection.makefile("rb", buffering=0)


def end_like(status: int) -> None:
    """End with the exit code, or by the signal, of a wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)


if __name__ == "__main__":
    main()
