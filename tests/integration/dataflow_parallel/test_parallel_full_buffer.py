"""A pass ends, whole and in order, however little shared memory it has: no result waits for one that cannot be made."""

import itertools
import signal

import cv2
import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from parallel_samples import bound, numbers

from tests.waiting import PROCESS_S, wait_until
from ziggurat.dataflow import AugmentImageComponent, BatchData, PrefetchDataZMQ, imgaug
from ziggurat.dataflow.base import RNGDataFlow
from ziggurat.dataflow.parallel import (
    MultiProcessMapAndBatchData,
    MultiProcessMapData,
    MultiProcessRunner,
)
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DataError, DataWorkerError

pytestmark = pytest.mark.usefixtures("fork_server")

KIBI, MEBI = 1 << 10, 1 << 20
HANGS_S = 30.0


class MyDataFlow(RNGDataFlow):
    """The tutorial's own source: the images of a folder."""

    def __init__(self, dir, shuffle):  # noqa: A002 - the tutorial's name
        self.paths = sorted(str(path) for path in dir.iterdir())
        self.shuffle = shuffle

    def __len__(self):
        return len(self.paths)

    def get_data(self):
        order = list(range(len(self.paths)))
        if self.shuffle:
            self.rng.shuffle(order)
        for number in order:
            yield [cv2.imread(self.paths[number]), number]


class Grown:
    """Maps number k to an array of one of several sizes in turn, filled with k."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __call__(self, dp):
        number = dp[0]
        return [number, np.full(self.sizes[number % len(self.sizes)], number, np.uint8)]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    draws = np.random.RandomState(0)
    for number in range(512):
        cv2.imwrite(str(folder / f"{number:03}.png"), draws.randint(0, 256, (24, 32, 3), np.uint8))
    return folder


@pytest.mark.parametrize("batch", [16, 64, 100, 128])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_tutorials_pipeline_ends(images, batch, workers):
    df = MyDataFlow(dir=images, shuffle=True)
    df = AugmentImageComponent(df, [imgaug.Resize((225, 225))])
    df = BatchData(df, batch)
    df = PrefetchDataZMQ(df, workers)
    df.reset_state()
    shapes, seen = [], []
    with df, bound(HANGS_S, f"{512 // batch} batches of {batch} from {workers} workers"):
        for image, number in df.get_data():
            shapes.append(image.shape)
            seen += number.tolist()
    assert shapes == [(batch, 225, 225, 3)] * (512 // batch)
    assert len(set(seen)) == len(seen)


COUNT = 24
SIZES = st.lists(st.integers(1, 3 * MEBI) | st.integers(1, 8 * KIBI), min_size=1, max_size=4)


def runner(sizes, workers, prefetch, **options):
    return MultiProcessRunner(MapData(numbers(COUNT), Grown(sizes)), prefetch, workers, **options)


def independent(sizes, workers, prefetch, **options):
    return runner(sizes, workers, prefetch, independent=True, **options)


def ordered(sizes, workers, prefetch, **options):
    return MultiProcessMapData(numbers(COUNT), workers, Grown(sizes), buffer_size=prefetch, **options)


def unordered(sizes, workers, prefetch, **options):
    return ordered(sizes, workers, prefetch, ordered=False, **options)


def batches(sizes, workers, prefetch, **options):
    same = Grown(sizes[:1])
    return MultiProcessMapAndBatchData(numbers(COUNT), workers, same, 3, buffer_size=prefetch, **options)


@pytest.mark.nightly
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    stage=st.sampled_from([runner, independent, ordered, unordered, batches]),
    sizes=SIZES,
    workers=st.integers(1, 4),
    prefetch=st.integers(1, 40),
    buffer_bytes=st.integers(MEBI, 6 * MEBI),
    broken_off=st.integers(0, 3),
    held=st.integers(0, COUNT),
)
@example(runner, [MEBI // 2], 3, 24, 2 * MEBI, 0, 0)
@example(runner, [3 * MEBI], 2, 24, MEBI, 1, COUNT)
@example(independent, [MEBI // 2], 3, 24, 2 * MEBI, 0, 0)
def test_every_stage_ends_with_any_buffer(stage, sizes, workers, prefetch, buffer_bytes, broken_off, held):
    what = f"{stage.__name__} of {sizes} bytes, {workers} workers, prefetch {prefetch}, buffer {buffer_bytes}"
    with stage(sizes, workers, prefetch, buffer_bytes=buffer_bytes) as flow, bound(HANGS_S, what):
        if broken_off:
            list(itertools.islice(iter(flow), broken_off))
        kept, seen = [], []
        for number, array in flow:
            kept = [*kept, (number, array)][-held:] if held else []
            seen += np.ravel(number).tolist()
            assert (np.moveaxis(array, 0, -1) == number).all()
        assert all((np.moveaxis(array, 0, -1) == number).all() for number, array in kept)
    if stage is independent:
        assert len(seen) == COUNT
    elif stage is unordered:
        assert sorted(seen) == list(range(COUNT))
    else:
        assert seen == list(range(COUNT))


@pytest.mark.parametrize("stage", [runner, ordered, unordered, batches])
def test_close_ends_a_pass_with_a_full_buffer(stage):
    with bound(HANGS_S, f"closing {stage.__name__}"):
        flow = stage([MEBI], 3, COUNT, buffer_bytes=2 * MEBI)
        iterator = iter(flow)
        next(iterator)
        pids = flow.worker_pids()
        flow.close()
        assert not any(psutil.pid_exists(pid) for pid in pids)
        with pytest.raises(DataError, match="closed"):
            list(iterator)
        assert len(list(flow)) == len(flow)
        flow.close()


@pytest.mark.parametrize("stage", [runner, ordered, unordered, batches])
def test_a_killed_worker_ends_a_pass_with_a_full_buffer(stage):
    flow = stage([MEBI], 3, COUNT, buffer_bytes=2 * MEBI)
    with flow, bound(HANGS_S, f"{stage.__name__} with a dead worker"):
        iterator = iter(flow)
        next(iterator)
        worker = psutil.Process(flow.worker_pids()[1])
        # Begun: on a busy machine the others could do all the work before it has taken any.
        assert wait_until(lambda: any("ziggurat-dataflow" in row.path for row in worker.memory_maps()), PROCESS_S)
        worker.send_signal(signal.SIGKILL)
        with pytest.raises(DataWorkerError, match="SIGKILL"):
            list(iterator)
        assert len(list(flow)) == len(flow)


def test_a_pass_after_a_broken_off_one_is_whole(tmp_path):
    go = tmp_path / "go"

    def waits_from_4_on(dp):
        if dp[0] in (4, 5):
            (tmp_path / f"begun {dp[0]}").touch()
        return dp if dp[0] < 4 or wait_until(go.exists, PROCESS_S) else None

    with (
        bound(HANGS_S, "a pass after one that was broken off with as many tasks out as there may be"),
        MultiProcessMapAndBatchData(numbers(1100), 2, waits_from_4_on, 1, buffer_size=1100) as flow,
    ):
        iterator = iter(flow)
        first = [next(iterator)[0].item() for _ in range(2)]
        assert wait_until((tmp_path / "begun 4").exists, PROCESS_S)
        assert wait_until((tmp_path / "begun 5").exists, PROCESS_S)
        assert first + [next(iterator)[0].item() for _ in range(2)] == [0, 1, 2, 3]
        del iterator
        go.touch()
        assert [number.item() for (number,) in flow] == list(range(1100))
