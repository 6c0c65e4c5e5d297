"""What strangers send is answered with 4xx and a reason, never with 500."""

from __future__ import annotations

import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.unit.serving.conftest import Serve, grey, png
from ziggurat.serving.batcher import BatchLimits

JSON = {"content-type": "application/json"}
TENSOR = {"name": "input", "datatype": "FP64", "shape": [1, 2], "data": [1, 2]}


def bomb() -> bytes:
    """Return a PNG file of some bytes that says it has 100,000 x 100,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


ROW_BODIES: list[tuple[str, Any, int]] = [
    ("nothing", b"", 422),
    ("no JSON", b"{", 422),
    ("deep", b'{"rows":' + b"[" * 100_000, 422),
    ("a long number", b'{"rows": [[' + b"9" * 5000 + b", 1]]}", 422),
    ("no UTF-8", b'{"rows": ["\xff"]}', 422),
    ("a list", [1], 422),
    ("no rows", {}, 422),
    ("null", {"rows": None}, 422),
    ("a text", {"rows": "x"}, 422),
    ("empty", {"rows": []}, 422),
    ("too many", {"rows": [[1, 2]] * 1001}, 422),
    ("other member", {"rows": [[1, 2]], "model": "x"}, 422),
    ("texts", {"texts": ["x"]}, 422),
    ("top of nothing", {"rows": [[1, 2]], "top": 0}, 422),
    ("top of a text", {"rows": [[1, 2]], "top": "5"}, 422),
    ("top of true", {"rows": [[1, 2]], "top": True}, 422),
    ("short row", {"rows": [[]]}, 422),
    ("long row", {"rows": [[1] * 50]}, 422),
    ("row of lists", {"rows": [[[1], {"a": 2}]]}, 422),
    ("row of texts", {"rows": [["x", "y"]]}, 422),
    ("row of booleans", {"rows": [[True, False]]}, 422),
    ("a number as row", {"rows": [7]}, 422),
    ("unknown column", {"rows": [{"size": 1}]}, 422),
    ("huge", {"rows": [[1e300, 10**400]]}, 422),
    ("not a number", b'{"rows": [[NaN, Infinity]]}', 422),
    ("lone surrogate", b'{"rows": [["\\ud800", 1]]}', 422),
]


@pytest.mark.parametrize(("body", "status"), [pytest.param(*each[1:], id=each[0]) for each in ROW_BODIES])
def test_rows_that_cannot_be_used(exports: Path, serve: Serve, body: Any, status: int) -> None:
    client = serve(exports / "rows")
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    answer = client.post("/predict", content=content, headers=JSON)

    assert answer.status_code == status, answer.text
    assert answer.json()["error"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "x"}, "one input, `input`"),
        ({"name": None}, "one input"),
        ({"datatype": "FP32"}, "is FP64"),
        ({"shape": [2]}, "has the shape"),
        ({"shape": [1, 3]}, "has the shape"),
        ({"shape": [0, 2], "data": []}, "1 to 1000 samples"),
        ({"shape": [-1, 2]}, "1 to 1000 samples"),
        ({"shape": [10**30, 2]}, "1 to 1000 samples"),
        ({"shape": [True, 2]}, "has the shape"),
        ({"shape": None}, "has the shape"),
        ({"data": [1]}, "must have 2 numbers"),
        ({"data": [[1, 2], [3]]}, "must have 2 numbers"),
        ({"data": ["1", "2"]}, "must be numbers"),
        ({"data": [None, 1]}, "must be numbers"),
        ({"data": [10**400, 1]}, "must be numbers"),
        ({"data": [True, False]}, "must be numbers"),
        ({"data": {"b64": ""}}, "must have 2 numbers"),
        ({"data": [float("nan"), 1]}, "finite"),
        ({"data": [float("inf"), 1]}, "finite"),
    ],
)
def test_tensors_that_cannot_be_used(exports: Path, serve: Serve, change: dict[str, Any], said: str) -> None:
    client = serve(exports / "rows")

    body = json.dumps({"inputs": [{**TENSOR, **change}]})
    answer = client.post("/v2/models/rows/infer", content=body, headers=JSON)

    assert answer.status_code == 422, answer.text
    assert said in answer.json()["error"]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"inputs": []},
        {"inputs": [TENSOR, TENSOR]},
        {"inputs": ["x"]},
        {"inputs": [TENSOR], "outputs": [{"name": "x"}]},
        {"inputs": [TENSOR], "outputs": "x"},
        {"inputs": [TENSOR], "outputs": [{"name": ["x"]}]},
        {"inputs": [TENSOR], "id": 7},
    ],
)
def test_requests_without_sound_tensors(exports: Path, serve: Serve, content: Any) -> None:
    assert serve(exports / "rows").post("/v2/models/rows/infer", json=content).status_code == 422


def test_numbers_that_a_model_cannot_compute_are_no_500(exports: Path, serve: Serve) -> None:
    client = serve(exports / "rows")

    answer = client.post("/v2/models/rows/infer", json={"inputs": [{**TENSOR, "data": [1e300, -1e300]}]})

    assert answer.status_code == 200  # float32 overflows: NaN, for which JSON has no word
    assert answer.json()["outputs"][0]["data"] == [None] * 3


IMAGES: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("noise", bytes(range(256))),
    ("cut", png(np.zeros((64, 64), np.uint8))[:-40]),
    ("bomb", bomb()),
    ("script", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n"),
    ("vector", b'<svg xmlns="http://www.w3.org/2000/svg"/>'),
]


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in IMAGES])
def test_images_that_cannot_be_read(exports: Path, serve: Serve, data: bytes) -> None:
    client = serve(exports / "animals")

    for answer in (
        client.post("/predict", files={"image": ("x.png", data)}),
        client.post("/predict", content=data, headers={"content-type": "image/png"}),
    ):
        assert answer.status_code == 422, answer.text
        assert answer.json()["failures"][0]["error"] == "datapoint"


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
def test_images_of_every_mode_are_answered(exports: Path, serve: Serve, mode: str) -> None:
    file = io.BytesIO()
    Image.new(mode, (9, 5)).save(file, "TIFF")

    answer = serve(exports / "animals").post("/predict", files={"image": ("x.tif", file.getvalue())})

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "text/html"}, b"<p>", 415),
        ({}, b"x", 415),
        (JSON, b'{"rows": [[1, 2]]}', 415),
        ({"content-type": "multipart/form-data"}, b"x", 422),
        ({"content-type": "multipart/form-data; boundary=x"}, b"no part", 422),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x\r\n\r\n--x--", 422),
        ({"content-type": "multipart/form-data; boundary=\xff"}, b"--\xff", 422),
        ({"content-type": "image/png", "content-length": "x"}, b"", 422),
    ],
)
def test_bodies_of_other_types(exports: Path, serve: Serve, headers: dict[str, str], body: bytes, status: int) -> None:
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]

    answer = serve(exports / "animals").post("/predict", content=body, headers=encoded)

    assert answer.status_code == status, answer.text


def test_fields_that_a_form_must_not_have(exports: Path, serve: Serve) -> None:
    client, image = serve(exports / "animals"), {"image": ("x.png", png(grey(0)))}
    for data in (
        {"top": "x"},
        {"top": "0"},
        {"top": "9" * 50},
        {"path": "/etc/passwd"},
        {f"f{n}": "" for n in range(30)},
    ):
        assert client.post("/predict", files=image, data=data).status_code == 422


def test_a_body_that_is_too_large_is_refused_before_it_is_read(exports: Path, serve: Serve) -> None:
    client = serve(exports / "animals", max_body_bytes=1000)
    sent: list[int] = []

    def parts() -> Any:
        for number in range(100):
            sent.append(number)
            yield b"x" * 100

    told = client.post("/predict", content=b"", headers={"content-type": "image/png", "content-length": "1000000"})
    chunked = client.post("/predict", content=parts(), headers={"content-type": "image/png"})

    assert (told.status_code, told.headers["connection"]) == (413, "close")
    assert chunked.status_code == 413
    assert client.post("/predict", files={"image": ("x.png", png(grey(0)))}).status_code == 200


def test_other_paths_and_methods(exports: Path, serve: Serve) -> None:
    client = serve(exports / "rows")
    assert client.get("/predict").status_code == 405
    assert client.put("/v2/models/rows/infer").status_code == 405
    assert client.get("/v2/models/other").status_code == 404
    assert client.get("/v2/models/rows/versions/2").status_code == 404
    assert client.get("/nothing").json() == {"error": "Not Found"}


def test_a_full_queue_says_when_to_try_again(exports: Path, serve: Serve) -> None:
    from concurrent.futures import ThreadPoolExecutor

    client = serve(exports / "rows", limits=BatchLimits(max_samples=1))
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: client.post("/predict", json={"rows": [[1, 2]]}), range(64)))

    assert {each.status_code for each in answers} <= {200, 429}
    assert all(each.headers["retry-after"].isdigit() for each in answers if each.status_code == 429)


def test_a_model_that_is_loading_is_503(exports: Path, serve: Serve) -> None:
    # The application is asked without its start: nothing loads.
    from starlette.testclient import TestClient

    from ziggurat.serving.server import ServeOptions, make_app

    client = TestClient(make_app([str(exports / "rows")], exports, ServeOptions()).asgi())

    for answer in (
        client.post("/predict", json={"rows": [[1, 2]]}),
        client.get("/v2/health/ready"),
        client.get("/v2/models/rows/ready"),
    ):
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert client.get("/v2/health/live").status_code == 200
    assert client.get("/metrics").status_code == 200
