"""Behaviors 76 to 82 of DIGITS: what can be seen of a job while it runs, and what stays the same."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digits_jobs import LINEAR, program_of, small_spec, train
from tensorflow_networks import batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("tensorboard", reason="TensorBoard is not installed")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.waiting import wait_until
from ziggurat.callbacks import Callback, EstimatedTimeLeft, Monitor, Trainer, make_schedule, preview
from ziggurat.dataflow.formats.serializers import SavedFlow
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.events import Event, HyperparameterChanged, Progress, effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.records import create_records, open_records, pack
from ziggurat.settings import Settings
from ziggurat.worker.build import build_job
from ziggurat.worker.commands.evaluation import evaluate

ONLY_STEPS = {"validation": {"every_epochs": 0}, "checkpoints": {"every_epochs": 0}}
"""Nothing between the steps, for jobs of many short epochs."""


# ---- 76: a checkpoint is the network


def test_76_a_reloaded_checkpoint_predicts_the_same_bit_for_bit(tmp_path: Path) -> None:
    pictures = batches(1, 32)[0][0]
    first, _ = program_of(small_spec())
    for batch in batches(4, 32):
        first.step(batch, ())
    CheckpointStore(tmp_path).save(RunState({"global_step": 4, "epoch_num": 1}, first.state()))
    second, _ = program_of(small_spec(seed=8))
    (predicted,) = first.predict(pictures)
    assert not np.array_equal(second.predict(pictures)[0], predicted)
    newest = CheckpointStore(tmp_path, writable=False).latest()
    assert newest is not None
    second.load_state(newest[1].arrays)
    np.testing.assert_array_equal(second.predict(pictures)[0], predicted)


def test_76_a_finished_job_is_as_good_as_it_was_in_training(tmp_path: Path) -> None:
    job = train(tmp_path / "job", epochs=3)
    figures = evaluate({"folder": str(job.folder)})
    for tag in ("cost", "accuracy"):
        assert figures["scalars"][tag] == pytest.approx(job.curve(f"validation_{tag}")[-1][1], rel=1e-5)


# ---- 77: the same again


def costs_of_steps(steps: int) -> list[float]:
    program, data = program_of(small_spec(shuffle=False))
    found = [float(program.step(batch, ("cost",))["cost"]) for batch in itertools.islice(data.train, steps)]
    program.close()
    return found


def test_77_the_same_seed_gives_the_same_costs_at_every_step() -> None:
    first = costs_of_steps(30)
    assert costs_of_steps(30) == first
    assert len(set(first)) == 30


def test_77_and_the_same_curves_and_weights_of_a_job(tmp_path: Path) -> None:
    one, other = (train(tmp_path / name, epochs=2, shuffle=False) for name in ("one", "other"))
    for tag in ("cost", "accuracy", "validation_cost", "validation_accuracy"):
        assert one.curve(tag) == other.curve(tag)
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(other.arrays[name], array, err_msg=name)


# ---- 78, 79: the learning rate


def test_78_a_33_percent_step_over_30_epochs_falls_at_33_66_99(tmp_path: Path) -> None:
    schedule = {"policy": "step", "step_percent": 33, "gamma": 0.1}
    job = train(
        tmp_path / "job", LINEAR, epochs=30, steps_per_epoch=10, learning_rate=0.01, schedule=schedule, **ONLY_STEPS
    )
    falls = [(each.step, each.value) for each in job.said(HyperparameterChanged) if each.value < each.previous / 2]
    assert [step for step, _ in falls] == [99, 198, 297]  # of 300
    assert [rate for _, rate in falls] == pytest.approx([0.001, 0.0001, 0.00001])
    assert (90, 0.01) in job.curve("learning_rate")
    assert job.curve("learning_rate")[-1] == (300, pytest.approx(0.00001))


@pytest.mark.parametrize("policy", ["fixed", "step", "multistep", "exp", "inv", "poly", "sigmoid"])
def test_79_the_101_points_of_the_preview_are_the_used_rates(tmp_path: Path, policy: str) -> None:
    job = train(tmp_path / "job", LINEAR, epochs=100, steps_per_epoch=1, schedule=policy, **ONLY_STEPS)
    options = small_spec(schedule=policy).schedule.model_dump(exclude={"policy"})
    points = preview(make_schedule(policy, **options), 0.05)
    assert [percent for percent, _ in points] == list(range(101))
    # Step n of 100 begins at n - 1 percent; no step begins at 100.
    assert job.curve("learning_rate") == [(step + 1, rate) for step, (_, rate) in enumerate(points[:100])]


# ---- 80, 81: what others see while it trains


class Onlooker(Callback):
    """Looks, as another process would, at the files of a job: after each epoch but the last."""

    def __init__(self, folder: Path) -> None:
        self.folder = JobFolder(folder)
        self.curves: list[dict[str, list[int]]] = []
        self.boards: list[dict[str, list[int]]] = []
        self.graphs: list[bool] = []
        self.arrived = False

    def before_epoch(self) -> None:
        if self.global_step:
            self.curves.append(curves_in(self.folder))
            self.boards.append(board_in(self.folder))
            self.graphs.append(accumulated(self.folder).Tags()["graph"])

    def trigger_step(self) -> None:
        if self.global_step == 5:
            self.trainer.put("in_the_middle", 1.0)
            self.arrived = wait_until(lambda: "in_the_middle" in curves_in(self.folder), 60)


def curves_in(folder: JobFolder) -> dict[str, list[int]]:
    """Return tag → steps in the file of events."""
    found: dict[str, list[int]] = {}
    for scalar in effective_scalars(read_events(folder.events)[0]):
        found.setdefault(scalar.tag, []).append(scalar.step)
    return found


def accumulated(folder: JobFolder) -> EventAccumulator:
    accumulator = EventAccumulator(str(folder.tensorboard))
    accumulator.Reload()
    return accumulator


def board_in(folder: JobFolder) -> dict[str, list[int]]:
    """Return tag → steps that TensorBoard reads."""
    board = accumulated(folder)
    return {tag: [point.step for point in board.Scalars(tag)] for tag in board.Tags()["scalars"]}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Onlooker:
    """Somebody who watched a job of three epochs."""
    folder = tmp_path_factory.mktemp("watched")
    onlooker = Onlooker(folder)
    spec = small_spec(epochs=3, monitors=["events", "tensorboard"])
    built = build_job(spec, onlooker.folder, onlooker, Settings())
    built.trainer.train(spec.epochs)
    built.trainer.program.close()
    return onlooker


@pytest.mark.parametrize("tag", ["cost", "accuracy", "learning_rate", "validation_cost", "validation_accuracy"])
def test_80_tensorboard_loads_the_scalars_while_it_trains(watched: Onlooker, tag: str) -> None:
    expected = [[0, 20], [0, 20, 40]] if tag.startswith("validation") else [[*range(1, 21)], [*range(1, 41)]]
    assert [board[tag] for board in watched.boards] == expected


def test_80_tensorboard_loads_the_graph_of_the_job(watched: Onlooker) -> None:
    assert watched.graphs == [True, True]
    operations = {node.name: node.op for node in accumulated(watched.folder).Graph().node}
    assert operations["x"] == "Placeholder"
    assert operations["model/conv1/weights"] == "VarHandleOp"
    assert "Conv2D" in {op for name, op in operations.items() if name.startswith("train/") and "conv1" in name}


def test_80_tensorboard_has_the_numbers_of_the_events(watched: Onlooker) -> None:
    board = accumulated(watched.folder)
    scalars = list(effective_scalars(read_events(watched.folder.events)[0]))
    for tag in ("cost", "accuracy", "learning_rate"):
        expected = [np.float32(each.value) for each in scalars if each.tag == tag]
        assert [np.float32(point.value) for point in board.Scalars(tag)] == expected


@pytest.mark.parametrize("tag", ["cost", "accuracy", "learning_rate"])
def test_81_the_series_are_there_while_it_trains(watched: Onlooker, tag: str) -> None:
    assert [curves[tag] for curves in watched.curves] == [[*range(1, 21)], [*range(1, 41)]]


def test_81_a_number_arrives_within_5_s_in_mid_epoch(watched: Onlooker) -> None:
    assert watched.arrived


class Clock(Callback):
    """A time that passes with the steps: 2 s each."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def trigger_step(self) -> None:
        self.now_s += 2.0


