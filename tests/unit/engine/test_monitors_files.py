"""The other monitors: stats.json, the terminal, TensorBoard."""

import io
import json
import math
import sys
import types

import numpy as np
import pytest
from engine_fakes import Clock, Memory, PutEachEpoch, make_trainer, train
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.summary_pb2 import Summary

from ziggurat.callbacks import (
    Callback,
    CallbackFactory,
    EstimatedTimeLeft,
    JSONWriter,
    LogScalars,
    ScalarPrinter,
    TFEventWriter,
    bind_folder,
)
from ziggurat.errors import ConfigurationError, StorageError, UsageError
from ziggurat.events import Message

# TensorBoard's own switch: where this module exists, it reads without importing TensorFlow (which takes ten seconds).
sys.modules.setdefault("tensorboard.compat.notf", types.ModuleType("tensorboard.compat.notf"))


class StopAt(Callback):
    def __init__(self, step):
        self.step = step

    def trigger_step(self):
        if self.global_step == self.step:
            self.trainer.request_stop()


# ---- stats.json


def lines_of(path):
    return [json.loads(line, parse_constant=lambda name: pytest.fail(name)) for line in path.read_text().splitlines()]


def test_one_line_an_epoch_with_the_newest_value_of_each_tag(tmp_path):
    path = tmp_path / "stats.json"
    train(LogScalars(["cost"], 1), PutEachEpoch("b", [1.5, math.nan]), monitors=[JSONWriter(path)], epochs=2)
    lines = lines_of(path)
    assert [list(line) for line in lines] == [["epoch_num", "global_step", "b", "cost"]] * 2
    assert [(line["epoch_num"], line["global_step"], line["b"]) for line in lines] == [(1, 4, 1.5), (2, 8, "NaN")]


def test_it_is_read_back_with_its_nans(tmp_path):
    path = tmp_path / "stats.json"
    assert JSONWriter.load_existing_json(path) == []
    assert JSONWriter.load_existing_epoch_number(path) is None
    train(PutEachEpoch("b", [-math.inf, math.nan, 2.0]), monitors=[JSONWriter(path)], epochs=3)
    assert [repr(line["b"]) for line in JSONWriter.load_existing_json(path)] == ["-inf", "nan", "2.0"]
    assert JSONWriter.load_existing_epoch_number(path) == 3


def test_lines_of_later_steps_are_dropped_on_resume(tmp_path):
    path = tmp_path / "stats.json"
    first = make_trainer(PutEachEpoch("b", [1, 2, 3]), monitors=[JSONWriter(path)])
    first.train(1)
    state = first.state()
    first.train(3)
    with path.open("a") as file:
        file.write('{"epoch_num": 4, "glob')  # a kill
    second = make_trainer(PutEachEpoch("b", [7, 8, 9]), monitors=[JSONWriter(path)])
    second.load_state(state)
    second.train(2)
    assert [(line["global_step"], line["b"]) for line in lines_of(path)] == [(4, 1), (8, 8)]
    assert [each.name for each in tmp_path.iterdir()] == ["stats.json"]


def test_an_epoch_stopped_in_the_middle_has_one_line_at_last(tmp_path):
    path = tmp_path / "stats.json"
    first = make_trainer(LogScalars(["cost"], 1), StopAt(2), monitors=[JSONWriter(path)])
    first.train(1)
    assert not path.exists()
    second = make_trainer(PutEachEpoch("b", [1]), monitors=[JSONWriter(path)])
    second.load_state(first.state())
    second.train(1)
    assert [list(line) for line in lines_of(path)] == [["epoch_num", "global_step", "b", "cost"]]


def test_an_epoch_in_which_training_is_complete_has_its_line(tmp_path):
    class FinishAt2(Callback):
        def trigger_step(self):
            if self.global_step == 2:
                self.trainer.finish("enough")

    path = tmp_path / "stats.json"
    first = make_trainer(LogScalars(["cost"], 1), FinishAt2(), monitors=[JSONWriter(path)])
    first.train(3)
    assert [(line["epoch_num"], line["global_step"]) for line in lines_of(path)] == [(1, 2)]
    second = make_trainer(LogScalars(["cost"], 1), FinishAt2(), monitors=[JSONWriter(path)])
    second.load_state(first.state())
    second.train(3)
    assert len(lines_of(path)) == 1


