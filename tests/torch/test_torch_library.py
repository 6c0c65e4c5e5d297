"""``ziggurat.torch``: programs of modules, their exact resume, and what is said of wrong ones."""

import itertools
import json
import math
import random
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import library_program
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch_networks import batches, digit_images

import ziggurat.torch as library
from tests.waiting import PROCESS_S, wait_until
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.dataflow.random import fix_rng_seed
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities import EXIT_STOPPED
from ziggurat.errors import (
    CheckpointError,
    ConfigurationError,
    MissingCheckpointError,
    MissingDependencyError,
    NonFiniteError,
    TrainingError,
    UsageError,
)
from ziggurat.events import effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec
from ziggurat.testing import BackendConformance
from ziggurat.torch import (
    Callback,
    ClassificationError,
    InferenceRunner,
    ModelSaver,
    ModuleProgram,
    Options,
    ScalarStats,
    ScheduledHyperParamSetter,
    StopTraining,
    TorchScheduler,
    Trainer,
    load_weights,
    save_weights,
    seed_everything,
)


@pytest.fixture(autouse=True)
def _seeds():
    yield
    fix_rng_seed(None)


def network(*, dropout: float = 0.3) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Dropout(dropout), nn.Linear(8 * 64, 10)
    )


def accuracy(output: Any, y: Any) -> Any:
    return (output.argmax(1) == y).float().mean()


def program(options: Options | None = None, optimizer: Any = torch.optim.SGD, **settings: Any) -> ModuleProgram:
    net = network()
    made = optimizer(net.parameters(), **{"lr": 0.05, **settings})
    chosen = options or Options(seed=1)
    return ModuleProgram(net, made, functional.cross_entropy, scalars={"accuracy": accuracy}, options=chosen)


def digits(count: int, size: int) -> list[Any]:
    return [[x.transpose(0, 3, 1, 2) / 255, y] for x, y in batches(count, size)]


def quiet(trained: ModuleProgram, data: Any, **arguments: Any) -> Trainer:
    return Trainer(trained, data, **{"monitors": [], "extra_callbacks": [], **arguments})


class TestConformance(BackendConformance):
    """A module with a loss of its output."""

    rows_name = "output"
    options: Options = Options(seed=1)
    optimizer: Any = torch.optim.SGD
    settings: dict[str, Any] = {"momentum": 0.9}

    def program(self) -> Any:
        return program(self.options, self.optimizer, **self.settings)

    def batches(self) -> list[Any]:
        return digits(5, 32)


class TestAllOptions(TestConformance):
    options = Options(seed=1, accumulation=3, gradient_clip=1.0, ema_decay=0.9, channels_last=True, precision="bf16")
    optimizer = torch.optim.Adam
    settings = {"lr": 0.003}


class TestBatchLoss(TestConformance):
    """A function of the whole batch, which tells its values itself."""

    rows_name = "wrong"

    def program(self) -> Any:
        net = network()

        def of_batch(batch: Any) -> Any:
            x, y = batch
            output = net(x)
            wrong = (output.argmax(1) != y).float()
            return {"cost": functional.cross_entropy(output, y), "accuracy": 1 - wrong.mean(), "wrong": wrong}

        made = torch.optim.Adagrad(net.parameters(), 0.01)
        return ModuleProgram(net, made, batch_loss=of_batch, scalars=["accuracy"], arrays=["wrong"])


