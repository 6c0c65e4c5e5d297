"""Load of the machine: what the worker samples, how a file stays small, and what is read from it."""

import json
import os
import subprocess
import sys
import threading

import pytest

from ziggurat.entities.json_lines import append_line, read_lines, replace_lines
from ziggurat.entities.machine_load import MOST_SAMPLES, read_machine_load, thinned
from ziggurat.errors import StorageError
from ziggurat.worker.load_thread import LoadSampler, LoadThread


def test_a_sample_has_units_in_its_names_and_plausible_values(tmp_path):
    now = iter([10.0, 12.0, 14.0])
    sampler = LoadSampler(tmp_path, 32, environment={"CUDA_VISIBLE_DEVICES": ""}, monotonic=lambda: next(now))

    first = sampler.sample(0)
    sampler.begin(0)
    second = sampler.sample(10)

    assert "images_per_s" not in first, "a rate needs two samples"
    assert second["images_per_s"] == 160
    assert 0 <= second["job_cpu_percent"] <= 100
    assert 0 <= second["machine_cpu_percent"] <= 100
    assert 1e6 < second["job_memory_bytes"] < second["machine_memory_bytes"] * 2
    assert {"disk_free_bytes", "disk_read_bytes_per_s", "disk_write_bytes_per_s"} <= set(second)
    assert not any(name.startswith("gpu") for name in second)
    assert sampler.machine()["cores"] == len(os.sched_getaffinity(0))


def test_steps_of_a_checkpoint_are_no_throughput(tmp_path):
    now = iter([10.0, 12.0, 13.0, 14.0, 15.0])
    sampler = LoadSampler(tmp_path, 32, environment={"CUDA_VISIBLE_DEVICES": ""}, monotonic=lambda: next(now))

    built = [sampler.sample(0), sampler.sample(0)]
    sampler.begin(5000)
    late, training = sampler.sample(0), sampler.sample(5010)

    assert not any("images_per_s" in each for each in (*built, late))
    assert "job_cpu_percent" in built[1]
    assert training["images_per_s"] == 160


def test_children_count(tmp_path):
    sampler = LoadSampler(tmp_path, 1, environment={"CUDA_VISIBLE_DEVICES": ""})
    alone = sampler.sample(0)["job_memory_bytes"]
    block = "import sys; held = bytearray(200_000_000); print('ready', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", block], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        assert sampler.sample(0)["job_memory_bytes"] > alone + 150_000_000
        child.communicate("")


class _Driver:
    """The functions of ``pynvml`` that are asked, of one GPU."""

    NVML_TEMPERATURE_GPU = 0

    class Memory:
        total, free, used = 12_000_000_000, 7_000_000_000, 5_000_000_000

    class Rates:
        gpu = 92

    def nvmlInit(self):
        pass

    def nvmlDeviceGetCount(self):
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetMemoryInfo(self, _handle):
        return self.Memory

    def nvmlDeviceGetUtilizationRates(self, _handle):
        return self.Rates

    def nvmlDeviceGetName(self, _handle):
        return "RTX 3060"

    def nvmlDeviceGetUUID(self, _handle):
        return "GPU-1"

    def nvmlDeviceGetTemperature(self, _handle, _sensor):
        return 60

    def nvmlDeviceGetComputeRunningProcesses(self, _handle):
        return ()


def test_gpus_are_told_with_their_name_and_memory(tmp_path):
    sampler = LoadSampler(tmp_path, 1, environment={}, driver=_Driver())
    path = tmp_path / "load.jsonl"
    replace_lines(path, [{"time": 1, "machine": sampler.machine()}, {"time": 2, **sampler.sample(0)}], "The load")

    load = read_machine_load(path)

    curves = {curve.name: curve for curve in load.curves}
    assert curves["gpu_0_utilization_percent"].values == (92.0,)
    assert curves["gpu_0_memory_bytes"].last == 5e9
    assert curves["gpu_0_memory_bytes"].limit == 12e9
    assert load.machine.gpus[0]["name"] == "RTX 3060"