def test_what_is_put_after_the_last_epoch_is_kept(tmp_path):
    path = tmp_path / "stats.json"
    put = CallbackFactory(after_train=lambda self: self.trainer.put("test_error", 0.5))
    train(put, monitors=[JSONWriter(path)])
    assert lines_of(path) == [{"epoch_num": 1, "global_step": 4, "test_error": 0.5}]


def test_a_disk_that_is_full_ends_the_training(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="The scalars of each epoch must be written to"):
        train(PutEachEpoch("x", [1.0]), monitors=[JSONWriter(tmp_path / "file" / "stats.json")])


# ---- the terminal


def test_the_scalars_of_each_epoch_are_printed_sorted():
    stream = io.StringIO()
    callbacks = [PutEachEpoch("b", [1.5, 2]), PutEachEpoch("a", [123456.789, math.nan])]
    train(*callbacks, monitors=[ScalarPrinter(stream=stream)], epochs=2)
    assert stream.getvalue() == ("Epoch 1/2, step 4\n  a: 1.2346e+05\n  b: 1.5\nEpoch 2/2, step 8\n  a: nan\n  b: 2\n")


def test_an_epoch_is_one_line_for_people():
    stream = io.StringIO()
    values = {"cost": 0.25, "accuracy": 0.5, "error": 0.5, "validation_cost": math.nan, "StepTime/p50_ms": 3}
    callbacks = [PutEachEpoch(tag, [value]) for tag, value in values.items()]
    train(*callbacks, monitors=[ScalarPrinter(blacklist=["StepTime/"], stream=stream, is_short=True)], epochs=1)
    said = stream.getvalue().replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert said == "Epoch 1/1, step 4: accuracy 50.0 %, loss 0.25, validation loss NaN\n"


def test_steps_can_be_printed_too_and_tags_chosen():
    stream = io.StringIO()
    printer = ScalarPrinter(True, False, ["co.*"], ["cost-x"], stream=stream)
    train(LogScalars(["cost", "rows"][:1], 2), PutEachEpoch("other", [1]), monitors=[printer])
    lines = stream.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines] == ["Step 2", "  cost", "Step 4", "  cost"]


def test_a_blacklist_hides_tags():
    stream = io.StringIO()
    train(PutEachEpoch("b", [1]), PutEachEpoch("a", [1]), monitors=[ScalarPrinter(blacklist=["b$"], stream=stream)])
    assert stream.getvalue() == "Epoch 1/1, step 4\n  a: 1\n"


def test_messages_are_printed_and_the_time_left_is_told():
    stream, clock = io.StringIO(), Clock()

    class Say(Callback):
        def trigger(self):
            clock.now += 60
            put = self.trainer.monitors.put_event
            put(Message(time=1.0, level="info", text="all is well"))
            put(Message(time=1.0, level="warning", text="or not"))

    train(Say(), EstimatedTimeLeft(clock=clock), monitors=[ScalarPrinter(stream=stream)], epochs=3)
    assert stream.getvalue().splitlines()[:3] == [
        "all is well",
        "WARNING: or not",
        "Epoch 1/3, step 4, about 2 min 0 s left",
    ]


def test_a_bad_pattern_is_an_error_at_once():
    with pytest.raises(ConfigurationError, match=r"hold regular expressions \(received: '\(' \(missing \)"):
        ScalarPrinter(whitelist=["("])


# ---- TensorBoard


def tensorboard(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "histograms": 0})
    accumulator.Reload()
    return accumulator


def points(folder, tag):
    return [(event.step, event.value) for event in tensorboard(folder).Scalars(tag)]


def test_tensorboard_reads_the_scalars(tmp_path):
    values = [0.5, math.nan, math.inf, -1e300, 1e-3]
    train(PutEachEpoch("täg/x", values), monitors=[TFEventWriter(tmp_path)], epochs=5)
    read = points(tmp_path, "täg/x")
    assert [step for step, _ in read] == [4, 8, 12, 16, 20]
    assert repr([float(np.float32(value)) for _, value in read]) == repr(
        [0.5, math.nan, math.inf, -math.inf, float(np.float32(1e-3))]
    )
    assert [event.wall_time for event in tensorboard(tmp_path).Scalars("täg/x")] == [1000.0] * 5


