"""A server of models in this process, over small exports."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from tests.exported_model import SIDE, make_export
from tests.waiting import wait_until

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from ziggurat.serving.server import ServeOptions, make_app


def png(pixels: np.ndarray) -> bytes:
    """Return an image as a PNG file."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def grey(seed: int) -> np.ndarray:
    """Return an image that the model takes as it is, (4, 4) uint8."""
    return np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE), dtype=np.uint8)


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export for images and one for rows."""
    folder = tmp_path_factory.mktemp("exports")
    make_export(folder / "animals")
    make_export(folder / "rows", kind="table")
    return folder


Serve = Callable[..., TestClient]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Return what serves models until the test ends."""
    with ExitStack() as stack:

        def start(*words: Any, workspace: Path = tmp_path, wait: bool = True, **options: Any) -> TestClient:
            errors: list[Exception] = []
            app = make_app([str(word) for word in words], workspace, ServeOptions(**options), errors.append)
            client = stack.enter_context(TestClient(app.asgi(), raise_server_exceptions=False))
            if wait:
                wait_until(
                    lambda: bool(errors) or client.get("/v2/health/ready").status_code == 200, what="it is ready"
                )
            if errors:
                raise errors[0]
            return client

        yield start
