"""What every training gets, and the tutorial's list of callbacks as it stands."""

import io
import subprocess
import sys

import numpy as np
from engine_fakes import Memory, make_batches, make_trainer

import ziggurat.callbacks
from ziggurat.backends.null import NullOptions, NullProgram
from ziggurat.callbacks import (
    DEFAULT_CALLBACKS,
    DEFAULT_MONITORS,
    CheckpointStore,
    ClassificationError,
    EstimatedTimeLeft,
    GPUUtilizationTracker,
    HumanHyperParamSetter,
    InferenceRunner,
    InjectShell,
    JSONWriter,
    MergeAllSummaries,
    MinSaver,
    ModelSaver,
    MovingAverageSummary,
    ProgressBar,
    ScalarPrinter,
    ScheduledHyperParamSetter,
    SendStat,
    TFEventWriter,
    Trainer,
    bind_folder,
    default_callbacks,
    default_monitors,
)
from ziggurat.events import EpochEnded, Progress, ScalarLogged, read_events


def names(callbacks):
    return [type(callback).__name__ for callback in callbacks]


def test_the_defaults_are_visible_lists(tmp_path):
    assert names(default_callbacks()) == [
        "MovingAverageSummary",
        "MergeAllSummaries",
        "ThroughputTracker",
        "StepTimes",
        "EstimatedTimeLeft",
        "ProgressBar",
    ]
    assert names(default_monitors(tmp_path)) == ["EventWriter", "TFEventWriter", "JSONWriter", "ScalarPrinter"]
    assert (default_callbacks, default_monitors) == (DEFAULT_CALLBACKS, DEFAULT_MONITORS)


def test_the_defaults_work_together(tmp_path, capsys):
    make_trainer(*default_callbacks(["cost"]), monitors=default_monitors(tmp_path)).train(2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.jsonl", "stats.json", "tb"]
    lines = JSONWriter.load_existing_json(tmp_path / "stats.json")
    assert [line["epoch_num"] for line in lines] == [1, 2]
    assert set(lines[0]) >= {"cost", "Throughput (steps/sec)", "StepTime/p50_ms", "StepTime/p99_ms"}
    kinds = {type(event) for event in read_events(tmp_path / "events.jsonl")[0]}
    assert kinds >= {ScalarLogged, Progress, EpochEnded}
    captured = capsys.readouterr()
    assert "Epoch 2/2, step 8" in captured.out
    assert "epoch 2/2, step 4/4" in captured.err


def test_the_tutorials_list_runs_as_it_stands(tmp_path):
    samples, classes = 64, 10
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(classes, 8)).astype(np.float32)
    labels = rng.integers(0, classes, samples)
    data = [[centres[labels[at : at + 16]], labels[at : at + 16]] for at in range(0, samples, 16)]

    class WrongTopK(NullProgram):
        """The null program under the names of the tutorial."""

        def names(self):
            return [*super().names(), "wrong-top1", "wrong-top5"]

        def declare(self, names):
            super().declare([name for name in names if not name.startswith("wrong")])

        def evaluate(self, batch, names):
            values = super().evaluate(batch, ["probabilities"])["probabilities"]
            order = values.argsort(1)[:, ::-1]
            hits = order == np.asarray(batch[1])[:, None]
            wrong = {"wrong-top1": ~hits[:, :1].any(1), "wrong-top5": ~hits[:, :5].any(1)}
            return {name: wrong[name] for name in names}

    callbacks = [
        ModelSaver(),
        MinSaver("val-error-top1"),
        InferenceRunner(
            data,
            [ClassificationError("wrong-top1", "val-error-top1"), ClassificationError("wrong-top5", "val-error-top5")],
        ),
        ScheduledHyperParamSetter("learning_rate", [(30, 1e-2), (60, 1e-3), (85, 1e-4), (95, 1e-5)]),
        HumanHyperParamSetter("learning_rate"),
        SendStat('echo -d title="validation error" \\\n-d body={val-error-top1} > /dev/null 2>&1', "val-error-top1"),
        GPUUtilizationTracker(),
        InjectShell(shell="ipython"),
        EstimatedTimeLeft(),
        MovingAverageSummary(),
        ProgressBar(stream=io.StringIO()),
        MergeAllSummaries(),
    ]
    memory = Memory()
    monitors = [TFEventWriter(), JSONWriter(), ScalarPrinter(stream=io.StringIO()), memory]
    bind_folder([*callbacks, *monitors], tmp_path)
    program = WrongTopK(8, classes, NullOptions(learning_rate=0.1))
    Trainer(program, data, callbacks=callbacks, monitors=monitors).train(10)

    errors = dict(memory.points("val-error-top1"))
    assert len(errors) == 10
    best = min(errors, key=lambda step: errors[step])
    assert CheckpointStore(tmp_path / "checkpoints").names() == {"min-val-error-top1": f"step-{best:08d}"}


def test_every_public_name_is_documented():
    for name in ziggurat.callbacks.__all__:
        assert getattr(ziggurat.callbacks, name).__doc__


def test_the_door_imports_no_framework_and_nothing_slow():
    code = (
        "import sys, ziggurat.callbacks; slow = ('tensorflow', 'torch', 'tensorboardX', 'tqdm', 'psutil', 'PIL');"
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_steps_without_anything_to_do_call_nobody():
    batches = make_batches(1)
    trainer = make_trainer(*default_callbacks(), batches=batches, steps_per_epoch=3)
    trainer.setup()
    per_step = {
        type(callback).__name__
        for callback in trainer.callbacks
        if callback.hooks() & {"before_run", "after_run", "trigger_step"}
    }
    assert per_step == {"EstimatedTimeLeft", "ProgressBar"}
