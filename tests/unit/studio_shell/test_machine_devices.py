"""The machine tells its accelerators, processors, memory and disk, and never fails where there is no driver."""

import os
from types import SimpleNamespace

import pytest

from ziggurat.entities import Device
from ziggurat.entities.jobs import disk_reserve_bytes
from ziggurat.errors import ConfigurationError
from ziggurat.nvidia import ManagementLibrary, NvidiaError, visible_indices
from ziggurat.workspace.frameworks import Frameworks
from ziggurat.workspace.studio.machine import Machine

GIB = 1 << 30


class Driver:
    """Three accelerators as NVML tells them; the last one does not know its load, and one can fall off the bus."""

    NVML_TEMPERATURE_GPU = 0

    def __init__(self):
        self.starts = 0
        self.lost = set()
        self.reads = 0

    def nvmlInit(self):
        self.starts += 1

    def nvmlDeviceGetCount(self):
        self.reads += 1
        return 3

    def nvmlDeviceGetHandleByIndex(self, index):
        if index in self.lost:
            raise RuntimeError("GPU is lost")
        return index

    def nvmlDeviceGetMemoryInfo(self, index):
        return SimpleNamespace(total=24 * GIB, free=(20 + index) * GIB)

    def nvmlDeviceGetName(self, index):
        return f"Card {index}".encode() if index == 0 else f"Card {index}"

    def nvmlDeviceGetUUID(self, index):
        return f"GPU-{'abc'[index]}000"

    def nvmlDeviceGetUtilizationRates(self, index):
        if index == 2:
            raise RuntimeError("Not Supported")
        return SimpleNamespace(gpu=50)

    def nvmlDeviceGetTemperature(self, index, sensor):
        return 40 + index

    def nvmlDeviceGetComputeRunningProcesses(self, index):
        return [SimpleNamespace(pid=os.getpid(), usedGpuMemory=3 * GIB)] if index == 0 else []


class NoDriver(Driver):
    def nvmlInit(self):
        super().nvmlInit()
        raise RuntimeError("NVML Shared Library Not Found")


class Forbidden(Driver):
    def nvmlInit(self):
        error = RuntimeError("Insufficient Permissions")
        error.value = 4
        raise error


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def machine(folder, driver, *, clock=None, **environment):
    return Machine(
        folder, environment=environment, driver=driver, frameworks=Frameworks([]), monotonic=clock or Clock()
    )


def test_devices_come_with_memory_and_load(tmp_path):
    devices = machine(tmp_path, Driver()).resources().devices
    assert devices[0] == Device(index=0, name="Card 0", memory_bytes=24 * GIB, free_bytes=20 * GIB, load=0.5)
    assert [device.load for device in devices] == [0.5, 0.5, None]


def test_the_strip_names_who_uses_a_device(tmp_path):
    strip = machine(tmp_path, Driver()).strip()
    (process,) = strip["devices"][0]["processes"]
    assert (process["pid"], process["memory_bytes"]) == (os.getpid(), 3 * GIB)
    assert process["name"]
    assert [each["temperature_c"] for each in strip["devices"]] == [40, 41, 42]
    assert strip["disk"]["path"] == str(tmp_path)
    assert 0 < strip["memory"]["free_bytes"] <= strip["memory"]["total_bytes"]
    assert strip["cpu"]["cores"] == len(os.sched_getaffinity(0))
    assert strip["frameworks"] == []


def test_behaviour_7_no_driver_means_no_device_and_no_error(tmp_path):
    without = machine(tmp_path, NoDriver())
    assert without.resources().devices == ()
    assert without.strip()["why_no_devices"] == "no NVIDIA driver: NVML Shared Library Not Found"


@pytest.mark.parametrize("hidden", ["", "-1", " ", "-1,0", "NoDevFiles"])
def test_behaviour_10_an_empty_variable_hides_all_devices(tmp_path, hidden):
    driver = Driver()
    without = machine(tmp_path, driver, CUDA_VISIBLE_DEVICES=hidden)
    assert without.resources().devices == ()
    assert without.strip()["why_no_devices"] == "CUDA_VISIBLE_DEVICES hides them all"
    assert driver.starts == 0


