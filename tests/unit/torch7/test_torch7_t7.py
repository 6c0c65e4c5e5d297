"""Files of Torch: values, shared storages, back references, what is cut or hostile, and weights for a network."""

import random
import struct
from contextlib import suppress

import numpy as np
import pytest

from tests.torch7_files import GRAY, Function, Object, Storage, View, convolution, linear, module, t7
from ziggurat.compat.caffe.importing import ImportOptions
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.compat.torch7.errors import TorchError
from ziggurat.compat.torch7.importing import convert_torch
from ziggurat.compat.torch7.t7 import Function as ReadFunction
from ziggurat.compat.torch7.t7 import TorchObject, parse_t7

SOURCE = np.random.default_rng(0)


def normal(*shape):
    return (SOURCE.standard_normal(shape) * 0.1).astype(np.float32)


@pytest.mark.parametrize("text", [False, True])
def test_values_are_read(text):
    storage = np.arange(12, dtype=np.float32)
    shared = {"deep": 1}
    value = {
        "number": 1.5, "text": "a b\nc", "yes": True, "nothing": False, "list": [1, 2, "x"], "one": shared,
        "other": shared,
        "rows": View(storage, [3, 4], [4, 1]), "columns": View(storage, [4, 3], [1, 4]),
        "part": View(storage, [2], [5], 3),
        "bytes": np.array([1, 200], np.uint8), "longs": np.array([[2**40, -1]], np.int64), "f": Function(),
        "object": Object("a.B", own=2.0),
    }  # fmt: skip
    found = parse_t7(t7(value, text=text))
    assert (found["number"], found["text"], found["yes"], found["nothing"]) == (1.5, "a b\nc", True, False)
    assert found["list"] == {1: 1.0, 2: 2.0, 3: "x"}
    assert found["one"] is found["other"]
    np.testing.assert_array_equal(found["rows"], storage.reshape(3, 4))
    np.testing.assert_array_equal(found["columns"], storage.reshape(3, 4).T)
    np.testing.assert_array_equal(found["part"], [2, 7])
    assert np.shares_memory(found["rows"], found["columns"])
    assert found["bytes"].tolist() == [1, 200]
    assert found["longs"].tolist() == [[2**40, -1]]
    assert found["f"] == ReadFunction()
    assert found["object"] == TorchObject("a.B", {"own": 2.0})


def test_a_table_may_hold_itself():
    table = {}
    table["me"] = table
    found = parse_t7(t7(table))
    assert found["me"] is found


DEEP = b"".join(struct.pack("<iii", 3, number, 1) for number in range(1, 1000))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x04", struct.pack("<i", 99), struct.pack("<iii", 3, 1, 1 << 30), struct.pack("<ii", 2, -5),
        struct.pack("<ii", 2, 1 << 30), DEEP, t7(View(np.zeros(2, np.float32), [3], [1])),
        t7(View(np.zeros(2, np.float32), [1 << 40, 1 << 40], [0, 0])), t7(View(np.zeros(2, np.float32), [2], [-1])),
        t7(View(np.zeros(2, np.float32), [2], [1], -3)), t7(View(np.zeros(2, np.float32), [1] * 30, [1] * 30)),
        t7([1, 2])[:-3], b"3\n1\n99999999999999999999\n", b"4\n1\n3\nV 1\n3\nabc", b"1\nnope\n",
    ],
    ids=range(16),
)  # fmt: skip
def test_damaged_files_are_refused(content):
    with pytest.raises(TorchError):
        parse_t7(content)


def saved_lenet():
    """Return LeNet for 8 x 8 as Torch saves it, with its arrays."""
    arrays = [normal(20, 1, 3, 3), normal(20), normal(50, 20, 3, 3), normal(50), normal(500, 200), normal(500)]
    arrays += [normal(10, 500), normal(10)]
    pool = {"kW": 2, "kH": 2, "dW": 2, "dH": 2, "padW": 0, "padH": 0, "ceil_mode": False}
    modules = [
        module("MulConstant", constant_scalar=0.00390625), convolution(*arrays[:2], pad=1),
        module("SpatialMaxPooling", **pool), convolution(*arrays[2:4], "SpatialConvolutionMM", pad=1),
        module("SpatialMaxPooling", **pool),
        module("View", size=Storage(np.array([-1])), numElements=-1, numInputDims=3), linear(*arrays[4:6]),
        module("ReLU", threshold=0, val=0), linear(*arrays[6:]), module("LogSoftMax"),
    ]  # fmt: skip
    return module("Sequential", *modules), arrays