class Listener(Monitor):
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def process_event(self, event: Event) -> None:
        self.events.append(event)


def test_81_the_time_left_is_said_and_decreases_to_nothing() -> None:
    program, data = program_of(small_spec())
    clock, listener = Clock(), Listener()
    time_left = EstimatedTimeLeft(every_s=1.0, clock=lambda: clock.now_s)
    Trainer(program, data.train, callbacks=[clock, time_left], monitors=[listener], steps_per_epoch=4).train(3)
    said = [event for event in listener.events if isinstance(event, Progress)]
    left = {event.global_step: event.remaining_s for event in said}
    assert left == {step: 2.0 * (12 - step) for step in range(1, 13)}


# ---- 82: where the data comes from


def trained_on(path: Path, record_format: str) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Return the costs of three epochs on 320 digits in a store of this format, shuffled, and the weights."""
    pictures, labels = (np.concatenate(parts) for parts in zip(*batches(10, 32), strict=True))
    with create_records(path, record_format) as writer:
        for number, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
            writer.append(f"digit-{number}", pack([picture, int(label)]))
    flow = BatchData(SavedFlow(open_records(path), shuffle=True), 32).seed(2)
    program, _ = program_of(small_spec())
    costs = Costs()
    Trainer(program, flow, callbacks=[costs]).train(3)
    state = program.state()
    program.close()
    flow.close()
    return costs.found, state


class Costs(Callback):
    """Keeps the cost of every step."""

    def __init__(self) -> None:
        self.found: list[float] = []

    def declares(self) -> list[str]:
        return ["cost"]

    def before_run(self) -> list[str]:
        return ["cost"]

    def after_run(self, values: Any) -> None:
        self.found.append(float(values["cost"]))


def test_82_hdf5_trains_exactly_as_lmdb_does(tmp_path: Path) -> None:
    costs, weights = trained_on(tmp_path / "digits.lmdb", "lmdb")
    other_costs, other_weights = trained_on(tmp_path / "digits.h5", "hdf5")
    assert len(costs) == 30
    assert np.mean(costs[-10:]) < np.mean(costs[:10])
    assert other_costs == costs
    for name, array in weights.items():
        np.testing.assert_array_equal(other_weights[name], array, err_msg=name)
