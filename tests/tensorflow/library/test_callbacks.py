"""The tutorial's callbacks over a training on graphs: moments, setters, trackers, defaults, and its ResNet list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from callback_trainings import SIGNATURE, flow, optimizer, tower, train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import (
    ClassificationError,
    EstimatedTimeLeft,
    GPUUtilizationTracker,
    HumanHyperParamSetter,
    HyperParamSetterWithFunc,
    InjectShell,
    JSONWriter,
    Monitor,
    MovingAverageSummary,
    PeriodicCallback,
    PeriodicTrigger,
    ProgressBar,
    ScalarPrinter,
    ScheduledHyperParamSetter,
    SendStat,
    StatMonitorParamSetter,
    TFEventWriter,
)
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.events import Event, Message, Progress
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import TrainConfig, launch_train_with_config
from ziggurat.tf.defaults import DEFAULT_CALLBACKS, DEFAULT_MONITORS, MergeAllSummaries
from ziggurat.tf.graph_callbacks import GraphVarParam, RunUpdateOps
from ziggurat.tf.inference import InferenceRunner
from ziggurat.tf.model import ModelDesc
from ziggurat.tf.savers import MinSaver, ModelSaver
from ziggurat.tf.summary import add_moving_summary
from ziggurat.tf.trainers import SimpleTrainer


@pytest.fixture(autouse=True)
def _no_folder_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)


class Notes(Monitor):
    """Keeps the messages and events of a training."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def process_event(self, event: Event) -> None:
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Message)]