def test_steps_are_those_of_a_plain_loop():
    net, data = network(dropout=0), digits(6, 32)
    made = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    expected = []
    for x, y in data:
        made.zero_grad()
        loss = functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y))
        loss.backward()
        made.step()
        expected.append(loss.item())
    other = network(dropout=0)
    mine = ModuleProgram(other, torch.optim.SGD(other.parameters(), 0.05, momentum=0.9), functional.cross_entropy)
    assert [float(mine.step(batch, ["cost"])["cost"]) for batch in data] == expected
    assert all(torch.equal(one, two) for one, two in zip(net.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("frozen", [False, True])
def test_a_step_without_options_is_that_of_all_others(frozen):
    def trained(others: list[str]) -> list[Any]:
        net = network()
        made = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
        mine = ModuleProgram(net, made, functional.cross_entropy, options=Options(seed=3, ema_decay=0.9))
        costs = []
        for number, batch in enumerate(digits(6, 32)):
            if frozen and number == 3:
                next(net.parameters()).requires_grad = False
            costs.append(mine.step(batch, ["cost", *others])["cost"])
        return [costs, *(array for _, array in sorted(mine.state().items()))]

    # What is asked for besides the cost lets the step take the long way.
    for one, two in zip(trained([]), trained(["learning_rate"]), strict=True):
        np.testing.assert_array_equal(one, two)


def test_parts_of_a_batch_add_up_to_the_whole():
    def trained(parts: int) -> list[Any]:
        net = network(dropout=0)
        made = torch.optim.SGD(net.parameters(), 0.05)
        mine = ModuleProgram(net, made, functional.cross_entropy, options=Options(accumulation=parts))
        costs = [float(mine.step(batch, ["cost"])["cost"]) for batch in digits(3, 10)]
        return [costs, *(each.detach().numpy() for each in net.parameters())]

    for one, two in zip(trained(1), trained(4), strict=True):  # 3, 3, 2 and 2 samples
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=1e-6)


def test_several_losses_train_their_own_parameters():
    net = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(1, 1)})

    def losses(batch: Any) -> Any:
        a = net["a"](batch)
        return [a.pow(2).mean(), (net["b"](a) - 1).pow(2).mean()]

    optimizers = [torch.optim.SGD(net[name].parameters(), 0.1) for name in ("a", "b")]
    mine = ModuleProgram(net, optimizers, batch_loss=losses)
    x = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    before = net["a"].weight.detach().clone()
    net["a"].zero_grad()
    net["a"](torch.from_numpy(x)).pow(2).mean().backward()
    expected = before - 0.1 * net["a"].weight.grad  # of the first loss alone
    mine.step(x, ())
    torch.testing.assert_close(net["a"].weight.detach(), expected)


def test_rates_of_several_groups_keep_their_ratio():
    net = network()
    groups = [{"params": net[0].parameters()}, {"params": net[4].parameters(), "lr": 0.2}]
    made = torch.optim.SGD(groups, 0.1)
    mine = ModuleProgram(net, made, functional.cross_entropy)
    mine.set_hyperparameter("learning_rate", 0.01)
    assert [group["lr"] for group in made.param_groups] == pytest.approx([0.01, 0.02])


class Draws(Dataset):
    """Samples with noise from three generators."""

    def __init__(self) -> None:
        x, y = digit_images()
        self.x, self.y = x[:96].transpose(0, 3, 1, 2) / 255, y[:96]

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, number: int) -> Any:
        noise = np.float32(random.random() + np.random.random() + torch.rand(()).item())
        return torch.from_numpy(self.x[number]) + noise, self.y[number]


def flow() -> Any:
    x, y = digit_images()
    samples = [[one.transpose(2, 0, 1) / 255, label] for one, label in zip(x[:96], y[:96], strict=True)]
    return BatchData(DataFromList(samples, shuffle=True), 16)


LOADERS = {
    "loader": lambda: DataLoader(Draws(), 16, shuffle=True),
    "own generator": lambda: DataLoader(Draws(), 16, shuffle=True, generator=torch.Generator()),
    "workers": lambda: DataLoader(Draws(), 16, shuffle=True, num_workers=2),
    "flow": flow,
}


