"""The events of a job, and writing in batches."""

import json
import math
import threading

import numpy as np
import pytest
from engine_fakes import Clock, Memory, PutEachEpoch, make_trainer, train
from PIL import Image as Picture

from tests.waiting import take_time, wait_until
from ziggurat.callbacks import Callback, CallbackFactory, EventWriter, ModelSaver, Monitor, bind_folder
from ziggurat.engine.monitors.json_writers import BatchedWriter
from ziggurat.errors import StorageError, UsageError
from ziggurat.events import (
    CheckpointSaved,
    EpochEnded,
    ImageLogged,
    Message,
    ScalarLogged,
    encode_event,
    read_events,
)


def events_of(folder):
    return read_events(folder / "events.jsonl")[0]


def test_everything_that_happens_is_in_the_file_in_order(tmp_path):
    train(
        PutEachEpoch("cost", [0.5, 0.25]),
        ModelSaver(tmp_path / "checkpoints"),
        monitors=[EventWriter(tmp_path, clock=Clock(tick=2.0))],
        epochs=2,
    )
    kinds = [(type(event), getattr(event, "value", None)) for event in events_of(tmp_path)]
    epoch = [(EpochEnded, None), (CheckpointSaved, None)]
    assert kinds == [(ScalarLogged, 0.5), *epoch, (ScalarLogged, 0.25), *epoch]
    ended = [event for event in events_of(tmp_path) if isinstance(event, EpochEnded)]
    assert [(event.epoch, event.global_step, event.duration_s) for event in ended] == [(1, 4, 2.0), (2, 8, 2.0)]


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-300, 12345678901234567.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("tag", ["cost", 'a "quoted" täg\n'])
def test_the_fast_way_writes_the_same_line_as_the_general_one(tmp_path, tag, value):
    writer = EventWriter(tmp_path)
    train(PutEachEpoch(tag, [value]), monitors=[writer])
    line = (tmp_path / "events.jsonl").read_text("utf-8").splitlines()[0]
    assert line == encode_event(ScalarLogged(time=1000.0, tag=tag, value=value, step=4, epoch=1))


def test_the_file_has_the_numbers_before_the_checkpoint_exists(tmp_path):
    seen = []

    class Look(Monitor):
        def process_event(self, event):
            if isinstance(event, CheckpointSaved):
                seen.extend(event.tag for event in events_of(tmp_path) if isinstance(event, ScalarLogged))

    put = CallbackFactory(trigger=lambda self: self.trainer.at_boundary(lambda: self.trainer.put("late", 1)))
    train(put, ModelSaver(tmp_path / "checkpoints"), monitors=[EventWriter(tmp_path, every_s=100), Look()])
    assert seen == ["late"]


def test_numbers_are_in_the_file_soon_even_in_a_long_step(tmp_path):
    class LongStep(Callback):
        def trigger_step(self):
            if self.global_step == 1:
                self.trainer.put("x", 1.0)
                self.found = len(wait_until(lambda: events_of(tmp_path), 60))

    callback = LongStep()
    train(callback, monitors=[EventWriter(tmp_path, every_s=0.01)])
    assert callback.found == 1


def test_pictures_become_files(tmp_path):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    put = CallbackFactory(trigger=lambda self: self.trainer.monitors.put_image("a/b c", pixels))
    grey = CallbackFactory(trigger=lambda self: self.trainer.monitors.put_image("grey", pixels[:, :, 0]))
    train(put, grey, monitors=[EventWriter(tmp_path)])
    events = [event for event in events_of(tmp_path) if isinstance(event, ImageLogged)]
    assert [(event.tag, event.path, event.step) for event in events] == [
        ("a/b c", "images/a-b-c-00000004.png", 4),
        ("grey", "images/grey-00000004.png", 4),
    ]
    assert np.array_equal(np.asarray(Picture.open(tmp_path / events[0].path)), pixels)
    assert np.array_equal(np.asarray(Picture.open(tmp_path / events[1].path)), pixels[:, :, 0])


def test_a_second_attempt_appends_and_mends_a_half_line(tmp_path):
    train(PutEachEpoch("x", [1.0]), monitors=[EventWriter(tmp_path)])
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"type": "sca')
    train(PutEachEpoch("x", [2.0]), monitors=[EventWriter(tmp_path)])
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["scalar", "epoch_ended"] * 2


def test_a_last_word_of_another_monitor_is_kept(tmp_path):
    class LastWord(Monitor):
        def after_train(self):
            self.trainer.monitors.put_event(Message(time=1.0, level="info", text="that was all"))

    train(monitors=[EventWriter(tmp_path), LastWord()])
    assert isinstance(events_of(tmp_path)[-1], Message)


def test_a_full_disk_ends_the_training(tmp_path):
    (tmp_path / "events.jsonl").symlink_to("/dev/full")
    trainer = make_trainer(PutEachEpoch("x", [1.0] * 5), monitors=[EventWriter(tmp_path)])
    with pytest.raises(StorageError) as caught:
        trainer.train(5)
    assert "What happens in a job must be written to" in str(caught.value)
    assert "received: No space left on device (errno 28))." in str(caught.value)
    assert trainer.epoch_num == 1


def test_an_unwritable_file_is_an_error_before_the_first_step(tmp_path):
    (tmp_path / "file").touch()
    trainer = make_trainer(monitors=[EventWriter(tmp_path / "file")])
    with pytest.raises(StorageError):
        trainer.train(1)
    assert trainer.global_step == 0


def test_without_a_folder_it_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match="EventWriter needs a folder to write to"):
        train(monitors=[EventWriter()])
    writer = EventWriter()
    bind_folder([writer], tmp_path)
    train(PutEachEpoch("x", [1.0]), monitors=[writer])
    assert len(events_of(tmp_path)) == 2


# ---- writing in batches


def test_items_are_written_in_order_by_whoever_comes_first():
    written = []
    writer = BatchedWriter(written.extend, every_s=0.001)
    writer.start()
    for number in range(2000):
        writer.put(number)
    writer.close()
    writer.put(2000)
    writer.flush()
    assert written == list(range(2001))


def test_two_threads_never_write_at_once():
    inside, most = [], []

    def write(items):
        inside.append(1)
        most.append(len(inside))
        take_time(0.001)
        inside.pop()

    writer = BatchedWriter(write, every_s=0.0001)
    writer.start()
    for number in range(20):
        writer.put(number)
        writer.flush()
    writer.close()
    assert set(most) == {1}


def test_an_error_of_the_thread_is_raised_once_by_the_next_call():
    failed = threading.Event()

    def write(items):
        failed.set()
        raise OSError("the disk is full")

    writer = BatchedWriter(write, every_s=0.001)
    writer.start()
    writer.put(1)
    failed.wait(60)
    with pytest.raises(OSError, match="the disk is full"):
        writer.close()
    writer.put(2)
    writer.close()


def test_monitors_hear_of_every_number_picture_event_and_summary():
    memory = Memory()
    put = CallbackFactory(
        trigger=lambda self: (
            self.trainer.monitors.put_image("batch", np.zeros((2, 4, 4, 3), np.uint8)),
            self.trainer.monitors.put_summary(b"bytes"),
            self.trainer.monitors.put_event(Message(time=1.0, level="info", text="hello")),
        )
    )
    make_trainer(put, monitors=[memory]).train(1)
    assert [(image.tag, image.pixels.shape) for image in memory.images] == [
        ("batch/0", (4, 4, 3)),
        ("batch/1", (4, 4, 3)),
    ]
    assert memory.summaries == [(4, b"bytes")]
    assert [event.type for event in memory.events] == ["message"]
