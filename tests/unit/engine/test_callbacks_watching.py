"""Watching: progress, time left, throughput, step times, memory, GPUs."""

import io

import pytest
from engine_fakes import Clock, FakeProgram, Memory, make_trainer, train

from tests.waiting import take_time
from ziggurat.callbacks import (
    Callback,
    EstimatedTimeLeft,
    GPUMemoryTracker,
    GPUUtilizationTracker,
    HostMemoryTracker,
    ProgressBar,
    StepTimes,
    ThroughputTracker,
)
from ziggurat.engine.callbacks.timing import verdict
from ziggurat.engine.monitor import duration_text
from ziggurat.errors import ConfigurationError
from ziggurat.events import Message, Progress
from ziggurat.nvidia import NvidiaError


class Terminal(io.StringIO):
    """A stream with somebody in front of it."""

    def isatty(self):
        return True


class Tick(Callback):
    """Lets a clock go on with every step."""

    def __init__(self, clock, tick_s=1.0):
        self.clock, self.tick_s = clock, tick_s

    def trigger_step(self):
        self.clock.now += self.tick_s


class StopAt(Callback):
    def __init__(self, step):
        self.step = step

    def trigger_step(self):
        if self.global_step == self.step:
            self.trainer.request_stop()


# ---- progress


def test_without_a_terminal_there_is_a_line_now_and_then():
    clock, stream = Clock(), io.StringIO()
    program = FakeProgram(costs=float)
    train(Tick(clock), ProgressBar(["cost"], every_s=2, stream=stream, clock=clock), program=program, epochs=2)
    assert stream.getvalue().splitlines() == [
        "epoch 1/2, step 3/4, 1 steps/s, 1.0 s left in the epoch, cost=3",
        "epoch 1/2, step 4/4, 1 steps/s, cost=4",
        "epoch 2/2, step 3/4, 1 steps/s, 1.0 s left in the epoch, cost=7",
        "epoch 2/2, step 4/4, 1 steps/s, cost=8",
    ]
    assert program.fetched == [(), (), ("cost",), ("cost",)] * 2  # only what is shown


def test_on_a_terminal_there_is_a_bar():
    stream = Terminal()
    train(ProgressBar(["cost"], stream=stream, every_s=0), program=FakeProgram(costs=float))
    last = stream.getvalue().split("\r")[-1]
    assert last.startswith("Epoch 1/1: 100%")
    assert "4/4" in last
    assert "cost=4" in last


def test_a_bar_that_is_resumed_in_mid_epoch_begins_where_it_was():
    first = make_trainer(ProgressBar(mode="off"), StopAt(2))
    first.train(1)
    stream = Terminal()
    second = make_trainer(ProgressBar(stream=stream, every_s=0))
    second.load_state(first.state())
    second.train(1)
    shown = [part for part in stream.getvalue().split("\r") if part.strip()]
    assert "2/4" in shown[0]
    assert "4/4" in shown[-1]


def test_the_rate_of_a_resumed_epoch_counts_its_own_steps_only():
    first = make_trainer(StopAt(2), ProgressBar(mode="off"))
    first.train(1)
    clock, stream = Clock(), io.StringIO()
    second = make_trainer(Tick(clock), ProgressBar(mode="lines", stream=stream, clock=clock))
    second.load_state(first.state())
    second.train(1)
    assert stream.getvalue() == "epoch 1/1, step 4/4, 1 steps/s\n"


def test_an_error_leaves_no_bar_open():
    class Fail(Callback):
        def trigger_step(self):
            raise ValueError("planted")

    stream = Terminal()
    with pytest.raises(ValueError, match="planted"):
        train(ProgressBar(stream=stream), Fail())
    assert stream.getvalue().endswith("\n")


def test_a_bar_that_is_off_costs_nothing():
    assert ProgressBar(["cost"], mode="off").hooks() == frozenset()
    with pytest.raises(ConfigurationError, match=r"`mode` must be `auto`, `bar`, `lines` or `off` \(received: dots\)."):
        ProgressBar(mode="dots")