class StopAt(Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def trigger_step(self) -> None:
        if self.global_step == self.step:
            self.trainer.request_stop()


class Costs(Callback):
    def __init__(self) -> None:
        self.costs: list[float] = []

    def declares(self) -> Any:
        return ("cost",)

    def before_run(self) -> Any:
        return ("cost",)

    def after_run(self, values: Any) -> None:
        self.costs.append(float(values["cost"]))


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("stop", [4, 6, 9])
def test_a_stopped_training_goes_on_bit_for_bit(kind, stop, tmp_path):
    def train(folder: str, *stops: int) -> list[float]:
        costs: list[float] = []
        for number in (*stops, 0):
            seed_everything(5)
            mine, seen = program(Options(), torch.optim.Adam, lr=0.003), Costs()
            schedule = torch.optim.lr_scheduler.MultiStepLR(mine.optimizers[0], [1, 2])
            used = [seen, ModelSaver(), TorchScheduler(schedule), StopAt(number)]
            quiet(mine, LOADERS[kind](), callbacks=used, folder=tmp_path / folder).train(2, resume=True)
            costs += seen.costs
        return costs

    whole, parted = train("whole"), train("parted", stop)
    assert len(whole) == 12
    assert parted == whole


def test_passes_of_a_loader_differ():
    x = torch.arange(64)
    seen: list[list[int]] = []

    class Seen(Callback):
        def trigger_step(self) -> None:
            seen.append(self.trainer.batch[0].tolist())

    net = nn.Linear(1, 1)
    mine = ModuleProgram(
        net, torch.optim.SGD(net.parameters(), 0.0), batch_loss=lambda batch: net(batch[0][:, None].float()).mean()
    )
    quiet(mine, DataLoader(TensorDataset(x), 16, shuffle=True), callbacks=[Seen()]).train(2)
    first, second = list(itertools.chain(*seen[:4])), list(itertools.chain(*seen[4:]))
    assert sorted(first) == sorted(second) == list(range(64))
    assert first != second


def test_validation_counts_every_sample(tmp_path):
    mine = program(Options(seed=1))
    x, y = digit_images()
    x, y = torch.from_numpy(x[:100].transpose(0, 3, 1, 2) / 255), torch.from_numpy(y[:100])
    loader = DataLoader(TensorDataset(x, y), 32)
    trainer = quiet(
        mine, digits(2, 8), callbacks=[InferenceRunner(loader, [ScalarStats("cost"), ClassificationError()])]
    )
    trainer.train(1)
    mine.module.eval()
    with torch.no_grad():
        output = mine.module(x)
    expected = functional.cross_entropy(output, y).item()
    assert trainer.monitors.get_latest("validation_cost") == pytest.approx(expected, rel=1e-5)
    assert trainer.monitors.get_latest("validation_error") == pytest.approx((output.argmax(1) != y).double().mean())


def test_a_loss_that_is_not_finite_names_step_and_value(tmp_path):
    net = nn.Linear(1, 1)
    mine = ModuleProgram(net, torch.optim.SGD(net.parameters(), 0.1), batch_loss=lambda x: net(x).mean())
    data = [np.ones((2, 1), np.float32), np.full((2, 1), np.inf, np.float32)]
    trainer = Trainer(mine, data, callbacks=[ModelSaver(every_k_steps=1)], folder=tmp_path)
    with pytest.raises(NonFiniteError, match="at step 2") as caught:
        trainer.train(1)
    assert caught.value.details["tag"] == "cost"
    assert not math.isfinite(float(caught.value.details["value"]))
    assert caught.value.details["checkpoint"] == "step-00000001"


def test_an_error_in_the_loss_keeps_the_users_line():
    def wrong(output: Any, y: Any) -> Any:
        return output.no_such_thing

    net = network()
    mine = ModuleProgram(net, torch.optim.SGD(net.parameters(), 0.1), wrong)
    with pytest.raises(AttributeError) as caught:
        quiet(mine, digits(1, 4)).train(1)
    assert caught.traceback[-1].name == "wrong"


def test_a_default_training_writes_curves_and_events(tmp_path):
    Trainer(program(), digits(10, 8), callbacks=[ModelSaver()], folder=tmp_path).train(1)
    stats = json.loads((tmp_path / "stats.json").read_text().splitlines()[-1])
    assert {"cost", "accuracy", "epoch_num", "global_step"} <= set(stats)
    assert any((tmp_path / "checkpoints").iterdir())
    assert (tmp_path / "events.jsonl").stat().st_size


def test_a_callback_may_end_the_training():
    class Enough(Callback):
        def trigger_step(self) -> None:
            if self.global_step == 3:
                raise StopTraining("enough")

    trainer = quiet(program(), digits(5, 8), callbacks=[Enough()])
    trainer.train(3)
    assert (trainer.global_step, trainer.finish_reason, trainer.outcome) == (3, "enough", "done")


def test_schedules_of_the_engine_set_the_rate():
    mine = program()
    schedule = ScheduledHyperParamSetter("learning_rate", [(2, 0.005)])
    quiet(mine, digits(2, 8), callbacks=[schedule]).train(3)
    assert mine.optimizers[0].param_groups[0]["lr"] == 0.005


def test_a_plateau_scheduler_judges_the_metric():
    mine = program(Options(seed=1))
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(mine.optimizers[0], factor=0.1, patience=0, threshold=1e9)
    runner = InferenceRunner(digits(1, 8), ScalarStats("cost"))
    quiet(mine, digits(2, 8), callbacks=[runner, TorchScheduler(scheduler, metric="validation_cost")]).train(1)
    assert mine.hyperparameters()["learning_rate"] == pytest.approx(0.005)


def test_weights_come_from_files_and_checkpoints(tmp_path):
    mine = program(Options(ema_decay=0.5))
    quiet(mine, digits(3, 8), callbacks=[ModelSaver()], folder=tmp_path).train(1)
    mine.evaluate(digits(1, 8)[0], ["cost"])  # averaged weights are in their places
    averaged = {name: value.clone() for name, value in mine.module.state_dict().items()}
    save_weights(mine.module, tmp_path / "net.safetensors")
    torch.save(mine.module.state_dict(), tmp_path / "net.pt")
    for path in (tmp_path, tmp_path / "net.safetensors", tmp_path / "net.pt"):
        other = network()
        load_weights(other, path)
        assert all(torch.equal(value, averaged[name]) for name, value in other.state_dict().items())


def test_a_new_head_is_left_by_partial_weights(tmp_path):
    torch.save(network().state_dict(), tmp_path / "net.pt")
    other = network()
    other[4] = nn.Linear(512, 3)
    with pytest.raises(CheckpointError, match="shape"):
        load_weights(other, tmp_path / "net.pt")
    plan = load_weights(other, tmp_path / "net.pt", partial=True)
    assert sorted(plan.restored) == ["model/0.bias", "model/0.weight"]
    with pytest.raises(MissingCheckpointError):
        load_weights(other, tmp_path)


def test_plain_numbers_of_an_optimizer_are_kept(tmp_path):
    class Counting(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for each in group["params"]:
                    self.state[each]["count"] = self.state[each].get("count", 0) + 1
            return super().step(closure)

    mine, other = program(optimizer=Counting), program(optimizer=Counting)
    for batch in digits(3, 8):
        mine.step(batch, ())
    other.load_state(mine.state())
    assert {slots["count"] for slots in other.optimizers[0].state.values()} == {3}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Neither"),
        ({"loss": functional.cross_entropy, "batch_loss": len}, "Both"),
        ({"loss": functional.cross_entropy, "scalars": ["accuracy"]}, "functions"),
        ({"batch_loss": lambda batch: {"loss": 1}}, "cost"),
        ({"batch_loss": lambda batch: torch.zeros(())}, "without a gradient"),
        ({"loss": lambda output, y: output}, "shape"),
        ({"batch_loss": lambda batch: [torch.zeros(()), torch.zeros(())]}, "2 losses"),
    ],
)
def test_wrong_losses_are_told(arguments, said):
    net = network()
    with pytest.raises(ConfigurationError, match=said):
        ModuleProgram(net, torch.optim.SGD(net.parameters(), 0.1), **arguments).step(digits(1, 4)[0], ())