class Rates(Callback):
    """Notes the learning rate of every step."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def _before_run(self, _: Any) -> Any:
        return ["learning_rate"]

    def _after_run(self, _: Any, values: Any) -> None:
        self.seen.append(round(float(values.results[0]), 6))


def test_tutorial_48_moments_of_callbacks() -> None:
    seen: list[str] = []

    class Moments(Callback):
        def _setup_graph(self) -> None:
            seen.append(f"setup_graph final={self.graph.finalized}")

        def _before_train(self) -> None:
            seen.append(f"before_train final={self.graph.finalized}")

        def _before_epoch(self) -> None:
            seen.append(f"before_epoch {self.epoch_num}")

        def _before_run(self, ctx: Any) -> Any:
            seen.append("before_run")
            return tf.train.SessionRunArgs({"cost": "cost:0", "many": ["linear/b", self.trainer.train_op]})

        def _after_run(self, ctx: Any, values: Any) -> None:
            assert values.results["cost"] > 0
            assert values.results["many"][0].shape == (3,)
            assert values.results["many"][1] is None
            seen.append("after_run")

        def _trigger_step(self) -> None:
            seen.append(f"trigger_step {self.global_step} {self.local_step}")

        def _after_epoch(self) -> None:
            seen.append("after_epoch")

        def _trigger_epoch(self) -> None:
            seen.append("trigger_epoch")
            self.trigger()

        def _trigger(self) -> None:
            seen.append("trigger")

        def _after_train(self) -> None:
            seen.append("after_train")

    train([Moments()], epochs=1, steps=2)

    assert seen == [
        "setup_graph final=False",
        "before_train final=True",
        "before_epoch 1",
        "before_run",
        "after_run",
        "trigger_step 1 0",
        "before_run",
        "after_run",
        "trigger_step 2 1",
        "after_epoch",
        "trigger_epoch",
        "trigger",
        "after_train",
    ]


@pytest.mark.parametrize("param", ["learning_rate", "learning_rate:0", GraphVarParam("learning_rate:0")])
def test_tutorial_52_rate_by_epochs(param: Any) -> None:
    rates = Rates()
    train([ScheduledHyperParamSetter(param, [(0, 0.5), (1, 0.25), (3, 0.0)]), rates], epochs=4, steps=2)

    assert rates.seen == [0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.0, 0.0]


def test_tutorial_52_rate_by_steps_and_lines() -> None:
    stepped, straight, late = Rates(), Rates(), Rates()
    schedule = [(0, 0.4), (4, 0.0)]
    train([ScheduledHyperParamSetter("learning_rate", schedule, step_based=True), stepped], epochs=1, steps=6)
    train([ScheduledHyperParamSetter("learning_rate", schedule, interp="linear"), straight], epochs=5, steps=1)
    train([ScheduledHyperParamSetter("learning_rate", schedule, set_at_beginning=False), late], epochs=1, steps=1)

    assert stepped.seen == [0.4, 0.4, 0.4, 0.4, 0.0, 0.0]
    assert straight.seen == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.0])
    assert late.seen == [0.1]


def test_tutorial_53_rate_by_a_file(tmp_path: Path) -> None:
    class Writes(Callback):
        def _trigger_epoch(self) -> None:
            if self.epoch_num == 1:
                (tmp_path / "hyper.txt").write_text("learning_rate:0.0625\n")

    rates = Rates()
    train([Writes(), HumanHyperParamSetter("learning_rate"), rates], folder=tmp_path, epochs=3, steps=1)

    assert rates.seen == [0.1, 0.0625, 0.0625]


def test_setters_with_functions_and_plateaus() -> None:
    class Puts(Callback):
        def _trigger_epoch(self) -> None:
            self.trainer.monitors.put_scalar("score", 1.0)

    halved, plateau = Rates(), Rates()
    train([HyperParamSetterWithFunc("learning_rate", lambda epoch, old: old / 2 if epoch else None), halved], steps=1)
    setter = StatMonitorParamSetter("learning_rate", "score", lambda old: old * 0.5, 0.01, 2, True)
    train([setter, Puts(), plateau], epochs=4, steps=1)

    assert halved.seen == [0.1, 0.05]
    assert plateau.seen == pytest.approx([0.1, 0.1, 0.05, 0.05])


def test_graph_variables_as_parameters() -> None:
    param, counter = GraphVarParam("linear/b", (3,)), GraphVarParam("count")

    class Sets(Callback):
        def _setup_graph(self) -> None:
            tf.get_variable("count", initializer=3, trainable=False)
            param.bind(self.trainer)
            counter.bind(self.trainer)

        def _trigger_epoch(self) -> None:
            param.set_value([1, 2, 3])
            counter.set_value(5.0)
            with pytest.raises(ConfigurationError, match="whole numbers"):
                counter.set_value(0.5)
            assert param.get_value().tolist() == [1.0, 2.0, 3.0]
            assert counter.get_value() == 5

    values = variables(train([Sets()], epochs=1, steps=1))
    assert values["linear/b"].tolist() == [1.0, 2.0, 3.0]
    assert values["count"] == 5
    with pytest.raises(UnknownNameError, match="learning_rate"):
        train([ScheduledHyperParamSetter(GraphVarParam("learning_rat"), [(0, 1.0)])], epochs=1)
    with pytest.raises(UnknownNameError, match="learning_rate"):
        train([ScheduledHyperParamSetter("learning_rat", [(0, 1.0)])], epochs=1)


def test_tutorial_54_send_stat_runs_a_command(tmp_path: Path) -> None:
    runner = InferenceRunner(flow(21, 8, 9, False), ClassificationError("wrong-top1", "val-error-top1"))
    command = f"touch {tmp_path}/error-{{val-error-top1}} > /dev/null 2>&1"
    trainer = train([SendStat(command, "val-error-top1"), runner], epochs=1)

    [sent] = tmp_path.iterdir()
    assert float(sent.name.removeprefix("error-")) == pytest.approx(trainer.monitors.get_latest("val-error-top1"))


def test_tutorial_55_no_gpu_is_said_once() -> None:
    if tf.config.list_physical_devices("GPU"):
        pytest.skip("there is a GPU")
    notes = Notes()
    train([GPUUtilizationTracker()], monitors=[notes], epochs=3)

    assert sum("GPUUtilizationTracker" in text for text in notes.texts) == 1


def test_tutorial_56_a_file_asks_for_a_shell(tmp_path: Path) -> None:
    class Touches(Callback):
        def _trigger_epoch(self) -> None:
            if self.epoch_num == 2:
                (tmp_path / "INJECT_SHELL.tmp").touch()

    notes = Notes()
    train([Touches(), InjectShell(shell="ipython")], folder=tmp_path, monitors=[notes], epochs=3)

    assert [text for text in notes.texts if "shell" in text] == [
        "INJECT_SHELL.tmp asks for a shell, but standard input is not a terminal."
    ]
    assert not (tmp_path / "INJECT_SHELL.tmp").exists()


def test_tutorial_57_time_left_is_said() -> None:
    notes = Notes()
    train([EstimatedTimeLeft()], monitors=[notes, ScalarPrinter()], epochs=3)

    said = [event for event in notes.events if isinstance(event, Progress)]
    assert [(event.epoch, event.total_steps) for event in said][-3:] == [(1, 24), (2, 24), (3, 24)]
    assert said[-2].remaining_s is not None
    assert said[-1].remaining_s == 0


class Model(ModelDesc):
    """The linear classifier, with a moving summary and an update of statistics."""

    def inputs(self) -> Any:
        return SIGNATURE

    def build_graph(self, *args: Any) -> Any:
        cost = tower(*args)
        add_moving_summary(cost)
        seen = tf.get_variable("seen", initializer=0, trainable=False, dtype=tf.int32)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, seen.assign_add(1))
        return cost

    def optimizer(self) -> Any:
        return optimizer()


def launch(**arguments: Any) -> SimpleTrainer:
    with tf.Graph().as_default():
        trainer = SimpleTrainer()
        given = {"dataflow": flow(), "model": Model(), "steps_per_epoch": 4, "max_epoch": 3, **arguments}
        launch_train_with_config(TrainConfig(**given), trainer)
    return trainer


def test_tutorial_58_default_callbacks_are_added(tmp_path: Path) -> None:
    logger.set_logger_dir(tmp_path, "keep")
    trainer = launch()

    kinds = [type(callback) for callback in trainer.callbacks]
    for kind in (MovingAverageSummary, ProgressBar, MergeAllSummaries, RunUpdateOps):
        assert kinds.count(kind) == 1
    assert [type(each) for each in DEFAULT_CALLBACKS()] == [kind for kind in kinds if not issubclass(kind, Monitor)]
    assert variables(trainer)["seen"] == 12  # RunUpdateOps with every step
    assert [step for step, _ in trainer.monitors.get_history("cost")] == [4, 8, 12]


def test_tutorial_59_default_monitors_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logger.set_logger_dir(tmp_path, "keep")
    trainer = launch()

    kinds = {type(each) for each in DEFAULT_MONITORS()}
    assert {TFEventWriter, JSONWriter, ScalarPrinter} <= kinds
    lines = [json.loads(line) for line in (tmp_path / "stats.json").read_text().splitlines()]
    assert lines[-1]["cost"] == pytest.approx(trainer.monitors.get_latest("cost"))
    [events] = tmp_path.rglob("events.out.tfevents.*")
    tags = {value.tag for event in tf.train.summary_iterator(str(events)) for value in event.summary.value}
    assert "cost" in tags
    shown = capsys.readouterr()
    assert "cost" in shown.out + shown.err


def test_tutorial_60_defaults_are_replaceable() -> None:
    notes = Notes()
    trainer = launch(extra_callbacks=[ProgressBar(["cost"])], monitors=[notes])

    assert [type(callback) for callback in trainer.callbacks] == [ProgressBar, Notes]
    assert variables(trainer)["seen"] == 0


def test_tutorial_48_to_60_resnet_list_runs_as_printed(tmp_path: Path) -> None:
    logger.set_logger_dir(tmp_path, "keep")
    dataset_val = flow(21, 8, seed=9, shuffle=False)
    notes = Notes()
    trainer = launch(
        callbacks=[
            # save the model every epoch
            ModelSaver(),
            # backup the model with best validation error
            MinSaver("val-error-top1"),
            # run inference on another Dataflow every epoch, compute classification error and log to monitors
            InferenceRunner(
                dataset_val,
                [
                    ClassificationError("wrong-top1", "val-error-top1"),
                    ClassificationError("wrong-top5", "val-error-top5"),
                ],
            ),
            # schedule the learning rate based on epoch number
            ScheduledHyperParamSetter("learning_rate", [(30, 1e-2), (60, 1e-3), (85, 1e-4), (95, 1e-5)]),
            # can manually change the learning rate through a file, without interrupting training
            HumanHyperParamSetter("learning_rate"),
            # send validation error to my phone, here by a harmless command
            SendStat(
                'true -d type=note -d title="validation error" -d body={val-error-top1} > /dev/null 2>&1',
                "val-error-top1",
            ),
            # record GPU utilizations during training
            GPUUtilizationTracker(),
            # touch a file to pause the training and start a debug shell, to observe what's going on
            InjectShell(shell="ipython"),
            # estimate time until completion
            EstimatedTimeLeft(),
        ]
        + [  # these callbacks are enabled by default already, though you can customize them
            # maintain those moving average summaries defined in the model (e.g. training loss, training error)
            MovingAverageSummary(),
            # draw a progress bar
            ProgressBar(),
            # run `tf.summary.merge_all` every epoch and log to monitors
            MergeAllSummaries(),
            # run ops in GraphKeys.UPDATE_OPS collection along with training, if any
            RunUpdateOps(),
        ],
        extra_callbacks=[],
        monitors=[
            # write everything to tensorboard
            TFEventWriter(),
            # write all scalar data to a json file, for easy parsing
            JSONWriter(),
            # print all scalar data every epoch (can be configured differently)
            ScalarPrinter(),
            notes,
        ],
    )

    history = trainer.monitors.get_history("val-error-top1")
    best = min(history, key=lambda point: point[1])[0]
    for name, step in (("min-val-error-top1", best), ("model-12", 12)):
        assert int(tf.train.NewCheckpointReader(str(tmp_path / name)).get_tensor("global_step")) == step
    assert trainer.monitors.get_latest("val-error-top5") == 0.0
    assert not any("SendStat" in text or "failed" in text for text in notes.texts), notes.texts
    assert (tmp_path / "stats.json").is_file()


def test_periodic_wrappers_over_graph_callbacks() -> None:
    every, triggered = Rates(), [0]

    class Counts(Callback):
        def _trigger(self) -> None:
            triggered[0] += 1

    train([PeriodicCallback(every, every_k_steps=3), PeriodicTrigger(Counts(), every_k_steps=2)], epochs=1, steps=8)

    assert len(every.seen) == 2
    assert triggered == [4]
