"""Program: run mutated Lua files, each in a fork with a limit of processor time: ``mutated_program.py FIRST COUNT``."""

import json
import os
import random
import re
import resource
import sys
import time

from tests.torch7_files import ALEXNET, GRAPH, LENET, SEGMENTATION, SIAMESE, TEXT
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.torch7.lua_process import PROCESSOR_S, run_text
from ziggurat.compat.torch7.modules import build_torch_graph

TEXTS = (LENET, ALEXNET, SIAMESE, SEGMENTATION, TEXT, GRAPH)
PIECES = (
    "(", ")", "{", "}", "nil", "-1", "0", "1e9", "0/0", "1/0", "'x'", "{}", "function() end", "end",
    " while true do end ", "nn.Tanh()", "net", ":clone()", ":add(net)", ",", "'a' .. ", "string.rep('x', 1e8)", "#",
    "=", "[1]", ".modules",
)  # fmt: skip
LIMIT_S = PROCESSOR_S + 1
NUMBERS = ("0", "1", "-1", "2", "3", "0.5", "1e9", "0/0", "1/0", "nil", "{}", "'3'", "true")
MODULES = ("Tanh", "Linear", "View", "Sequential", "Concat", "JoinTable", "SpatialMaxPooling", "Dropout", "Identity")


def mutated(text, source):
    """Return a text with some of it changed, cut, doubled or filled in."""
    for _ in range(source.randint(1, 2)):
        action = source.randrange(8)
        lines = text.split("\n")
        row = source.randrange(len(lines))
        place, length = source.randrange(len(text) + 1), source.randint(1, 30)
        if action < 3:
            found = [*re.finditer(r"(?<![\w.])\d+(?:\.\d+)?" if action < 2 else r"(?<=nn\.)\w+", text)]
            if found:
                match = source.choice(found)
                text = text[: match.start()] + source.choice(NUMBERS if action < 2 else MODULES) + text[match.end() :]
        elif action < 6:
            lines[row : row + 1] = ([], [lines[row]] * 2, [lines[row - 1]])[action - 3]
            text = "\n".join(lines)
        elif action == 6:
            text = text[:place] + source.choice(PIECES) + text[place:]
        else:
            text = text[:place] + text[place + length :]
    return text


def outcome(text, shape):
    """Return ``result``, ``error`` or ``ended`` (by a limit)."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
        answer = run_text({"text": text, "classes": 5, "shape": shape, "hook": True})
        with os.fdopen(writing, "wb") as file:
            file.write(answer.encode("latin-1", "replace"))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        answer = file.read().decode("latin-1")
    if os.waitpid(child, 0)[1] or not answer:
        return "ended"
    if answer.startswith("!"):
        return "error"
    begin = time.process_time()
    try:
        build_torch_graph(json.loads(answer), tuple(shape))
    except CaffeError:
        return "error"
    finally:
        assert time.process_time() - begin < LIMIT_S
    return "result"


if __name__ == "__main__":
    counts = {"result": 0, "error": 0, "ended": 0}
    for seed in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
        choice = random.Random(seed)
        original = choice.randrange(len(TEXTS))
        shapes = ([1, 28, 28], [3, 64, 64], [2, 8, 8], [3, 12, 12], [30], [3, 8, 8])
        try:
            counts[outcome(mutated(TEXTS[original], choice), shapes[original])] += 1
        except BaseException:
            print("seed", seed, file=sys.stderr)
            raise
    print(counts)