def test_a_later_loss_without_a_gradient_is_told():
    net, batches = network(), digits(2, 4)
    losses = iter([functional.cross_entropy, lambda output, y: functional.cross_entropy(output, y).detach()])
    program = ModuleProgram(net, torch.optim.SGD(net.parameters(), 0.1), lambda *given: next(losses)(*given))
    program.step(batches[0], ())
    with pytest.raises(ConfigurationError, match="without a gradient"):
        program.step(batches[1], ())


def test_random_numbers_of_a_step_follow_from_its_number_alone():
    drawn: list[list[float]] = [[], []]
    for each, starts in zip(drawn, ((0,), (0, 255, 300)), strict=True):

        def noisy(output, y, each=each):
            each.append(torch.rand(()).item())
            return functional.cross_entropy(output, y)

        torch.manual_seed(3)
        net = network()
        program = ModuleProgram(net, torch.optim.SGD(net.parameters(), 0.01), noisy)
        ends = (*starts[1:], 320)
        for start, end in zip(starts, ends, strict=True):
            program.step_count = start  # as after a resume
            for batch in digits(end - start, 1):
                program.step(batch, ())
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 320


@pytest.mark.parametrize(
    "options", [{"precision": "int8"}, {"accumulation": 0}, {"gradient_clip": 0}, {"ema_decay": 1}]
)
def test_wrong_options_are_told(options):
    with pytest.raises(ConfigurationError):
        Options(**options)


def test_an_optimizer_of_another_module_is_told():
    with pytest.raises(ConfigurationError, match="10 of"):
        net = network()
        strange = torch.optim.SGD([*net.parameters(), *(nn.Parameter(torch.zeros(1)) for _ in range(10))], 0.1)
        ModuleProgram(net, strange, functional.cross_entropy)


def test_resume_without_a_saver_is_told():
    with pytest.raises(UsageError, match="ModelSaver"):
        quiet(program(), digits(2, 8)).train(1, resume=True)


