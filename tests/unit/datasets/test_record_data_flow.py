"""Training reads a dataset as a flow: datapoints by kind, any order, and a stop anywhere that leaves no trace."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import cv2
import numpy as np
import pytest
from small_datasets_for_versions import (
    ANIMALS,
    animals,
    datasets_are_closed,  # noqa: F401
    one_of_each_kind,
    picture,
    png,
    refer_to,
    write_dataset,
)

from ziggurat.dataflow import BatchData
from ziggurat.dataflow.record_data import RecordData
from ziggurat.datasets.versions import Exclude, Relabel, make_version
from ziggurat.errors import DataError, DatapointError, UnknownNameError, UsageError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema

MASK = np.array([[0, 1], [2, 255]], np.uint8)
DATAPOINTS = {
    "image-classification": [picture(1), 1],
    "image-regression": [picture(1), np.array([2, 3.25], np.float32)],
    "detection": [picture(1), np.zeros((0, 4), np.float32), np.zeros(0, np.int64)],
    "segmentation": [picture(1), MASK],
    "image-to-image": [picture(1), picture(4)],
    "image-pairs": [picture(1), picture(4), 0],
    "table": [[1.5, "dog"], 1],
    "text-classification": ["a b", 1],
    "generic": [np.arange(4.0), [1, 2]],
}


def close(flow, values):
    """Close a flow, and return what was made of it before."""
    flow.close()
    return values


@pytest.mark.parametrize("kind", DATAPOINTS)
def test_a_datapoint_of_every_kind(kind, tmp_path):
    schema, form, samples = one_of_each_kind()[kind]
    write_dataset(tmp_path / "a", {"train": samples}, schema, image=form)
    flow = RecordData(tmp_path / "a")
    points = close(flow, list(flow))
    assert len(points) == len(flow) == 3
    np.testing.assert_equal(points[1], DATAPOINTS[kind])
    assert [getattr(part, "dtype", None) for part in points[1]] == [
        getattr(part, "dtype", None) for part in DATAPOINTS[kind]
    ]
    record = RecordData(tmp_path / "a", content="record")
    np.testing.assert_equal(close(record, list(record))[2], list(samples[2]))


def test_objects_become_boxes_and_classes(tmp_path):
    schema, form, samples = one_of_each_kind()["detection"]
    write_dataset(tmp_path / "a", {"train": samples}, schema, image=form)
    flow = RecordData(tmp_path / "a")
    _, boxes, classes = close(flow, flow.datapoint(0))
    np.testing.assert_array_equal(boxes, [[1, 1, 3.5, 4], [3, 1, 5.5, 4]])
    assert (boxes.dtype, classes.tolist()) == (np.float32, [0, 2])


def test_pictures_come_as_asked_for(tmp_path):
    write_dataset(tmp_path / "a", {"train": animals(2)})
    grey = RecordData(tmp_path / "a", channels=1)
    assert close(grey, grey.datapoint(0))[0].shape == (6, 8, 1)
    encoded = RecordData(tmp_path / "a", content="bytes")
    assert close(encoded, encoded.datapoint(1)) == [png(picture(1)), 1]
    raw = [("x", (picture(3),), 2)]
    write_dataset(tmp_path / "b", {"train": raw}, image=ImageForm(encoding="raw", channels=3))
    arrays = RecordData(tmp_path / "b", content="bytes")
    np.testing.assert_array_equal(close(arrays, arrays.datapoint(0))[0], picture(3))
    assert RecordData(tmp_path / "a").class_names == ("cat", "dog", "owl")


def test_one_picture_alone_is_its_own_target(tmp_path):
    schema = Schema(kind="image-to-image", parts=("image",))
    write_dataset(tmp_path / "a", {"train": [("x", (png(picture(0)),), None)]}, schema)
    flow = RecordData(tmp_path / "a")
    image, target = close(flow, flow.datapoint(0))
    np.testing.assert_array_equal(image, target)


def test_masks_of_many_classes_keep_16_bits(tmp_path):
    mask = np.array([[0, 300], [65_535, 1]], np.uint16)
    samples = [("good", (png(picture(0)), png(mask)), None), ("colour", (png(picture(0)), png(picture(1))), None)]
    schema = Schema(kind="segmentation", class_names=("a",))
    write_dataset(tmp_path / "a", {"train": samples}, schema)
    flow = RecordData(tmp_path / "a")
    np.testing.assert_array_equal(flow.datapoint(0)[1], mask)
    with pytest.raises(DatapointError, match=r"'colour' .* no image of one channel"):
        flow.datapoint(1)
    flow.close()


def test_shuffling_is_a_new_order_of_all_in_every_pass(tmp_path):
    write_dataset(tmp_path / "a", {"train": animals(20), "val": animals(3, first=20)})
    flow = RecordData(tmp_path / "a", shuffle=True, content="record").seed(5)
    passes = [[key for key, _, _ in flow] for _ in range(2)]
    again = RecordData(tmp_path / "a", shuffle=True, content="record").seed(5)
    assert close(again, [key for key, _, _ in again]) == passes[0]
    assert sorted(passes[0]) == sorted(passes[1]) == [f"{number:02d}.png" for number in range(20)]
    assert passes[0] != passes[1] != sorted(passes[1])
    val = RecordData(tmp_path / "a", "val", content="record")
    assert close(val, [key for key, _, _ in val]) == ["20.png", "21.png", "22.png"]
    flow.close()


@pytest.mark.parametrize("stopped_after", [0, 1, 3, 6])
def test_a_pass_that_was_stopped_goes_on_exactly(stopped_after, tmp_path):
    dataset = write_dataset(tmp_path / "a", {"train": animals(14)}, per_store=4)
    make_version(dataset, [Exclude("train", [3, 9]), Relabel("train", [0, 5], "owl")], tmp_path / "b")

    def batches():
        return BatchData(RecordData(tmp_path / "b", shuffle=True), 2).seed(3)

    whole = batches()
    expected = [[images.tolist(), labels.tolist()] for _ in range(2) for images, labels in whole]
    assert len(expected) == 12
    first = batches()
    items = iter(first)
    for _ in range(stopped_after):
        next(items)
    state = first.state()
    second = batches()
    second.load_state(state)
    rest = [[images.tolist(), labels.tolist()] for images, labels in second]
    rest += [[images.tolist(), labels.tolist()] for images, labels in second]
    assert rest == expected[stopped_after:]
    for flow in (whole, first, second):
        flow.close()


def test_a_version_is_what_training_sees(tmp_path):
    dataset = write_dataset(tmp_path / "a", {"train": animals(4)})
    make_version(dataset, [Relabel("train", [1], "owl"), Exclude("train", [0])], tmp_path / "b")
    flow = RecordData(tmp_path / "b")
    assert close(flow, [label for _, label in flow]) == [2, 2, 0]


def test_bad_samples_follow_the_policy(tmp_path):
    samples = [*animals(2), ("bad", (b"no image",), 0), *animals(1, first=2)]
    write_dataset(tmp_path / "a", {"train": samples})
    flow = RecordData(tmp_path / "a")
    with pytest.raises(DatapointError, match="'bad'"):
        list(flow)
    flow.close()
    skipping = RecordData(tmp_path / "a", on_error="skip")
    assert close(skipping, [label for _, label in skipping]) == [0, 1, 2]
    assert skipping.policy.counts().total == 1


def test_a_referenced_file_that_changed_is_a_bad_sample(tmp_path):
    reference = refer_to(tmp_path / "photos", "x.png", png(picture(0)))
    samples = [("x.png", (reference,), 0)]
    write_dataset(
        tmp_path / "a", {"train": samples}, image=ImageForm(encoding="reference"), root=str(tmp_path / "photos")
    )
    flow = RecordData(tmp_path / "a")
    np.testing.assert_array_equal(flow.datapoint(0)[0], picture(0))
    (tmp_path / "photos" / "x.png").write_bytes(cv2.imencode(".png", picture(1, 20, 20))[1].tobytes())
    with pytest.raises(DatapointError, match=r"'x\.png' .* when the dataset was made"):
        flow.datapoint(0)
    flow.close()


def labels_of(flow):
    """Return the labels of a pass; runs in another process."""
    return close(flow, [label for _, label in flow])


def test_a_flow_goes_to_another_process(tmp_path):
    write_dataset(tmp_path / "a", {"train": animals(8)})
    flow = RecordData(tmp_path / "a", shuffle=True).seed(1)
    expected = labels_of(pickle.loads(pickle.dumps(flow)))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(labels_of, flow).result(timeout=60) == expected
    flow.close()


def test_a_wrong_call_is_refused(tmp_path):
    write_dataset(tmp_path / "a", {"train": animals(1)}, ANIMALS)
    with pytest.raises(UnknownNameError, match="`valid` is not a known split"):
        RecordData(tmp_path / "a", "valid")
    with pytest.raises(UsageError, match="image, bytes or record"):
        RecordData(tmp_path / "a", content="pixels")
    with pytest.raises(DataError, match="ziggurat dataset create"):
        RecordData(tmp_path)