def test_the_thread_writes_until_it_is_closed(tmp_path):
    path = tmp_path / "load.jsonl"
    sampled, sampler = threading.Event(), LoadSampler(tmp_path, 1, environment={"CUDA_VISIBLE_DEVICES": ""})

    def trainer():
        if path.exists() and len(read_lines(path)) >= 3:
            sampled.set()
        return

    thread = LoadThread(path, sampler, trainer, 0.01)
    thread.start()
    assert sampled.wait(30)
    thread.close()
    thread.close()

    load = read_machine_load(path)
    assert len(load.times) >= 3
    assert len(set(load.attempts)) == 1
    names = {curve.name for curve in load.curves}
    assert "job_cpu_percent" in names
    assert "images_per_s" not in names, "nothing is trained yet"


def test_a_second_attempt_keeps_what_the_first_wrote(tmp_path):
    path = tmp_path / "load.jsonl"
    for _ in range(2):
        sampler = LoadSampler(tmp_path, 1, environment={"CUDA_VISIBLE_DEVICES": ""})
        thread = LoadThread(path, sampler, lambda: None, 60.0)
        thread.start()
        thread.close()  # a last sample is written, however short it was
    assert len(set(read_machine_load(path).attempts)) == 2


def test_a_place_that_cannot_be_written_ends_only_the_thread(tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    thread = LoadThread(blocked / "load.jsonl", LoadSampler(tmp_path, 1), lambda: None, 0.01)
    thread.start()
    thread.close()
    assert "is not recorded any more" in caplog.text


def test_many_samples_are_averaged_over_time():
    samples = [{"time": 2.0 * number, "attempt": 1.0, "step": number, "x": float(number % 2)} for number in range(2000)]
    kept = thinned(samples, 100)
    assert len(kept) <= 100
    assert kept[-1]["time"] == samples[-1]["time"]
    assert kept[-1]["step"] == 1999
    assert all(0.4 <= each["x"] <= 0.6 for each in kept[1:-1])
    assert sum(each["x"] for each in kept) / len(kept) == pytest.approx(0.5, abs=0.02)


def test_attempts_are_never_averaged_together():
    samples = [{"time": float(number), "attempt": float(number // 500), "x": number // 500} for number in range(1000)]
    assert {each["x"] for each in thinned(samples, 10)} == {0, 1}


def test_few_samples_stay_as_they_are():
    samples = [{"time": 1.0, "attempt": 1.0, "x": 2.0}]
    assert thinned(samples, MOST_SAMPLES) == samples


def test_a_missing_value_is_a_gap(tmp_path):
    path = tmp_path / "load.jsonl"
    lines = [{"time": 1, "attempt": 1}, {"time": 2, "attempt": 1, "images_per_s": 7, "job_cpu_percent": "NaN"}]
    replace_lines(path, lines, "The load")
    with path.open("a") as file:
        file.write("not json\n" + json.dumps({"machine": 3}) + "\n")

    load = read_machine_load(path)

    assert load.times == (1.0, 2.0)
    assert {curve.name: curve.values for curve in load.curves}["images_per_s"] == (None, 7.0)
    assert read_machine_load(tmp_path / "none").times == ()


def test_gpus_come_by_number_and_other_names_are_skipped(tmp_path):
    path = tmp_path / "load.jsonl"
    names = ["gpu_10_memory_bytes", "gpu_2_utilization_percent", "gpu_2_memory_bytes", "gpu_", "gpu_x_y", "other"]
    replace_lines(path, [{"time": 1, "attempt": 1, **dict.fromkeys(names, 5)}], "The load")

    curves = read_machine_load(path).curves

    assert [curve.name for curve in curves] == [names[2], names[1], names[0]]


def test_a_half_line_takes_no_other_with_it(tmp_path):
    path = tmp_path / "load.jsonl"
    path.write_text('{"time": 1}\n{"time": 2, "att')
    append_line(path, {"time": 3}, "The load")
    append_line(path, {"time": 4}, "The load")
    assert [each["time"] for each in read_lines(path)] == [1, 3, 4]


def test_lines_that_cannot_be_written_are_an_error_that_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="The load"):
        append_line(tmp_path / "file" / "load.jsonl", {}, "The load")