@pytest.mark.parametrize(
    ("visible", "indices"),
    [("0,2", [0, 2]), ("2,0", [0, 2]), ("1", [1]), ("GPU-b", [1]), ("0,9,1", [0]), ("0,0", []), ("GPU-", [])],
)
def test_the_variable_chooses_devices_that_keep_their_numbers(tmp_path, visible, indices):
    devices = machine(tmp_path, Driver(), CUDA_VISIBLE_DEVICES=visible).resources().devices
    assert [device.index for device in devices] == indices


def test_the_order_of_the_variable_is_told():
    assert visible_indices("2, 0", ["GPU-a", "GPU-b", "GPU-c"]) == (2, 0)


def test_a_lost_device_does_not_hide_the_others(tmp_path):
    driver = Driver()
    driver.lost.add(1)
    found = machine(tmp_path, driver)
    assert [device.usable for device in found.resources().devices] == [True, False, True]
    assert found.strip()["devices"][1]["error"] == "GPU is lost"


def test_the_machine_is_read_once_a_second(tmp_path):
    driver, clock = Driver(), Clock()
    found = machine(tmp_path, driver, clock=clock)
    found.resources()
    clock.now += 0.9
    found.strip()
    assert driver.reads == 1
    clock.now += 0.2
    found.resources()
    assert driver.reads == 2


def test_a_driver_that_comes_later_is_found(tmp_path):
    driver, clock = NoDriver(), Clock()
    found = machine(tmp_path, driver, clock=clock)
    for _ in range(59):
        found.resources()
        clock.now += 1
    assert driver.starts == 1
    clock.now += 2
    found.resources()
    assert driver.starts == 2


def test_slots_have_defaults_and_can_be_chosen(tmp_path):
    found = machine(tmp_path, NoDriver())
    cores = len(os.sched_getaffinity(0))
    usual = found.resources()
    assert (usual.cpu_slots, usual.dataset_slots) == (max(1, cores // 2), 1)
    assert 0 < usual.memory_bytes <= found.memory_bytes
    assert usual.disk_reserve_bytes >= GIB
    chosen = found.resources({"cpu_slots": 0, "dataset_slots": 3, "disk_reserve_bytes": 7})
    assert (chosen.cpu_slots, chosen.dataset_slots, chosen.disk_reserve_bytes) == (0, 3, 7)


@pytest.mark.parametrize("value", [-1, "2", 1.5, True])
def test_a_slot_is_a_whole_number(tmp_path, value):
    with pytest.raises(ConfigurationError, match=r"`cpu_slots` is .*, not a whole number from 0"):
        machine(tmp_path, NoDriver()).resources({"cpu_slots": value})


def test_the_reserve_is_two_percent_from_one_to_five_gibibytes():
    assert disk_reserve_bytes(10 * GIB) == GIB
    assert disk_reserve_bytes(100 * GIB) == 2 * GIB
    assert disk_reserve_bytes(1000 * GIB) == 5 * GIB


def test_the_setting_of_the_reserve_holds_until_an_admin_chooses(tmp_path):
    found = Machine(tmp_path, driver=NoDriver(), frameworks=Frameworks([]), disk_reserve_mib=3)
    assert found.resources().disk_reserve_bytes == 3 << 20
    assert found.strip()["disk"]["reserve_bytes"] == 3 << 20
    assert found.resources({"disk_reserve_bytes": 7}).disk_reserve_bytes == 7


def test_the_folder_need_not_be_there(tmp_path):
    assert machine(tmp_path / "not" / "yet", NoDriver()).resources().disk_free_bytes > 0


@pytest.mark.parametrize(
    ("driver", "state", "text"),
    [
        (NoDriver(), "no driver", "no NVIDIA driver: NVML Shared Library Not Found"),
        (Forbidden(), "no permission", "this user may not use the NVIDIA driver: Insufficient Permissions"),
    ],
)
def test_a_library_that_does_not_start_says_why(driver, state, text):
    with pytest.raises(NvidiaError) as error:
        ManagementLibrary(driver).open()
    assert (error.value.state, str(error.value)) == (state, text)


def test_a_device_that_is_lost_is_no_answer():
    driver = Driver()
    library = ManagementLibrary(driver)
    assert library.open() == 3
    assert library.utilization_percent(0) == 50
    driver.lost.add(0)
    with pytest.raises(NvidiaError, match=r"device 0 does not answer \(GPU is lost\)") as error:
        library.used_bytes(0)
    assert error.value.state == "no answer"
