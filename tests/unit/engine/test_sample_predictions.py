"""Predictions for a few samples after each validation, and a training that is the same with and without them."""

import json

import numpy as np
import pytest
from engine_fakes import Clock

from tests.task_contexts import of_classes
from ziggurat.backends.null import NullOptions, NullProgram
from ziggurat.callbacks import Trainer
from ziggurat.engine.callbacks.sample_predictions import SamplePredictionWriter, TaskSamples
from ziggurat.entities.sample_predictions import MOST_RECORDS, read_sample_predictions, thinned_records
from ziggurat.errors import UsageError

_SAMPLES = [{"split": "val", "row": 4, "key": "a.png", "label": 0}, {"split": "val", "row": 9, "key": "b", "label": 2}]


def task_samples(names):
    return TaskSamples(of_classes(names))


def batches(count=6):
    random = np.random.default_rng(3)
    return [[random.random((4, 5)).astype(np.float32), random.integers(0, 3, 4)] for _ in range(count)]


def samples():
    random = np.random.default_rng(4)
    return [random.random((2, 5)).astype(np.float32), np.array([0, 2])]


def trained(*callbacks, epochs=3, state=None):
    program = NullProgram(5, 3, NullOptions(hidden=4, dropout=0.5))
    trainer = Trainer(program, batches(), callbacks=callbacks, clock=Clock())
    if state is not None:
        trainer.load_state(state)
    trainer.train(epochs)
    return trainer


def writer(path, **options):
    return SamplePredictionWriter(task_samples(("x", "y", "z")), samples(), _SAMPLES, path=path, **options)


def test_each_epoch_has_class_and_score_of_each_sample(tmp_path):
    path = tmp_path / "samples.jsonl"
    trainer = trained(writer(path, before_train=True))

    found = read_sample_predictions(path)
    assert found.kind == "classification"
    assert found.class_names == ("x", "y", "z")
    assert [(each.number, each.row, each.key, each.label) for each in found.samples] == [
        (0, 4, "a.png", 0),
        (1, 9, "b", 2),
    ]
    assert [(each["step"], each["epoch"]) for each in found.records] == [(0, 0), (6, 1), (12, 2), (18, 3)]
    said = trainer.program.evaluate(samples(), ["probabilities"])["probabilities"]
    newest = found.records[-1]["predictions"]
    assert [each["class"] for each in newest] == said.argmax(1).tolist()
    assert [each["score"] for each in newest] == pytest.approx(said.max(1).tolist(), abs=1e-4)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_network_of_one_batch_size_has_predictions(tmp_path, size):
    class Fixed(NullProgram):
        def evaluate(self, batch, names):
            assert [len(part) for part in batch] == [size, size]
            return super().evaluate(batch, names)

    path = tmp_path / "samples.jsonl"
    program = Fixed(5, 3, NullOptions(hidden=4))
    trainer = Trainer(program, batches(), callbacks=[writer(path, batch_size=size)], clock=Clock())
    trainer.train(1)
    said = NullProgram.evaluate(program, samples(), ["probabilities"])["probabilities"]
    (record,) = read_sample_predictions(path).records
    assert [each["class"] for each in record["predictions"]] == said.argmax(1).tolist()


def test_within_an_epoch_the_epoch_is_a_fraction(tmp_path):
    path = tmp_path / "samples.jsonl"
    trained(writer(path, every_k_epochs=0.5), epochs=1)
    assert [(each["step"], each["epoch"]) for each in read_sample_predictions(path).records] == [(3, 0.5), (6, 1)]


def test_the_training_is_bit_equal_with_and_without(tmp_path):
    plain, written = trained().state(), trained(writer(tmp_path / "samples.jsonl", before_train=True)).state()
    assert plain.arrays.keys() == written.arrays.keys()
    for name, array in plain.arrays.items():
        np.testing.assert_array_equal(written.arrays[name], array)


def test_a_resumed_training_writes_no_epoch_twice(tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    trained(writer(whole, before_train=True), epochs=4)
    state = trained(writer(cut, before_train=True), epochs=2).state()
    trained(writer(cut, before_train=True), epochs=3, state=state)  # its last epoch is lost
    with cut.open("a") as file:
        file.write('{"step": 99, "ep')  # a process was killed while it wrote
    trained(writer(cut, before_train=True), epochs=4, state=state)

    one, other = (read_sample_predictions(path) for path in (whole, cut))
    assert [{**each, "time": 0} for each in one.records] == [{**each, "time": 0} for each in other.records]
    assert one.samples == other.samples


def test_the_file_stays_small_and_keeps_first_and_newest(tmp_path):
    path = tmp_path / "samples.jsonl"
    trained(writer(path), epochs=MOST_RECORDS + 20)
    epochs = [each["epoch"] for each in read_sample_predictions(path).records]
    assert len(epochs) <= MOST_RECORDS
    assert (epochs[0], epochs[-1]) == (1, MOST_RECORDS + 20)
    assert epochs == sorted(set(epochs))


def test_thinning_keeps_the_ends():
    assert [each["epoch"] for each in thinned_records([{"epoch": number} for number in range(11)], 6)] == [
        0,
        2,
        4,
        6,
        8,
        10,
    ]


def test_a_file_with_damaged_lines_can_be_read(tmp_path):
    path = tmp_path / "samples.jsonl"
    good = {"step": 1, "epoch": 1.0, "time": 0, "predictions": [{"class": 0}]}
    lines = [json.dumps({"kind": "other", "samples": [{"row": "x"}]}), "{", '{"step": 2}', "[]", json.dumps(good)]
    path.write_text("\n".join(lines) + "\n")

    found = read_sample_predictions(path)

    assert found.kind == "other"
    assert [each["step"] for each in found.records] == [1]
    assert read_sample_predictions(tmp_path / "none.jsonl").records == ()


def test_without_a_folder_the_error_says_what_to_do():
    with pytest.raises(UsageError, match="folder"):
        trained(SamplePredictionWriter(task_samples(()), samples(), _SAMPLES))