def test_tensorboard_reads_pictures_and_histograms(tmp_path):
    picture = np.arange(200 * 3, dtype=np.uint8).reshape(10, 20, 3)
    histogram = Summary()
    value = histogram.value.add(tag="weights")
    value.histo.min, value.histo.max, value.histo.num = -1.0, 1.0, 7.0
    value.histo.bucket_limit.extend([0.0, 1.0])
    value.histo.bucket.extend([3.0, 4.0])

    class Put(Callback):
        def trigger(self):
            self.trainer.monitors.put_image("picture", picture)
            self.trainer.monitors.put_summary(histogram.SerializeToString())

    train(Put(), monitors=[TFEventWriter(tmp_path)])
    accumulator = tensorboard(tmp_path)
    (image,) = accumulator.Images("picture")
    assert (image.step, image.height, image.width) == (4, 10, 20)
    assert image.encoded_image_string.startswith(b"\x89PNG")
    (read,) = accumulator.Histograms("weights")
    assert (read.step, read.histogram_value.num, read.histogram_value.bucket) == (4, 7.0, [3.0, 4.0])


def test_points_of_later_steps_are_hidden_on_resume(tmp_path):
    first = make_trainer(PutEachEpoch("x", [1, 2, 3]), monitors=[TFEventWriter(tmp_path)])
    first.train(1)
    state = first.state()
    first.train(3)
    second = make_trainer(PutEachEpoch("x", [0, 8, 9]), monitors=[TFEventWriter(tmp_path)])
    second.load_state(state)
    second.train(2)
    assert points(tmp_path, "x") == [(4, 1), (8, 8)]
    assert len(list(tmp_path.iterdir())) == 3  # three calls of train, each within the same second


def test_what_is_put_before_the_file_is_open_is_not_lost(tmp_path):
    put = CallbackFactory(before_train=lambda self: self.trainer.put("x", 1.0))
    train(put, monitors=[TFEventWriter(tmp_path)])
    assert points(tmp_path, "x") == [(0, 1.0)]


def test_a_disk_that_is_full_is_said_once_and_training_goes_on(tmp_path):
    (tmp_path / "file").touch()
    memory = Memory()
    trainer = make_trainer(PutEachEpoch("x", [1.0] * 3), monitors=[memory, TFEventWriter(tmp_path / "file" / "tb")])
    trainer.train(3)
    assert trainer.epoch_num == 3
    (message,) = memory.of_type(Message)
    assert message.level == "warning"
    assert message.text == (
        f"TensorBoard's files in {tmp_path / 'file' / 'tb'} cannot be written (Not a directory). "
        "Training goes on; their curves will have holes."
    )


def test_half_a_record_is_cut_off(tmp_path):
    from test_trainer_checkpoints import files_of_at_most

    class FullInEpoch2(Callback):
        def __init__(self):
            self.disk = files_of_at_most(4096)

        def before_epoch(self):
            if self.epoch_num == 2:
                self.disk.__enter__()

        def trigger(self):
            for _ in range(200 if self.epoch_num == 2 else 1):
                self.trainer.put("x", self.epoch_num)
            self.trainer.monitors.flush()
            if self.epoch_num == 2:
                self.disk.__exit__(None, None, None)

    memory = train(FullInEpoch2(), monitors=[TFEventWriter(tmp_path, every_s=100)], epochs=3)
    assert len(memory.of_type(Message)) == 1
    assert points(tmp_path, "x") == [(4, 1), (12, 3)]


def test_places(tmp_path):
    monitors = [TFEventWriter(), JSONWriter()]
    for monitor in monitors:
        with pytest.raises(UsageError, match=f"{type(monitor).__name__} needs a folder to write to"):
            train(monitors=[monitor])
    monitors = [TFEventWriter(), JSONWriter()]
    bind_folder(monitors, tmp_path)
    train(PutEachEpoch("x", [1]), monitors=monitors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stats.json", "tb"]
