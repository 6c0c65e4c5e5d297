"""JpegCropBatches: the same batches for any number of threads and any engine, exactly resumed, errors by policy."""

import gc
import json
import pickle
import threading

import numpy as np
import psutil
import pytest
from fast_photographs import encoded, smooth_image
from PIL import Image

from ziggurat.dataflow.base import ProxyDataFlow
from ziggurat.dataflow.fast import CenterResizedCrop, JpegCropBatches, RandomResizedCrop
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.sources import DataFromGenerator, DataFromList
from ziggurat.errors import DataError, DatapointError, UsageError

CROP = RandomResizedCrop(32)


def points_of(files):
    return [[data, number] for number, data in enumerate(files)]


def equal(one, other):
    return len(one) == len(other) and all(
        all(np.array_equal(a, b) for a, b in zip(*pair, strict=True)) for pair in zip(one, other, strict=True)
    )


def our_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("ziggurat-crops")]


def test_batches_have_images_and_labels(photographs):
    flow = JpegCropBatches(points_of(photographs), 8, CROP)
    batches = list(flow)
    assert len(flow) == len(batches) == 2
    images, labels = batches[0]
    assert images.shape == (8, 32, 32, 3)
    assert images.dtype == np.uint8
    assert images.flags.c_contiguous
    assert labels.tolist() == list(range(8))
    assert labels.dtype == np.int64


def test_the_remainder_is_kept_on_demand(photographs):
    flow = JpegCropBatches(points_of(photographs), 8, CROP, remainder=True)
    assert [len(images) for images, _ in flow] == [8, 8, 4]
    assert len(flow) == 3


def test_paths_are_read(photographs, tmp_path):
    for number, data in enumerate(photographs):
        (tmp_path / f"{number}.jpg").write_bytes(data)
    by_path = [[tmp_path / f"{number}.jpg", number] for number in range(20)]
    flows = [JpegCropBatches(points, 5, CROP).seed(3) for points in (by_path, points_of(photographs))]
    assert equal(*map(list, flows))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_any_number_of_threads_gives_the_same(photographs, threads):
    def two_passes(count):
        flow = JpegCropBatches(DataFromList(points_of(photographs)), 3, CROP, num_thread=count).seed(5)
        return [*flow, *flow]

    assert equal(two_passes(threads), two_passes(3))


def test_every_engine_gives_the_same_within_rounding(photographs, engine):
    def batches(name):
        return list(JpegCropBatches(points_of(photographs), 10, CROP, engine=name).seed(2))

    for (images, _), (expected, _) in zip(batches(engine.name), batches("opencv"), strict=True):
        assert np.abs(images.astype(int) - expected).max() <= 3


def test_passes_and_seeds_differ(photographs):
    flow = JpegCropBatches(points_of(photographs), 20, CROP).seed(1)
    first, second = list(flow), list(flow)
    assert not equal(first, second)
    assert not equal(first, list(JpegCropBatches(points_of(photographs), 20, CROP).seed(2)))


@pytest.mark.parametrize("stop", range(6))
def test_a_pass_goes_on_exactly_where_its_state_was_taken(photographs, stop):
    def build():
        return JpegCropBatches(DataFromList(points_of(photographs)), 4, CROP, remainder=True)

    whole = build().seed(9)
    expected = [*whole, *whole]
    flow = build().seed(9)
    items = iter(flow)
    before = [next(items) for _ in range(stop)]
    state = json.loads(json.dumps(flow.state()))
    resumed = build()
    resumed.load_state(state)
    after = [*resumed, *resumed]
    assert equal(before + after, expected[: len(before) + len(after)])
    assert len(before + after) >= len(expected)


def test_a_flow_that_replays_is_resumed_too(photographs):
    def build():
        return JpegCropBatches(DataFromGenerator(lambda: iter(points_of(photographs))), 4, CROP)

    expected = list(build().seed(4))
    flow = build().seed(4)
    items = iter(flow)
    before = [next(items), next(items)]
    resumed = build()
    resumed.load_state(flow.state())
    assert equal(before + list(resumed), expected)


def test_a_pass_that_is_broken_off_does_not_change_the_next(photographs):
    flows = [JpegCropBatches(DataFromList(points_of(photographs)), 4, CROP).seed(7) for _ in range(2)]
    next(iter(flows[0]))
    list(flows[1])
    assert equal(*map(list, flows))


@pytest.mark.parametrize("on_error", ["skip", "log"])
def test_bad_images_are_left_out_of_their_batch(photographs, on_error):
    files = [*photographs]
    files[5], files[6] = b"no image", photographs[6][:200]
    flow = JpegCropBatches(points_of(files), 4, CROP, on_error=on_error).seed(1)
    whole = JpegCropBatches(points_of(photographs), 4, CROP).seed(1)
    batches, expected = list(flow), list(whole)
    assert [labels.tolist() for _, labels in batches][1] == [4, 7]
    assert equal([batches[0], *batches[2:]], [expected[0], *expected[2:]])
    assert np.array_equal(batches[1][0], expected[1][0][[0, 3]])
    (errors,) = flow.error_counts()
    assert errors.counts.total == 2
    assert [key for key, _ in errors.counts.first] == [5, 6]


