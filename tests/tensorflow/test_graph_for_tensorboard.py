"""The graph of a network that is not trained is written for TensorBoard: what is in it, and when there is none."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tensorflow_networks import SMALL

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.api.app import create_app
from ziggurat.backends.tensorflow.describe import graph_for_tensorboard
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.cli.main import main
from ziggurat.errors import NetworkCodeError
from ziggurat.settings import Settings
from ziggurat.worker.commands.networks import describe
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.bootstrap import open_studio
from ziggurat.workspace.studio.network_graphs import GRAPHS_FOLDER

pytestmark = pytest.mark.tensorflow


def graph_in(file: Path) -> Any:
    """Return the ``GraphDef`` of an event file, as TensorFlow itself reads it; it checks every checksum."""
    events = list(tf.train.summary_iterator(str(file)))
    assert events[0].file_version == "brain.Event:2"
    assert [event.WhichOneof("what") for event in events] == ["file_version", "graph_def"]
    return tf.GraphDef.FromString(events[1].graph_def)


def test_the_file_has_the_scopes_of_the_network_in_every_stage(tmp_path: Path) -> None:
    folder = tmp_path / "of a person's ünusual name" / "run"
    path = tmp_path / "mine.py"
    path.write_text(SMALL)
    found = describe({"network": str(path), "tensorboard": str(folder)})
    (file,) = folder.iterdir()
    assert found.pop("tensorboard") == {"file": str(file), "problem": ""}
    assert found == describe({"network": str(path)})
    nodes = {node.name: node for node in graph_in(file).node}
    for stage in ("train/tower_0", "val", "inf"):
        assert f"{stage}/model/conv1/Conv2D" in nodes
        assert f"{stage}/model/fc1/MatMul" in nodes
    assert "model/conv1/weights" in nodes
    assert any(name.startswith("gradients") for name in nodes)
    shape = nodes["val/model/conv1/Conv2D"].attr["_output_shapes"].list.shape[0]
    assert [side.size for side in shape.dim] == [-1, 28, 28, 8]


def test_large_constants_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    large = "LARGE = np.random.RandomState(0).rand(1_000_000).astype('float32')\n"
    path.write_text(large + SMALL.replace("net = slim.flatten(net)", "net = slim.flatten(net) + tf.reduce_sum(LARGE)"))
    found = describe({"network": str(path), "tensorboard": str(tmp_path / "tb")})
    file = Path(found["tensorboard"]["file"])
    assert file.stat().st_size < 1_000_000
    assert b"(left out)" in [node.attr["value"].tensor.tensor_content for node in graph_in(file).node]


def test_a_graph_too_large_is_not_written_and_the_reason_said() -> None:
    with tf.Graph().as_default() as graph:
        tf.constant(np.random.RandomState(0).rand(300, 1024).astype(np.float32), name="large")
        assert graph_for_tensorboard(graph)[1] == ""
        content, problem = graph_for_tensorboard(graph, most_constant_bytes=1 << 20)
        assert content == b""
        assert problem == "The constants of the network are 1.2 MiB large; TensorBoard is given at most 1.0 MiB."
        for number in range(2000):
            tf.placeholder(tf.float32, name=f"{'x' * 500}{number}")
        content, problem = graph_for_tensorboard(graph, most_bytes=1 << 20)
        assert content == b""
        assert problem == "The graph is 1.1 MiB large; TensorBoard is given at most 1.0 MiB."


def test_an_unwritable_folder_hides_nothing_of_the_network(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = describe({"network": "lenet", "tensorboard": str(tmp_path / "file")})
    assert found["parameters"] == 431_080
    assert found["tensorboard"]["file"] is None
    assert f"cannot be written into {tmp_path / 'file'}: " in found["tensorboard"]["problem"]


def test_the_shell_writes_it_into_a_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "the graph"
    assert main(["--json", "graph", "lenet", "--tensorboard", str(folder)]) == 0
    (file,) = folder.iterdir()
    assert json.loads(capfd.readouterr().out)["tensorboard"] == {"file": str(file), "problem": ""}
    assert "val/model/conv1/Conv2D" in [node.name for node in graph_in(file).node]
    (tmp_path / "file").write_text("")
    assert main(["graph", "lenet", "--tensorboard", str(tmp_path / "file" / "below")]) == 3
    said = capfd.readouterr()
    assert "multiply-adds a sample" in said.out
    assert "TensorBoard cannot show the graph:" in said.err


# ---- in the studio


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with open_studio(Settings(workspace=tmp_path_factory.mktemp("studio") / "workspace"), start=False) as opened:
        yield opened


@pytest.mark.nightly
def test_two_at_once_each_get_their_own(studio: Studio) -> None:
    found: dict[str, Any] = {}

    def look(scope: str) -> None:
        found[scope] = studio.graphs.describe(text=SMALL.replace("conv1", scope))

    scopes = ("left", "right")
    threads = [threading.Thread(target=look, args=(scope,)) for scope in scopes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for scope, other in (scopes, scopes[::-1]):
        assert found[scope]["tensorboard"]["problem"] == ""
        folder = studio.root / GRAPHS_FOLDER / found[scope]["tensorboard"]["graph"] / "tb" / "network"
        names = "\n".join(node.name for node in graph_in(next(folder.iterdir())).node)
        assert f"val/model/{scope}/Conv2D" in names
        assert f"/{other}/" not in names


def test_the_rest_api_says_where_it_is(studio: Studio) -> None:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(studio, prefix="/ziggurat"), client=("127.0.0.1", 40000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            sent = {"network": "lenet", "tensorboard": True}
            return await client.post("/ziggurat/api/v1/networks/describe", json=sent)

    found = asyncio.run(ask()).json()
    assert found["parameters"] == 431_080
    place = found["tensorboard"]["address"].removeprefix("/ziggurat/models/graphs/")
    assert found["tensorboard"] == {"address": f"/ziggurat/models/graphs/{place}", "problem": ""}
    studio.graphs.check(place)


def test_of_a_network_that_cannot_be_built_nothing_stays(studio: Studio) -> None:
    before = set((studio.root / GRAPHS_FOLDER).glob("*"))
    with pytest.raises(NetworkCodeError, match=r"Did you mean `slim\.flatten`") as caught:
        studio.graphs.describe(text=SMALL.replace("slim.flatten(net)", "slim.flaten(net)"))
    assert caught.value.details["line"] == SMALL[: SMALL.index("slim.flatten")].count("\n") + 1
    assert set((studio.root / GRAPHS_FOLDER).glob("*")) == before
