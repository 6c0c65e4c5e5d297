"""A PyTorch network is described before it is trained: layers, operations, weights, cost, TensorBoard's graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch_jobs import MASKS, PAIRS, TEXTS
from torch_networks import SMALL, TOWER

from ziggurat.backends.torch.graph_definition import graph_definition
from ziggurat.backends.torch.recording import Operation
from ziggurat.backends.torch.tasks import TorchTasks
from ziggurat.engine.backend import ArraySpec, ProgramRequest, class_arrays
from ziggurat.errors import NetworkCodeError, UnknownNameError
from ziggurat.protobuf_wire import as_message, fields, integers
from ziggurat.web.pages.new_model.looks import graph_of
from ziggurat.worker.commands.networks import describe

HEADS = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, vocabulary_size):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, 16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.lstm = nn.LSTM(16, 12, batch_first=True)
        self.scale = nn.Parameter(torch.ones(12))
        self.fc = nn.Linear(12, nclasses)

    def forward(self, x):
        net = self.embedding(x)
        net = net + self.attention(net, net, net, need_weights=False)[0]
        return self.fc(self.lstm(net)[0].mean(1) * self.scale)
"""


def rows(found: Any, key: str) -> dict[str, Any]:
    return {row["name"]: row for row in found[key]}


def described(text: str, **arrays: Any) -> Any:
    chosen = arrays or class_arrays((8, 8, 1), 10)
    return TorchTasks().describe(ProgramRequest(network="net.py", network_text=text, **chosen))


def test_lenet_costs_what_it_costs_on_tensorflow() -> None:
    found = describe({"network": "lenet", "backend": "torch"})
    assert (found["input_shape"], found["classes"], found["outputs"]) == ([28, 28, 1], 10, [(None, 10)])
    assert found["parameters"] == 431_080
    assert found["multiply_adds"] == 24 * 24 * 20 * 25 + 8 * 8 * 50 * 20 * 25 + 800 * 500 + 500 * 10
    layers = rows(found, "layers")
    assert layers["conv1"] == {"name": "conv1", "shape": (None, 20, 24, 24), "parameters": 520, "operations": 1}
    assert layers["fc1"]["parameters"] == 800 * 500 + 500
    assert layers["max_pool2d_1"]["shape"] == (None, 50, 4, 4)
    assert "flatten" not in layers
    assert rows(found, "variables")["model/fc1.weight"] == {
        "name": "model/fc1.weight",
        "shape": (500, 800),
        "count": 400_000,
        "trainable": True,
    }
    assert found["scalars"] == ["accuracy"]


@pytest.mark.parametrize("text", [SMALL, TOWER])
def test_both_forms_are_described_alike(text: str) -> None:
    found = described(text)
    operations = rows(found, "operations")
    assert list(operations) == [
        *("model/mul", "model/conv1/conv2d", "model/relu", "model/max_pool2d", "model/flatten", "model/fc1/linear"),
    ]
    assert operations["model/conv1/conv2d"]["inputs"] == ("model/mul",)
    assert operations["model/relu"]["shape"] == (None, 8, 8, 8)
    assert [row["parameters"] for row in found["layers"]] == [0, 80, 0, 0, 1290]
    assert found["multiply_adds"] == 8 * 8 * 8 * 9 + 128 * 10


def test_attention_and_recurrence_are_counted() -> None:
    spec = {"inputs": {"x": ArraySpec((6,), "int32", 50)}, "targets": {"y": ArraySpec((), "int64", 3)}}
    found = described(HEADS, **spec)
    attention = 6 * 16 * 48 + 2 * 6 * 6 * 16 + 6 * 16 * 16
    assert found["multiply_adds"] == attention + 6 * (4 * 12) * (16 + 12) + 12 * 3
    layers = rows(found, "layers")
    assert layers["attention"]["parameters"] == 16 * 48 + 48 + 16 * 16 + 16
    assert layers["lstm"]["parameters"] == 4 * 12 * (16 + 12) + 2 * 4 * 12
    assert layers["mul"]["parameters"] == 12
    assert found["parameters"] == sum(row["parameters"] for row in found["layers"])


@pytest.mark.parametrize(
    ("text", "shape", "target", "outputs"),
    [
        (MASKS, (16, 16, 3), ArraySpec((16, 16, 1), "int64", 4), [(None, 16, 16, 4)]),
        (PAIRS, (16, 16, 2), ArraySpec((), "int64", 2), [(None, 6), (None, 6)]),
    ],
)
def test_outputs_are_those_of_the_network(text: str, shape: Any, target: ArraySpec, outputs: Any) -> None:
    assert described(text, inputs={"x": ArraySpec(shape)}, targets={"y": target})["outputs"] == outputs


def test_texts_and_frozen_weights() -> None:
    spec = {"inputs": {"x": ArraySpec((6,), "int32", 50)}, "targets": {"y": ArraySpec((), "int64", 3)}}
    asked = ProgramRequest(network="net.py", network_text=TEXTS, freeze=("embedding*",), **spec)
    found = TorchTasks().describe(asked)
    assert not rows(found, "variables")["model/embedding.weight"]["trainable"]
    assert rows(found, "layers")["embedding"]["parameters"] == 0
    assert rows(found, "layers")["embedding"]["shape"] == (None, 6, 8)


