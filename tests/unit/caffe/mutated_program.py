"""Program: import mutated files, each within 5 s and 512 MB: ``mutated_program.py FOLDER FIRST COUNT``."""

import faulthandler
import random
import resource
import signal
import sys
from pathlib import Path

from tests.caffe_files import LENET, LENET_SOLVER, NETWORKS, blob, caffemodel, googlenet_with_losses
from ziggurat.compat.caffe.blobs import read_mean
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.importing import ImportOptions, convert
from ziggurat.compat.caffe.layers import read_network
from ziggurat.compat.caffe.solver import read_solver
from ziggurat.compat.caffe.sources import ImportFiles, load_status
from ziggurat.compat.caffe.weights import random_arrays
from ziggurat.errors import ZigguratError

LIMIT_S, LIMIT_BYTES = 5, 512 << 20
PIECES = [
    b"{",
    b"}",
    b"[",
    b'"',
    b"layer {",
    b"999999999",
    b"-1",
    b"0",
    b"\xff",
    b"dim: 1048576",
    b"nan",
    b"#",
    b"type: 1",
]
PICKLE = (
    b"\x80\x02}q\x00(U\x05tasksq\x01]q\x02cos\nsystem\nq\x03)\x81q\x04}q\x05U\x04nameq\x06U\x03abcq\x07sbaU\x01aK\x01u."
)


def mutated(content, source):
    """Return bytes with some of them changed, cut, doubled or filled in."""
    content = bytearray(content)
    for _ in range(source.randint(1, 6)):
        place, action = source.randrange(len(content) + 1), source.randrange(6)
        if action == 0 and place < len(content):
            content[place] = source.randrange(256)
        elif action == 1:
            content[place:place] = source.choice(PIECES)
        elif action == 2:
            del content[place : place + source.randint(1, 60)]
        elif action == 3:
            length = source.randint(1, 400)
            content[place:place] = content[place : place + length] * source.randint(1, 4)
        elif action == 4 and place < len(content):
            content[place] ^= 1 << source.randrange(8)
        elif action == 5 and source.random() < 0.2:
            del content[place:]
    return bytes(content)


def main(folder, first, count):
    """Import files with seeds from ``first`` on; an error of Ziggurat is an answer, anything else is none."""
    text = NETWORKS["siamese"]()
    weights = caffemodel(random_arrays(build_graph(read_network(text), None)), form="V1")
    texts = [LENET, text, googlenet_with_losses(), *(each() for each in NETWORKS.values())]
    mean = blob([[[[1.0, 2.0], [3.0, 4.0]]]], old_axes=True)
    network, model, image = folder / "net.prototxt", folder / "net.caffemodel", folder / "mean.binaryproto"
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    faulthandler.enable()
    answers = {"result": 0, "error": 0}
    for seed in range(first, first + count):
        source = random.Random(seed)
        kind = seed % 5
        network.write_text(text)
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
        try:
            if kind in (0, 1):
                network.write_bytes(mutated(source.choice(texts).encode(), source))
                convert(ImportFiles(network=network), ImportOptions(shape=source.choice([None, (1, 28, 28)])))
            elif kind == 2:
                model.write_bytes(mutated(weights, source))
                convert(ImportFiles(network=network, weights=model), ImportOptions())
            elif kind == 3:
                read_solver(mutated(LENET_SOLVER.encode(), source).decode("utf-8", "replace"))
            else:
                image.write_bytes(mutated(mean, source))
                load_status(mutated(PICKLE, source)) if source.random() < 0.5 else read_mean(image)
            answers["result"] += 1
        except ZigguratError:
            answers["error"] += 1
        except BaseException:
            print(f"seed {seed}", flush=True)
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    print(answers)


def _too_long(_signal, _frame):
    raise TimeoutError("longer than 5 s")


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _too_long)
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