def test_failed_images_are_replaced_on_demand(photographs):
    files = [*photographs]
    files[5], files[7] = b"no image", photographs[6][:200]
    flow = JpegCropBatches(points_of(files), 4, CROP, on_error="skip", replace_failed=True).seed(1)
    batches, expected = list(flow), list(JpegCropBatches(points_of(photographs), 4, CROP).seed(1))
    assert [labels.tolist() for _, labels in batches][1] == [4, 6, 6, 4]
    assert np.array_equal(batches[1][0], expected[1][0][[0, 2, 2, 0]])
    assert equal([batches[0], *batches[2:]], [expected[0], *expected[2:]])
    assert flow.error_counts()[0].counts.total == 2


def test_a_component_may_name_the_image(photographs):
    files = [*photographs[:3], b"no image"]
    points = [[data, number, f"n{number}"] for number, data in enumerate(files)]
    flow = JpegCropBatches(points, 4, CROP, on_error="skip", key_index=2).seed(1)
    ((images, labels),) = flow
    assert labels.tolist() == [0, 1, 2]
    assert len(images) == 3
    assert [key for key, _ in flow.error_counts()[0].counts.first] == ["n3"]


def test_the_prefetch_does_not_change_the_batches(photographs):
    one, other = (JpegCropBatches(points_of(photographs), 3, CROP, prefetch=count).seed(1) for count in (1, 5))
    assert equal(list(one), list(other))


def test_one_crop_is_that_of_the_pass(photographs):
    flow = JpegCropBatches(points_of(photographs), 8, CROP).seed(4)
    list(flow)
    images = np.concatenate([images for images, _ in flow])
    for place in (0, 7, 8, 15):
        assert np.array_equal(flow.crop_of(flow.ds.lst[place], 1, place), images[place])


def test_one_crop_of_a_bad_image_raises(photographs):
    flow = JpegCropBatches([[b"no image", 0], *points_of(photographs)], 8, CROP, on_error="skip")
    with pytest.raises(DatapointError, match="cannot be used"):
        flow.crop_of([b"no image", 0], 0, 0)


def test_components_may_be_anything_that_can_be_stacked(photographs):
    files = [photographs[0], b"no image", photographs[2]]
    points = [[data, {"box": np.arange(4) + i, "name": f"n{i}"}, 0.5 * i] for i, data in enumerate(files)]
    ((images, boxes, shares),) = JpegCropBatches(points, 3, CROP, on_error="skip")
    assert images.shape == (2, 32, 32, 3)
    assert boxes["box"].tolist() == [[0, 1, 2, 3], [2, 3, 4, 5]]
    assert boxes["name"].tolist() == ["n0", "n2"]
    assert shares.tolist() == [0, 1]


def test_a_batch_without_good_images_is_left_out_and_resumed(photographs):
    files = [*photographs]
    files[4:8] = [b"bad"] * 4

    def build():
        return JpegCropBatches(points_of(files), 4, CROP, on_error="skip")

    expected = list(build().seed(1))
    assert [labels[0] for _, labels in expected] == [0, 8, 12, 16]
    flow = build().seed(1)
    items = iter(flow)
    before = [next(items), next(items)]
    resumed = build()
    resumed.load_state(flow.state())
    assert equal(before + list(resumed), expected)


