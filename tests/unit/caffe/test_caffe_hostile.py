"""Damaged and hostile files of Caffe: an error or a result, soon and in little memory, never a hang or a crash."""

import ast
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.caffe_files import conv, layer, with_input
from ziggurat.compat.caffe.graph import build_graph
from ziggurat.compat.caffe.importing import ImportOptions, convert
from ziggurat.compat.caffe.layers import read_network
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.errors import ZigguratError

ROOT = Path(__file__).parents[3]


def run(folder, first, count):
    words = [sys.executable, "-m", "tests.unit.caffe.mutated_program", str(folder), str(first), str(count)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    return ast.literal_eval(done.stdout.splitlines()[-1])


def test_mutated_files_give_an_error_or_a_result(tmp_path):
    answers = run(tmp_path, 0, 300)
    assert sum(answers.values()) == 300
    assert answers["error"] > 60
    assert answers["result"] > 20


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_ten_thousand_mutated_files_of_each_kind(tmp_path):
    for first in range(1000, 51_000, 2500):
        assert sum(run(tmp_path, first, 2500).values()) == 2500


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "a {" * 100_000,
        "[" * 100_000,
        'a: "' + "\\" * 200_000,
        "layer { }\n" * 6000,
        "x: 1 " * 500_000,
        with_input((3, 60_000, 60_000), ""),
        with_input((3, 64, 64), *(conv(f"c{n}", "data", "num_output: 1000 kernel_size: 1") for n in range(3000))),
        with_input((3, 64, 64), layer("s", "Split", "data", "", " ".join(f"t{n}" for n in range(600)))),
        with_input((3, 8, 8), layer("r", "Reshape", "data", "shape { " + "dim: 1 " * 5000 + "}")),
        with_input((3, 8, 8), layer("c", "Concat", " ".join(["data"] * 499))),
    ],
    ids=range(11),
)
@pytest.mark.timeout(20)
def test_a_hostile_text_is_an_error_or_a_result(tmp_path, text):
    path = tmp_path / "net.prototxt"
    path.write_text(text)
    with suppress(ZigguratError):
        convert(ImportFiles(network=path), ImportOptions())


def test_names_of_layers_cannot_write_code(tmp_path):
    name = "x=1\\n;exit()#"
    text = with_input(
        (3, 8, 8), conv(name, "data", "num_output: 4 kernel_size: 3"), layer("f", "InnerProduct", name, "num_output: 2")
    )
    text = f'name: "a \\"\\"\\" + exit()\\n"\n{text}'
    assert build_graph(read_network(text), None).nodes[0].layer.name == "x=1\n;exit()#"
    path = tmp_path / "net.prototxt"
    path.write_text(text)
    written = convert(ImportFiles(network=path), ImportOptions()).file.text
    assert "exit" not in "\n".join(line.split("#")[0] for line in written.splitlines()[2:] if "_exit_" not in line)
    tree = ast.parse(written)
    assert [type(each).__name__ for each in tree.body] == ["Expr", "ClassDef"]