def converted(folder, content, text=None, **options):
    (folder / "net.t7").write_bytes(content)
    (folder / "net.lua").write_text(text or "")
    files = (
        ImportFiles(network=folder / "net.lua", weights=folder / "net.t7")
        if text
        else ImportFiles(network=folder / "net.t7")
    )
    return convert_torch(files, ImportOptions(color="RGB", shape=(1, 8, 8)), **options)


@pytest.mark.parametrize("form", [False, True])
def test_a_saved_model_is_a_network_with_weights(tmp_path, form):
    saved, arrays = saved_lenet()
    found = converted(tmp_path, t7(saved, text=form))
    assert [node.layer.kind for node in found.graph.nodes][:3] == ["Power", "Convolution", "SpatialMaxPooling"]
    np.testing.assert_allclose(found.state["conv2.weight"], arrays[2], rtol=1e-6)
    np.testing.assert_allclose(found.state["fc2.bias"], arrays[7], rtol=1e-6)
    assert "self.fc2 = nn.Linear(500, classes)" in found.file.text


def test_weights_belong_to_the_modules_of_a_text(tmp_path):
    pytest.importorskip("lupa")
    saved, arrays = saved_lenet()
    found = converted(tmp_path, t7({"model": saved}), GRAY, classes=10)
    np.testing.assert_array_equal(found.state["conv1.weight"], arrays[0])
    assert "fc2.weight" not in found.state, "the hook replaced it"
    assert "self.fc2 = nn.Linear(500, classes)" in found.file.text
    assert "self.conv1.weight.requires_grad_(False)" in found.file.text
    assert any("begin fresh: `fc2`" in each for each in found.warnings)
    with pytest.raises(TorchError, match="another network"):
        converted(tmp_path, t7(module("Sequential", linear(normal(3, 64), normal(3)))), GRAY, classes=10)
    other = t7(saved_lenet()[0])
    with pytest.raises(TorchError, match="another size"):
        converted(tmp_path, other, GRAY.replace("20, 3, 3", "21, 3, 3").replace("(20, 50", "(21, 50"), classes=10)


@pytest.mark.parametrize(
    "value", [3.0, np.zeros(4, np.float32), {"x": 1}, Object("nn.Sequential", modules=[3]), Function()]
)
def test_a_file_without_a_network_is_refused(tmp_path, value):
    with pytest.raises(TorchError):
        converted(tmp_path, t7(value))


def mutate(folder, first, count):
    """Import mutated files; return how many gave a network."""
    saved = saved_lenet()[0]
    small = t7(module("Sequential", linear(normal(3, 64), normal(3)), module("LogSoftMax")))
    contents, results = [t7(saved), small, t7(module("Sequential", linear(normal(2, 4), normal(2))), text=True)], 0
    for seed in range(first, first + count):
        source = random.Random(seed)
        content = bytearray(source.choice(contents))
        limit = len(content) if source.random() < 0.3 else min(len(content), 900)
        for _ in range(source.randint(1, 5)):
            place = source.randrange(min(limit, len(content) - 1))
            if source.random() < 0.7:
                content[place] = source.choice((0, 1, 2, 3, 4, 5, 7, 8, 127, 255, source.randrange(256)))
            elif source.random() < 0.5:
                del content[place : place + source.randint(1, 30)]
            else:
                content[place:place] = content[place : place + source.randint(1, 40)]
        with suppress(TorchError):
            converted(folder, bytes(content))
            results += 1
    return results


@pytest.mark.timeout(120)
def test_mutated_files_give_an_error_or_a_result(tmp_path):
    assert 10 < mutate(tmp_path, 0, 300) < 290


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_ten_thousand_mutated_files(tmp_path):
    assert mutate(tmp_path, 1000, 10_000)
