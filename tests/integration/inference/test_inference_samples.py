"""A warm network is asked for rows of a table, and for samples of the data that it was trained on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from inference_jobs import digits_job, train

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.errors import ConfigurationError, UsageError, ZigguratError
from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool
from ziggurat.worker.commands.prediction import predict


@pytest.fixture(scope="module")
def pool() -> Iterator[InferencePool]:
    with InferencePool(INFERENCE_COMMAND, os.environ) as made:
        yield made


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a job that learned a price from two columns."""
    folder = tmp_path_factory.mktemp("prices")
    random = np.random.default_rng(5)
    sizes, kinds = random.uniform(10, 90, 120), random.integers(0, 2, 120)
    rows = (f"{size:.2f},{'new' if kind else 'old'},{3 * size + 20 * kind:.2f}" for size, kind in zip(sizes, kinds))
    (folder / "prices.csv").write_text("\n".join(["size,kind,price", *rows]))
    rule = SplitRule(val_share=0.25)
    options = {"target": "price"}
    request = CreationRequest(source=str(folder / "prices.csv"), name="prices", rule=rule, workers=0, options=options)
    create_dataset(request, folder / "dataset")
    changes = {"data": str(folder / "dataset"), "backend": "null", "learning_rate": 0.05, "epochs": 10}
    return train("table_linear", **changes)


def test_warm_rows_are_those_of_the_shell(pool: InferencePool, priced: Path) -> None:
    rows = [
        {"size": 50.0, "kind": "new"},
        {"size": None, "kind": "strange"},
        {"size": "large", "kind": "new"},
        [12, "old"],
    ]
    cold = predict({"folder": str(priced), "rows": rows})
    warm = pool.predict_values(priced, None, {"rows": rows}, drawn=True)

    assert [each.pop("picture") for each in warm["predictions"]] == [None, None, None]
    assert warm["predictions"] == cold["predictions"]
    assert [each["file"] for each in warm["predictions"]] == ["1", "2", "4"]
    assert [each["file"] for each in warm["failures"]] == ["3"]
    with pytest.raises(UsageError, match="`texts` are given to a network that takes "):
        pool.predict_values(priced, None, {"texts": ["x"]})
    with pytest.raises(ZigguratError, match="This needs a network that takes images"):
        pool.predict(priced, None, [("a.png", b"")])


def test_samples_of_the_data_are_predicted_again(pool: InferencePool, priced: Path) -> None:
    found = pool.samples(priced, None, "val", [0, 2, 999])

    assert [each["row"] for each in found["samples"]] == [0, 2]
    assert [each["drawn"] for each in found["samples"]] == [{}, {}]
    assert found["failures"][0]["row"] == 999
    assert found["samples"][0]["values"][0]["name"] == "price"
    with pytest.raises(ConfigurationError, match="split of this data"):
        pool.samples(priced, None, "nothing", [0])
    with pytest.raises(UsageError, match="at most 64 rows"):
        pool.samples(priced, None, "val", list(range(65)))


def test_images_come_as_the_network_gets_them(pool: InferencePool) -> None:
    ok, content = cv2.imencode(".png", np.arange(40 * 40, dtype=np.uint16).astype(np.uint8).reshape(40, 40))
    assert ok
    answer = pool.predict(digits_job(), None, [("a.png", content.tobytes())], drawn=True)
    assert answer["predictions"][0]["picture"] is None, "a class is no image"
    assert "input" not in answer["predictions"][0]
