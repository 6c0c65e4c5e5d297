"""Images that stay uint8 on their way to a backend that makes float32 of them: the same numbers, a quarter of them."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from ziggurat.specs import parse_spec
from ziggurat.worker.build import data_of, data_options
from ziggurat.worker.context import new_context
from ziggurat.worker.pipeline import Pipeline
from ziggurat.worker.source import open_source

CASES = {
    "plain": ({}, {}, np.uint8),
    "crops that are decoded alone": ({"size": [24, 24], "crop": 16}, {}, np.uint8),
    "crops of varied images": ({"size": [24, 24], "crop": 16}, {"rotation_deg": 10}, np.uint8),
    "less a mean": ({"mean": "pixel"}, {}, np.float32),
    "whitened": ({"whitening": True}, {}, np.float32),
    "mixed": ({}, {"mixup": 0.2}, np.float32),
}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for number in range(24):
        place = folder / f"class{number % 2}"
        place.mkdir(exist_ok=True)
        cv2.imwrite(str(place / f"{number}.jpg"), random.integers(0, 256, (40, 32, 3), np.uint8))
    return folder


def spec_of(pictures, preprocessing, augmentation, backend="torch"):
    return parse_spec(
        {
            "kind": "train",
            "version": 1,
            "backend": backend,
            "network": "lenet",
            "data": {"source": str(pictures), "options": {"validation_share": 0}},
            "batch_size": 4,
            "preprocessing": {"size": [20, 20], **preprocessing},
            "augmentation": {"flip": "fliplr", **augmentation},
            "loading": {"workers": 1},
        }
    )


@pytest.mark.parametrize("name", CASES)
def test_batches_are_the_same_numbers(pictures, name) -> None:
    preprocessing, augmentation, kind = CASES[name]
    spec = spec_of(pictures, preprocessing, augmentation)
    source = open_source(spec.data.source, spec.data.options, spec.seed)
    found = {}
    for keeps in (False, True):
        options = replace(data_options(spec), uint8_images=keeps)
        with Pipeline(source, options, new_context(source, options)).training().last as flow:
            found[keeps] = [[np.array(part) for part in batch] for batch in flow]
    assert len(found[True]) == 6
    assert {batch[0].dtype for batch in found[True]} == {np.dtype(kind)}
    assert {batch[0].dtype for batch in found[False]} == {np.dtype(np.float32)}
    for batch, expected in zip(found[True], found[False], strict=True):
        for part, wanted in zip(batch, expected, strict=True):
            np.testing.assert_array_equal(part, wanted)


def test_a_job_keeps_them_where_its_backend_takes_them(pictures) -> None:
    for backend, kind in (("torch", np.uint8), ("null", np.float32)):
        data = data_of(spec_of(pictures, {}, {}, backend))
        with data.train as flow:
            assert next(iter(flow))[0].dtype == kind
        assert data.decodes
