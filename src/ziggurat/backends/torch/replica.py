"""Replica process, ``python -m ziggurat.backends.torch.replica``: it computes its rows of every step of a training.

Arguments: descriptors of the line to the first process and of the memory for the rows, the number of the first
process, and whether the thread that started this one lives as long as that process.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.data_parallel import ReplicaProgram, Share
from ziggurat.backends.torch.device_group import LostProcessError
from ziggurat.backends.torch.replicas import ReplicaSettings
from ziggurat.backends.torch.shards import ShardMemory
from ziggurat.dataflow.parallel.worker import Fault, bind_to_parent, go_on
from ziggurat.engine.run_state import seed_global_random

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Build the program and take part in steps until the first process says that it is over, or ends.

    Args:
        arguments: see the module.
    """
    line_number, memory_number, parent, is_lasting = (int(each) for each in arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, go_on)
    faulthandler.register(signal.SIGUSR1)
    bind_to_parent(parent, by_lasting_thread=bool(is_lasting))
    line, memory = Connection(line_number), ShardMemory(memory_number)
    try:
        _work(line, memory)
    except LostProcessError as error:
        _say(line, "lost", str(error))
    except (EOFError, OSError):
        pass  # the first process has ended
    except BaseException as error:
        _say(line, "error", Fault.of(error, index=0).portable())


def _work(line: Connection, memory: ShardMemory) -> None:
    settings: ReplicaSettings = line.recv()
    sys.path[:] = settings.import_path
    if settings.threads:
        torch.set_num_threads(settings.threads)
    seed_global_random(settings.request.seed)
    program = TorchBackend().build_replica(settings)
    line.send(("built",))
    while True:
        message = line.recv()
        if message[0] == "end":
            return
        _do(program, line, memory, *message)


def _do(program: ReplicaProgram, line: Connection, memory: ShardMemory, kind: str, *told: Any) -> None:
    if kind == "meet":
        program.group.meet(told[0])
    elif kind == "state":
        program.load_state(told[0])
    else:
        layout, counts, share = told
        assert isinstance(share, Share)
        rows = program.take_part(memory.arrays(layout), counts, share)
        if rows:
            line.send(("rows", rows))


def _say(line: Connection, *message: Any) -> None:
    try:
        line.send(message)
    except OSError:
        pass  # nothing is left to be told


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(0)  # threads of the group and of the user's code must not keep the process