# ---- time left


def test_progress_is_said_each_second_and_after_each_epoch():
    clock = Clock()
    memory = train(EstimatedTimeLeft(clock=clock), Tick(clock, 0.5), epochs=2)
    progress = memory.of_type(Progress)
    assert [event.global_step for event in progress] == [3, 4, 7, 8]
    assert [event.total_steps for event in progress] == [8, 8, 8, 8]
    assert progress[0].steps_per_s == pytest.approx(3.0)  # its own hook comes before the clock goes on
    assert 0 <= progress[0].data_wait_share <= 1
    assert progress[-1].remaining_s == 0


def test_typical_epochs_make_the_estimate():
    class SlowEpoch(Callback):
        def __init__(self, clock, times_s):
            self.clock, self.times_s = clock, times_s

        def trigger(self):
            self.clock.now += self.times_s[self.epoch_num - 1]

    def last_estimate(**options):
        clock = Clock()
        callbacks = [SlowEpoch(clock, [10, 10, 100, 10, 10, 10]), EstimatedTimeLeft(clock=clock, **options)]
        memory = train(*callbacks, epochs=6)
        return memory.of_type(Progress)[3].remaining_s  # after epoch 4, when three epochs have been measured

    assert last_estimate() == pytest.approx(20)
    assert last_estimate(median=False) == pytest.approx(80)
    assert last_estimate(last_k_epochs=1) == pytest.approx(200)


def test_before_the_first_epoch_is_complete_the_steps_tell():
    clock = Clock()
    memory = train(Tick(clock, 2.0), EstimatedTimeLeft(clock=clock), epochs=3)
    assert memory.of_type(Progress)[0].remaining_s == pytest.approx(22)


def test_a_resumed_training_is_measured_anew():
    first = make_trainer(EstimatedTimeLeft(), StopAt(2))
    first.train(2)
    clock, memory = Clock(), Memory()
    second = make_trainer(Tick(clock, 2.0), EstimatedTimeLeft(clock=clock), monitors=[memory])
    second.load_state(first.state())
    second.train(2)
    first_said = memory.of_type(Progress)[0]
    assert (first_said.global_step, first_said.total_steps) == (3, 8)
    assert first_said.remaining_s == pytest.approx(10)


