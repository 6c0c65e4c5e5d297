"""The page for a new model looks at networks: what it shows of one that works, and of code that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ziggurat.app import create_studio
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio
from ziggurat.workspace.studio.networks import network_text

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_studio(Settings(workspace=tmp_path_factory.mktemp("studio") / "workspace"), start=False) as studio:
        yield create_studio(studio)


def _look(app: Any, how: str, **sent: str) -> str:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 40000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
            return await client.post(f"/models/new/{how}", data=sent, headers=headers)

    answer = asyncio.run(ask())
    assert answer.status_code == 200
    return answer.text


def test_a_standard_network_is_shown_without_a_script(app: Any) -> None:
    page = _look(app, "visualize", method="standard", standard_network="tensorflow/lenet", dataset="digits")
    assert "431,080" in page
    assert "N x 24 x 24 x 20" in page
    assert "&#34;name&#34;:&#34;fc2/MatMul&#34;" in page
    assert "<td>conv1</td>" in page


def test_a_batch_is_run_line_by_line(app: Any) -> None:
    text = network_text("lenet", "tensorflow")
    page = _look(app, "debug", method="custom", network_text=text, dataset="digits")
    assert "A batch of handwritten digits" in page
    assert "<code>slim.max_pool2d</code>" in page
    assert "16 x 500" in page


@pytest.mark.parametrize(
    ("change", "line", "sentence"),
    [
        (("def inference(self):", "def inference(self:"), 6, "SyntaxError: &#39;(&#39; was never closed."),
        (("slim.flatten(", "slim.flaten("), 18, "Did you mean <code>slim.flatten</code>"),
        (("self.nclasses", "self.nclases"), 21, "Did you mean <code>self.nclasses</code>?"),
        (("self.x * 0.0125", "tf.matmul(self.x, self.x)"), 8, "ValueError"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(app: Any, change: tuple[str, str], line: int, sentence: str) -> None:
    text = network_text("lenet", "tensorflow").replace(*change)
    page = _look(app, "visualize", method="custom", network_text=text, dataset="digits")
    assert f'data-line="{line}"' in page
    assert f"Line {line}: " in page
    assert sentence in page
    assert str(Path(__file__).parents[2] / "src") not in page, "no file of the program is shown"


@pytest.mark.nightly
def test_code_that_ends_or_never_ends_leaves_the_studio_alone(app: Any) -> None:
    ended = _look(app, "visualize", method="custom", network_text="import os\nos._exit(3)\n", dataset="digits")
    assert "the process ended by itself (exit code 3)" in ended
    endless = _look(
        app,
        "visualize",
        method="custom",
        network_text="while True:\n    pass\n",
        dataset="digits",
        look_limit_s="12",
    )
    assert "it ran longer than 12 s" in endless