def test_an_error_names_the_file_after_the_batches_before_it(photographs, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(photographs[0][:300])
    points = [*points_of(photographs), [str(tmp_path / "bad.jpg"), 20]]
    items = iter(JpegCropBatches(points, 7, CROP))
    assert len([next(items), next(items)]) == 2
    with pytest.raises(DatapointError, match=r"bad\.jpg' cannot be used: the JPEG data is cut off") as caught:
        next(items)
    assert caught.value.key == str(tmp_path / "bad.jpg")
    assert not our_threads()


def test_a_missing_file_is_named():
    with pytest.raises(DatapointError, match=r"'nowhere/7\.jpg' cannot be used: it cannot be read \(No such file"):
        list(JpegCropBatches([["nowhere/7.jpg", 0]], 1, CROP))


def test_an_error_of_the_flow_comes_after_its_batches(photographs):
    def failing():
        yield from points_of(photographs)
        raise OSError("the disk is gone")

    items = iter(JpegCropBatches(DataFromGenerator(failing), 6, CROP))
    assert len([next(items) for _ in range(3)]) == 3
    with pytest.raises(OSError, match="the disk is gone"):
        next(items)


def other_kinds():
    picture = smooth_image(80, 100)
    image = Image.fromarray(picture)
    exif = Image.Exif()
    exif[0x0112] = 6
    return {
        "PNG": encoded(picture, "PNG"),
        "gray": encoded(image.convert("L")),
        "CMYK": encoded(image.convert("CMYK")),
        "palette": encoded(image.convert("P"), "PNG"),
        "16 bits": encoded(Image.fromarray(picture[:, :, 0].astype(np.uint16) * 256), "PNG"),
        "rotated": encoded(np.rot90(picture), exif=exif),
        "pixels": picture,
        "gray pixels": picture[:, :, :1],
    }


@pytest.mark.parametrize("kind", other_kinds())
def test_other_images_come_out_as_when_decoded_whole(kind):
    image = other_kinds()[kind]
    whole = image if isinstance(image, np.ndarray) else decode_image(image)
    crop = RandomResizedCrop((24, 40), aspect=(1.2, 2))
    batches = [next(iter(JpegCropBatches([[one]], 1, crop).seed(6)))[0] for one in (image, whole)]
    assert np.abs(batches[0].astype(int) - batches[1]).mean() < 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_comes_out_upright(orientation, engine):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(smooth_image(100, 140), exif=exif)
    upright = decode_image(data)
    crop = RandomResizedCrop((24, 40), area=(0.2, 0.4))
    points = [[data], [upright]] * 4
    (images,) = next(iter(JpegCropBatches(points, 8, crop, engine=engine.name).seed(orientation)))
    again = next(iter(JpegCropBatches([[upright]] * 8, 8, crop).seed(orientation)))[0]
    assert np.abs(images.astype(int) - again).mean() < 2.5


def test_the_center_crop_takes_no_random_numbers(photographs):
    flow = JpegCropBatches(points_of(photographs), 10, CenterResizedCrop(32)).seed(1)
    assert equal(list(flow), list(flow))


def test_a_batch_that_is_kept_does_not_change(photographs):
    flow = JpegCropBatches(points_of(photographs * 3), 2, CROP).seed(1)
    kept = [images for images, _ in flow]
    copies = [images.copy() for images, _ in JpegCropBatches(points_of(photographs * 3), 2, CROP).seed(1)]
    assert equal([kept], [copies])


def test_threads_end_with_the_pass_the_iterator_and_close(photographs):
    flow = JpegCropBatches(points_of(photographs * 5), 4, CROP, num_thread=2)
    list(flow)
    assert not our_threads()
    items = iter(flow)
    next(items)
    assert our_threads()
    del items
    gc.collect()
    assert not our_threads()
    items = iter(flow)
    next(items)
    flow.close()
    assert not our_threads()
    with pytest.raises(UsageError, match="A pass ends when its flow is closed"):
        list(items)
    assert len(list(flow)) == 25


def test_no_memory_is_lost(photographs):
    flow = JpegCropBatches(points_of([*photographs, b"bad"] * 4), 7, RandomResizedCrop(96), on_error="skip")
    process = psutil.Process()

    def after(passes):
        for _ in range(passes):
            for _batch in flow:
                pass
        return process.memory_info().rss

    before = after(5)
    assert after(20) - before < 16 << 20


def test_it_crosses_processes(photographs):
    flow = JpegCropBatches(points_of(photographs), 5, CROP).seed(3)
    expected = list(flow)
    copy = pickle.loads(pickle.dumps(JpegCropBatches(points_of(photographs), 5, CROP).seed(3)))
    assert equal(list(copy), expected)


class Looking(ProxyDataFlow):
    """Counts how many datapoints were asked for."""

    asked = 0

    def iterate(self):
        for point in self.ds:
            self.asked += 1
            yield point


def test_it_reads_a_bounded_number_of_batches_ahead(photographs):
    looking = Looking(DataFromList(points_of(photographs), shuffle=False))
    items = iter(JpegCropBatches(looking, 2, CROP))
    next(items)
    assert looking.asked <= 8


def test_wrong_arguments_are_refused(photographs):
    with pytest.raises(UsageError, match=r"`batch_size` is 0, not 1 or more"):
        JpegCropBatches(points_of(photographs), 0)
    with pytest.raises(UsageError, match=r"`num_thread` is 0, not 1 or more"):
        JpegCropBatches(points_of(photographs), 1, num_thread=0)
    with pytest.raises(UsageError, match="is a list or tuple that begins with an image"):
        list(JpegCropBatches([{"image": 1}], 1))
    with pytest.raises(DatapointError, match=r"Datapoint 0 cannot be used: a float is no path"):
        list(JpegCropBatches([[0.5]], 1))
    with pytest.raises(DatapointError, match=r"pixels are \(H, W, 3\) uint8, these are \(4, 4, 2\) uint8"):
        list(JpegCropBatches([[np.zeros((4, 4, 2), np.uint8)]], 1))
    with pytest.raises(DataError, match="The datapoints of a batch have the same components"):
        list(JpegCropBatches([[photographs[0], 1], [photographs[1]]], 2, CROP))