def test_at_least_one_epoch_is_looked_at():
    with pytest.raises(ConfigurationError, match=r"`last_k_epochs` must be at least 1 \(received: 0\)."):
        EstimatedTimeLeft(0)


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (59.6, "1 min 0 s"),
        (87, "1 min 27 s"),
        (3600, "1 h 0 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_times_are_said_in_their_two_largest_units(duration_s, text):
    assert duration_text(duration_s) == text


# ---- throughput and step times


class Slow(FakeProgram):
    def step(self, batch, names):
        take_time(0.002)
        return super().step(batch, names)


def test_throughput_leaves_out_the_time_of_callbacks():
    class SlowCallback(Callback):
        def trigger_step(self):
            take_time(0.05)

    memory = train(SlowCallback(), ThroughputTracker(), program=Slow(), epochs=2)
    rates = [value for _, value in memory.points("Throughput (steps/sec)")]
    assert len(rates) == 2
    assert all(20 < rate <= 500 for rate in rates)


def test_throughput_in_samples():
    steps = train(ThroughputTracker(), program=Slow())
    samples = train(ThroughputTracker(samples_per_step=1000), program=Slow())
    assert steps.points("Throughput (steps/sec)")[0][1] <= 500
    assert samples.points("Throughput (samples/sec)")[0][1] > 500


def test_step_times_and_one_sentence():
    memory = train(StepTimes(), program=Slow(), epochs=3)
    p50, p99 = (memory.points(f"StepTime/{name}_ms")[0][1] for name in ("p50", "p99"))
    assert 2 <= p50 <= p99
    messages = memory.of_type(Message)
    assert [message.step for message in messages][:1] == [4]
    assert len(messages) <= 3


@pytest.mark.parametrize(
    ("times", "bound", "sentence"),
    [
        (
            (10.0, 6.0, 3.0),
            "input",
            "Input-bound: 60% of the time is spent waiting for batches. Give the data pipeline",
        ),
        (
            (10.0, 1.0, 4.0),
            "callback",
            "Callback-bound: 50% of the time is spent in callbacks between steps. Wrap those",
        ),
        ((10.0, 1.0, 8.0), "compute", "Compute-bound: nearly all of the time is spent in the steps themselves."),
        ((0.0, 0.0, 0.0), "compute", "Compute-bound"),
    ],
)
def test_the_verdict(times, bound, sentence):
    said_bound, said = verdict(*times)
    assert said_bound == bound
    assert said.startswith(sentence)


def test_the_memory_of_the_machine():
    memory = train(HostMemoryTracker())
    assert memory.points("HostFreeMemory (GB)")[0][1] > 0
    assert 0.001 < memory.points("ProcessMemory (GB)")[0][1] < 1000


# ---- GPUs


class Sensor:
    """Two devices; fails where told to."""

    def __init__(self, devices=2, fails_at=None, absent=""):
        self.devices, self.fails_at, self.absent = devices, fails_at, absent
        self.readings = 0
        self.is_open = False

    def open(self):
        if self.absent:
            raise NvidiaError("no driver", self.absent)
        self.is_open = True
        return self.devices

    def utilization_percent(self, device):
        self.readings += 1
        if self.fails_at is not None and self.readings >= self.fails_at:
            raise NvidiaError("no answer", f"device {device} does not answer (lost)")
        return 50.0 + device

    def used_bytes(self, device):
        return (device + 1) * 2**30

    def close(self):
        self.is_open = False


@pytest.mark.parametrize(("devices", "tags"), [(None, ["GPUUtil/0", "GPUUtil/1"]), ([1], ["GPUUtil/1"])])
def test_how_busy_the_gpus_were(devices, tags):
    sensor = Sensor()
    memory = train(GPUUtilizationTracker(devices, sensor=sensor), epochs=2)  # shorter than a second: one reading each
    assert [scalar.tag for scalar in memory.scalars] == tags * 2
    assert memory.points("GPUUtil/1") == [(4, 51.0), (8, 51.0)]
    assert not sensor.is_open


def test_the_thread_reads_during_a_long_epoch():
    sensor = Sensor()
    train(GPUUtilizationTracker(sensor=sensor, every_s=0.001), program=Slow())
    assert sensor.readings >= 2


def test_how_much_memory_was_in_use():
    memory = train(GPUMemoryTracker(sensor=Sensor()))
    assert [(scalar.tag, scalar.value) for scalar in memory.scalars] == [
        ("GPUMemory/0 (GB)", 1.0),
        ("GPUMemory/1 (GB)", 2.0),
    ]


@pytest.mark.parametrize(
    ("tracker", "reason"),
    [
        (GPUUtilizationTracker(sensor=Sensor(absent="there is no NVIDIA driver")), "there is no NVIDIA driver"),
        (GPUMemoryTracker(sensor=Sensor(devices=0)), "there is no GPU"),
        (GPUUtilizationTracker([3], sensor=Sensor()), "there is no GPU 3; there are 2, counted from 0"),
        (GPUUtilizationTracker(sensor=Sensor(fails_at=1)), "device 0 does not answer (lost)"),
    ],
)
def test_without_a_device_it_says_so_once_and_training_goes_on(tracker, reason):
    trainer = make_trainer(tracker, monitors=[memory := Memory()])
    trainer.train(3)
    assert trainer.epoch_num == 3
    name = type(tracker).__name__
    assert [event.text for event in memory.of_type(Message)] == [
        f"{name}: nothing is tracked: {reason}. Training goes on."
    ]


def test_the_real_library_answers_or_says_why_not():
    trainer = make_trainer(GPUUtilizationTracker(), GPUMemoryTracker(), monitors=[memory := Memory()])
    trainer.train(1)
    tags = [scalar.tag for scalar in memory.scalars]
    assert tags or len(memory.of_type(Message)) == 2
