"""A served model answers as the studio does, and as `predict.py` of its export."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.unit.serving.conftest import Serve, grey, png
from ziggurat.serving.batcher import BatchLimits


def by_predict_py(export: Path, *files: Path) -> list[dict]:
    done = subprocess.run(
        [sys.executable, export / "predict.py", "--json", *files], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)["predictions"]


def test_images_are_answered_as_by_predict_py(exports: Path, serve: Serve, tmp_path: Path) -> None:
    client = serve(exports / "animals")
    large = np.random.default_rng(9).integers(0, 256, (31, 17, 3), dtype=np.uint8)
    for name, pixels in (("a.png", grey(1)), ("b.png", grey(2)), ("large.png", large)):
        (tmp_path / name).write_bytes(png(pixels))
    files = [tmp_path / name for name in ("a.png", "b.png", "large.png")]
    expected = by_predict_py(exports / "animals", *files)

    answer = client.post("/predict", files=[("image", (path.name, path.read_bytes())) for path in files])

    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert {key: found[key] for key in ("model", "version", "task", "failures")} == {
        "model": "animals",
        "version": "1",
        "task": "classification",
        "failures": [],
    }
    assert [each["file"] for each in found["predictions"]] == ["a.png", "b.png", "large.png"]
    for one, other in zip(found["predictions"], expected, strict=True):
        assert [each["class"] for each in one["classes"]] == [each["class"] for each in other["classes"]]
        np.testing.assert_allclose(
            [each["probability"] for each in one["classes"]], [each["probability"] for each in other["classes"]], 1e-5
        )
    for path, other in zip(files, expected, strict=True):  # at batch 1 the same bits
        alone = client.post("/predict", content=path.read_bytes(), headers={"content-type": "image/png"}).json()
        assert alone["predictions"][0]["classes"] == other["classes"]


def test_a_request_names_how_many_classes_it_wants(exports: Path, serve: Serve) -> None:
    client = serve(exports / "animals")

    answer = client.post("/predict", files={"image": ("a.png", png(grey(1)))}, data={"top": "1"})

    assert len(answer.json()["predictions"][0]["classes"]) == 1


def test_one_bad_file_does_not_spoil_the_others(exports: Path, serve: Serve) -> None:
    client = serve(exports / "animals")

    answer = client.post("/predict", files=[("image", ("bad.png", b"no image")), ("image", ("good.png", png(grey(1))))])

    assert answer.status_code == 200
    assert [each["file"] for each in answer.json()["predictions"]] == ["good.png"]
    assert [each["file"] for each in answer.json()["failures"]] == ["bad.png"]
    assert "cannot be read as an image" in answer.json()["failures"][0]["message"]


def test_rows_are_answered_as_by_predict_py(exports: Path, serve: Serve, tmp_path: Path) -> None:
    client = serve(exports / "rows")
    rows = [{"height": 1.5, "weight": -2}, {"height": None, "weight": 3}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))

    found = client.post("/predict", json={"rows": [*rows, [1.5, -2]]}).json()["predictions"]

    expected = by_predict_py(exports / "rows", tmp_path / "rows.json")
    assert [each["file"] for each in found] == ["1", "2", "3"]
    for one, other in zip(found, [*expected, expected[0]], strict=True):
        np.testing.assert_allclose(
            [each["probability"] for each in one["classes"]], [each["probability"] for each in other["classes"]], 1e-5
        )


def test_requests_that_share_a_batch_get_their_own_answers(exports: Path, serve: Serve) -> None:
    client = serve(exports / "rows")
    rows = np.random.default_rng(0).normal(size=(48, 2)).tolist()
    alone = [client.post("/predict", json={"rows": [row]}).json()["predictions"][0]["classes"] for row in rows]

    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda row: client.post("/predict", json={"rows": [row]}).json(), rows))

    for one, other in zip(together, alone, strict=True):
        classes = one["predictions"][0]["classes"]
        assert [each["class"] for each in classes] == [each["class"] for each in other]
        assert [each["probability"] for each in classes] == pytest.approx([each["probability"] for each in other])


def test_exact_gives_the_bits_of_a_sample_alone(exports: Path, serve: Serve) -> None:
    client = serve(exports / "rows", limits=BatchLimits(exact=True))
    rows = np.random.default_rng(0).normal(size=(8, 2)).tolist()
    alone = [client.post("/predict", json={"rows": [row]}).json()["predictions"][0]["classes"] for row in rows]

    together = client.post("/predict", json={"rows": rows}).json()["predictions"]

    assert [each["classes"] for each in together] == alone
    assert 'ziggurat_batch_samples_sum{model="rows"} 16' in client.get("/metrics").text


def test_tensors_go_in_and_out_by_the_open_inference_protocol(exports: Path, serve: Serve) -> None:
    client = serve(exports / "rows")
    assert client.get("/v2").json()["name"] == "ziggurat"
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/models/rows/ready").json() == {"ready": True}
    about = client.get("/v2/models/rows/versions/1").json()
    assert about["inputs"] == [{"name": "input", "datatype": "FP64", "shape": [-1, 2]}]
    assert about["outputs"] == [{"name": "probabilities", "datatype": "FP32", "shape": [-1, 3]}]

    tensor = {"name": "input", "datatype": "FP64", "shape": [2, 2]}
    flat = client.post("/v2/models/rows/infer", json={"id": "7", "inputs": [{**tensor, "data": [1, 2, 3.5, 4]}]})
    nested = client.post(
        "/v2/models/rows/versions/1/infer",
        json={"inputs": [{**tensor, "data": [[1, 2], [3.5, 4]]}], "outputs": [{"name": "probabilities"}]},
    )

    assert flat.json()["outputs"] == nested.json()["outputs"]
    assert (flat.json()["id"], flat.json()["model_name"], flat.json()["model_version"]) == ("7", "rows", "1")
    output = flat.json()["outputs"][0]
    assert (output["name"], output["datatype"], output["shape"]) == ("probabilities", "FP32", [2, 3])
    assert np.reshape(output["data"], (2, 3)).sum(axis=1) == pytest.approx([1, 1])


def test_several_models_have_paths_of_their_own(exports: Path, serve: Serve) -> None:
    client = serve(exports / "animals", exports / "rows")

    assert client.post("/models/rows/predict", json={"rows": [[1, 2]]}).status_code == 200
    refused = client.post("/predict", json={"rows": [[1, 2]]})
    assert (refused.status_code, "animals, rows" in refused.json()["error"]) == (404, True)
    assert [each["name"] for each in client.get("/").json()["models"]] == ["animals", "rows"]
    assert set(client.get("/openapi.json").json()["paths"]) >= {"/models/rows/predict", "/v2/models/animals/infer"}


def test_metrics_count_answers_and_batches(exports: Path, serve: Serve) -> None:
    client = serve(exports / "rows")
    client.post("/predict", json={"rows": [[1, 2], [3, 4]]})
    client.post("/predict", json={"rows": []})
    client.post("/models/other/predict", json={})

    text = client.get("/metrics").text

    for line in (
        'ziggurat_requests_total{model="rows",route="/predict",status="200"} 1',
        'ziggurat_requests_total{model="rows",route="/predict",status="422"} 1',
        'ziggurat_requests_total{model="",route="/models/{name}/predict",status="404"} 1',
        'ziggurat_batch_samples_sum{model="rows"} 2',
        'ziggurat_queue_samples{model="rows"} 0',
        'ziggurat_model_version{model="rows",version="1"} 1',
    ):
        assert line in text.splitlines()