def test_a_lost_process_is_told_apart_from_other_errors():
    from ziggurat.torch.processes import lost_processes

    with pytest.raises(TrainingError, match="has ended"), lost_processes():
        raise RuntimeError("[gloo/transport/tcp/pair.cc:1] Connection closed by peer [127.0.0.1]:2")
    with pytest.raises(RuntimeError, match="mat1"), lost_processes():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def started(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Return a process that trains."""
    words = [str(folder), "3", "--dropout", "0.2", *options]
    return subprocess.Popen([sys.executable, library_program.__file__, *words], stdin=subprocess.DEVNULL)


def test_a_missing_pytorch_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "ziggurat.torch.program")
    monkeypatch.delattr(library, "Options", raising=False)
    with pytest.raises(MissingDependencyError, match="torch"):
        _ = library.Options


def test_a_wrong_name_of_the_library_names_the_nearest():
    with pytest.raises(AttributeError, match="ModuleProgram"):
        _ = library.ModulePrograms


def steps_of(folder: Path) -> int:
    path = folder / "steps-0"
    return len(path.read_text().split()) if path.exists() else 0


@pytest.mark.timeout(600)
def test_a_killed_program_goes_on_bit_for_bit(tmp_path):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    assert started(whole).wait() == 0
    drawn = random.Random(7)
    for _ in range(3):
        until = steps_of(parted) + drawn.randint(2, 9)
        process = started(parted, "--slow", "0.02")

        def arrived(process: Any = process, until: int = until) -> bool:
            assert process.poll() is None, "it has ended before the kill"
            return steps_of(parted) >= until

        wait_until(arrived, PROCESS_S, every_s=0.005)
        process.kill()
        process.wait()
    assert started(parted).wait() == 0
    name = "final-0.safetensors"
    assert (parted / name).read_bytes() == (whole / name).read_bytes()
    assert steps_of(whole) == 39
    assert steps_of(parted) > 39, "steps behind the last checkpoint were taken again"


EXAMPLE = Path(__file__).parents[2] / "examples/torch/digits.py"


def run_example(*options: str) -> None:
    sys.argv = [str(EXAMPLE), *options]
    runpy.run_path(str(EXAMPLE), run_name="__main__")


def test_the_example_learns_the_digits(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    run_example("--epochs", "4", "--folder", str(tmp_path))
    run_example("--epochs", "5", "--folder", str(tmp_path))
    lines = [json.loads(line) for line in (tmp_path / "stats.json").read_text().splitlines()]
    assert [line["epoch_num"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[-1]["validation_accuracy"] > 0.9


def attempt(job: JobFolder) -> int:
    """Run one attempt of a job in a worker; return its exit code."""
    command = [sys.executable, "-m", "ziggurat.worker", str(job.path)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


def job_of(folder: Path, *options: str) -> JobFolder:
    job = JobFolder(folder)
    job.program.mkdir(parents=True)
    (job.program / "train.py").write_text(Path(library_program.__file__).read_text())
    words = [str(folder / "elsewhere"), "3", "--dropout", "0.2", *options]
    content = {"kind": "program", "version": 1, "script": "train.py", "arguments": words, "seed": 3}
    save_spec(parse_spec(content), job.spec)
    return job


@pytest.mark.nightly
def test_a_submitted_program_stops_dies_and_goes_on(tmp_path):
    whole, struck = job_of(tmp_path / "whole"), job_of(tmp_path / "struck", "--terminate-at", "5", "--die-at", "18")
    assert attempt(whole) == 0, whole.log.read_text()
    assert [attempt(struck) for _ in range(3)] == [EXIT_STOPPED, -signal.SIGKILL, 0], struck.log.read_text()
    (one, state, _), (other, resumed, _) = (
        CheckpointStore(job.checkpoints, writable=False).latest() for job in (whole, struck)
    )
    assert one.name == other.name == "step-00000039"
    assert state.arrays.keys() == resumed.arrays.keys()
    for name, array in state.arrays.items():
        np.testing.assert_array_equal(array, resumed.arrays[name], err_msg=name)
    curves = [
        {(each.tag, each.step): each.value for each in effective_scalars(read_events(job.events)[0])}
        for job in (whole, struck)
    ]
    assert {tag for tag, _ in curves[0]} >= {"cost", "accuracy", "learning_rate"}
    kept = [{key: value for key, value in each.items() if key[0] in ("cost", "accuracy")} for each in curves]
    assert kept[0] == kept[1]