def test_buffers_are_not_trained() -> None:
    text = SMALL.replace("self.dropout =", "self.norm = nn.BatchNorm2d(8)\n        self.dropout =")
    variables = rows(
        described(text.replace("self.conv1(x", "self.norm(self.conv1(x").replace("0125)", "0125))")), "variables"
    )
    assert not variables["model/norm.running_mean"]["trainable"]
    assert variables["model/norm.weight"]["trainable"]


def test_a_network_that_looks_at_numbers_is_described_too() -> None:
    text = SMALL.replace("        return", "        if float(x.sum()) > 1e9:\n            x = x * 0\n        return")
    assert described(text)["multiply_adds"] == described(SMALL)["multiply_adds"]


def test_errors_name_the_users_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SMALL.replace("self.conv1(x", "self.conf1(x"))
    with pytest.raises(NetworkCodeError, match=r"no attribute 'conf1'") as caught:
        describe({"network": str(path), "backend": "torch"})
    assert f"{path}, line 11, `x = F.max_pool2d(" in str(caught.value)
    with pytest.raises(UnknownNameError, match="Did you mean `lenet`"):
        describe({"network": "lennet", "backend": "torch"})


def nodes_of(graph: bytes) -> dict[str, tuple[str, list[str], list[int] | None]]:
    """Return name → operation, inputs and shape of the nodes of a ``GraphDef``, read by their field numbers."""
    found = {}
    for number, node in fields(graph):
        if number != 1:
            continue
        name, kind, inputs, shape = "", "", [], None
        for part, value in fields(as_message(node)):
            if part in (1, 2, 3):
                text = bytes(as_message(value)).decode()
                name, kind = (text if part == 1 else name), (text if part == 2 else kind)
                inputs += [text] if part == 3 else []
            elif part == 5:
                entry = dict(fields(as_message(value)))
                assert bytes(as_message(entry[1])) == b"_output_shapes"
                ((_, listed),) = fields(as_message(entry[2]))
                ((_, sides),) = fields(as_message(listed))
                shape = [integers(as_message(side))[0] for _, side in fields(as_message(sides))]
        assert name not in found
        found[name] = (kind, inputs, shape)
    return found


@pytest.mark.parametrize("text", [SMALL, TOWER])
def test_tensorboards_graph_has_operations_and_weights(text: str, tmp_path: Path) -> None:
    asked = ProgramRequest(network="net.py", network_text=text, **class_arrays((8, 8, 1), 10))
    found = TorchTasks().describe_with_graph(asked)
    assert found.description == TorchTasks().describe(asked)
    assert found.problem == ""
    nodes = nodes_of(found.graph)
    assert nodes["input"] == ("Placeholder", [], [-1, 1, 8, 8])
    assert nodes["model/conv1/weight"] == ("Parameter", [], None)
    kind, inputs, shape = nodes["model/conv1/conv2d"]
    assert (kind, set(inputs)) == ("conv2d", {"model/mul", "model/conv1/weight", "model/conv1/bias"})
    assert shape == [-1, 8, 8, 8]
    assert nodes["model/mul"][1] == ["input"]
    assert all(each in nodes for _, inputs, _ in nodes.values() for each in inputs)


def test_tensorboards_own_message_reads_the_graph() -> None:
    messages = pytest.importorskip("tensorboard.compat.proto.graph_pb2", reason="TensorBoard is not installed")
    spec = {"inputs": {"x": ArraySpec((16, 16, 2))}, "targets": {"y": ArraySpec((), "int64", 2)}}
    found = TorchTasks().describe_with_graph(ProgramRequest(network="net.py", network_text=PAIRS, **spec))
    nodes = {node.name: node for node in messages.GraphDef.FromString(found.graph).node}
    assert {each["name"] for each in found.description["operations"]} <= set(nodes)
    (shape,) = nodes["model/conv1/conv2d_1"].attr["_output_shapes"].list.shape
    assert [side.size for side in shape.dim] == [-1, 4, 6, 6]


def test_the_graph_is_written_for_tensorboard(tmp_path: Path) -> None:
    found = describe({"network": "lenet", "backend": "torch", "tensorboard": str(tmp_path)})
    (file,) = tmp_path.iterdir()
    assert found["tensorboard"] == {"file": str(file), "problem": ""}
    assert b"model/conv1/conv2d" in file.read_bytes()


def test_a_graph_too_large_is_not_given_and_the_reason_said() -> None:
    operations = [Operation(f"{'x' * 500}{number}", "relu", (), (2, 3)) for number in range(2100)]
    assert graph_definition(operations, (2, 3))[1] == ""
    content, problem = graph_definition(operations, (2, 3), most_bytes=1 << 20)
    assert content == b""
    assert problem.startswith("The graph is 1.")
    assert problem.endswith("TensorBoard is given at most 1.0 MiB.")


def test_the_image_of_the_network_has_weights_at_its_scopes() -> None:
    found = graph_of(described(SMALL))
    assert found["weights"]["conv1/weight"] == 72
    assert [node["name"] for node in found["nodes"]][:3] == ["mul", "conv1/conv2d", "relu"]
    assert found["nodes"][1]["from"] == [0]
    np.testing.assert_equal(found["nodes"][1]["shape"], "N x 8 x 8 x 8")
