"""Pipeline of a job: crops of JPEG files are decoded by themselves, and nothing about workers changes a batch."""

import json

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.fast import JpegCropBatches
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.specs import parse_spec
from ziggurat.worker.build import data_of, data_options
from ziggurat.worker.context import new_context
from ziggurat.worker.pipeline import Pipeline
from ziggurat.worker.source import open_source

CROPS = {"size": [40, 48], "crop": 32}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Thirty smooth JPEG files in two classes, of various sizes."""
    source = tmp_path_factory.mktemp("pipeline") / "photographs"
    random = np.random.default_rng(8)
    for number in range(30):
        path = source / ("cat", "dog")[number % 2] / f"{number:02d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = random.integers(0, 256, (5, 6, 3), np.uint8)
        picture = cv2.resize(coarse, (100 + number, 90 + 2 * number), interpolation=cv2.INTER_CUBIC)
        path.write_bytes(encode_image(picture))
    return source


def spec_of(source, **fields):
    data = {"source": str(source), "options": {"validation_share": 0, "on_error": "skip"}}
    whole = {"kind": "train", "version": 1, "network": "mlp", "data": data, "batch_size": 6, "seed": 3}
    return parse_spec({**whole, "preprocessing": CROPS, **fields})


def pipeline_of(spec):
    source = open_source(spec.data.source, spec.data.options, spec.seed)
    return Pipeline(source, data_options(spec), new_context(source, data_options(spec)))


def batches_of(spec, passes=2):
    with data_of(spec).train as train:
        return [batch for _ in range(passes) for batch in train]


def equal(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a, b) for pair in zip(one, other, strict=True) for a, b in zip(*pair, strict=True)
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"augmentation": {"flip": "fliplr"}}, True),
        ({"preprocessing": {**CROPS, "resize_mode": "crop", "mean": "pixel"}}, True),
        ({"loading": {"decode": "picture"}}, False),
        ({"preprocessing": {"size": [40, 48]}}, False),
        ({"preprocessing": {**CROPS, "channels": 1}}, False),
        ({"preprocessing": {**CROPS, "mean": "image"}}, False),
        ({"preprocessing": {**CROPS, "resize_mode": "fill"}}, False),
        ({"augmentation": {"rotation_deg": 10}}, False),
        ({"augmentation": {"flip": "flipud"}}, False),
    ],
)
def test_crops_are_decoded_where_a_box_is_enough(folder, fields, expected):
    pipeline = pipeline_of(spec_of(folder, **fields))
    assert pipeline.decodes_crops is expected
    assert isinstance(pipeline.training().batches, JpegCropBatches) is expected


def test_crops_of_png_files_are_cut_from_the_picture(folder, tmp_path):
    for path in folder.rglob("*.jpg"):
        target = tmp_path / path.parent.name / f"{path.stem}.png"
        target.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(target), cv2.imread(str(path)))
    assert not pipeline_of(spec_of(tmp_path)).decodes_crops


def test_decoded_crops_are_crops_of_the_scaled_picture(folder):
    spec = spec_of(folder, shuffle=False)
    (images, labels) = batches_of(spec, 1)[0]
    assert images.shape == (6, 32, 32, 3)
    assert images.dtype == np.float32
    assert labels.dtype == np.int64
    fitted = [
        point[0].astype(np.float32) for point, _ in zip(pipeline_of(spec).fitted("train"), range(6), strict=False)
    ]
    for image, whole in zip(images, fitted, strict=True):
        places = [(top, left) for top in range(9) for left in range(17)]
        least = min(np.abs(whole[top : top + 32, left : left + 32] - image).mean() for top, left in places)
        assert least < 5  # a side of the box is rounded to whole pixels of the file


@pytest.mark.parametrize("fields", [{}, {"augmentation": {"noise": 0.1, "scale": 0.1}}], ids=["crops", "whole images"])
@pytest.mark.parametrize(
    "loading",
    [{"workers": 1, "prefetch": 1}, {"workers": 3, "prefetch": 4}, {"workers": 2, "worker_kind": "processes"}],
    ids=["one thread", "threads", "processes"],
)
def test_workers_and_prefetch_do_not_change_the_batches(folder, fields, loading):
    assert equal(batches_of(spec_of(folder, loading=loading, **fields)), batches_of(spec_of(folder, **fields)))


@pytest.mark.parametrize("stop", [0, 1, 4, 5, 6])
@pytest.mark.parametrize("prefetch", [1, 4])
def test_a_run_goes_on_after_what_was_consumed(folder, stop, prefetch):
    spec = spec_of(folder, loading={"prefetch": prefetch})
    expected = batches_of(spec, 3)
    with data_of(spec).train as train, data_of(spec).train as resumed:
        before = []
        items = iter(train)
        for _ in range(stop):
            if (batch := next(items, None)) is None:
                items = iter(train)
                batch = next(items)
            before.append(batch)
        resumed.load_state(json.loads(json.dumps(train.state())))
        after = [batch for _ in range(2) for batch in resumed]
    assert equal(before + after, expected[: stop + len(after)])


def test_batches_stay_full_where_a_file_is_damaged(folder, tmp_path):
    for path in folder.rglob("*.jpg"):
        target = tmp_path / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes()[: 300 if path.stem in ("04", "11") else None])
    assert [len(images) for images, _ in batches_of(spec_of(tmp_path), 1)] == [6] * 5


def test_kept_batches_stay_as_they_are(folder):
    spec = spec_of(folder)
    with data_of(spec).train as train:
        copies = [[part.copy() for part in batch] for batch in train]
    assert equal(batches_of(spec, 1), copies)


def test_a_job_of_0_1_goes_on_with_whole_pictures(folder):
    new = spec_of(folder)
    written = new.model_dump(mode="json")
    del written["loading"]
    old = parse_spec(written, is_stored=True)
    assert (old.loading.decode, new.loading.decode) == ("picture", "crop")
    state = data_of(old).train.state()
    stages = []
    while state:
        stages.append(state["stage"])
        state = next(iter(state["children"]), None)
    assert stages == ["MapData", "BatchData", "MultiThreadMapData", "_Keyed"]  # as in its checkpoints
