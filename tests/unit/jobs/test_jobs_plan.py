"""What starts, what fails, and the sentence on why each of the others waits."""

import re

import pytest
from jobs_doubles import a_job, gpus, machine

from ziggurat.entities import Device, NodeResources, ResourceRequest
from ziggurat.jobs.plan import Fail, Start, plan

NOW = 1_000_000.0
GB = 1_000_000_000


def clock(moment, now):
    return f"+{(moment - now) / 60:.0f} min"


def planned(jobs, running=(), resources=None, now=NOW):
    return plan(jobs, running, [resources or machine()], now, clock=clock)


def started(made):
    return {action.job_id: action.placement[0].devices for action in made.actions if isinstance(action, Start)}


def reason_of(made, job_id):
    return made.waiting[job_id].reason


def dataset(name, state="queued", **changes):
    return a_job(name, state, kind="dataset", needs=ResourceRequest(slot="dataset"), **changes)


# ---- order


def test_the_order_is_priority_then_position():
    jobs = [a_job("a", position=2), a_job("b", position=1), a_job("c", position=3, priority=1)]
    assert [action.job_id for action in planned(jobs, resources=machine(cpu_slots=9)).actions] == ["c", "b", "a"]


def test_jobs_that_are_not_in_the_queue_are_passed_over():
    jobs = [a_job("a", "done"), a_job("b", "stopped"), a_job("c", "failed")]
    assert planned(jobs).actions == ()


# ---- processors and datasets


def test_one_place_on_the_processors():
    running = [a_job("a", "running", remaining_s=600)]
    made = planned([a_job("b")], running)
    assert reason_of(made, "b") == "waits for the CPU: job a until about +10 min"
    assert made.waiting["b"].expected_start == NOW + 600


def test_several_places():
    running = [a_job(name, "running") for name in "abcd"]
    made = planned([a_job("e")], running, machine(cpu_slots=4))
    assert reason_of(made, "e") == "waits for one of 4 CPU slots: job a and job b and job c and 1 more"
    assert made.waiting["e"].expected_start is None


def test_data_sets_have_places_of_their_own():
    running = [a_job("a", "running"), dataset("d", "running")]
    made = planned([dataset("e"), a_job("g", gpus=1)], running, machine(1))
    assert reason_of(made, "e") == "waits for another dataset: dataset d"
    assert started(made) == {"g": (0,)}


def test_a_machine_without_places_says_so():
    made = planned([a_job("a"), dataset("d")], resources=machine(cpu_slots=0, dataset_slots=0))
    assert reason_of(made, "a") == "this machine has no place for jobs on the processors"
    assert reason_of(made, "d") == "this machine has no place for making datasets"


def test_the_second_in_line_is_told_who_is_before_it():
    running = [a_job("a", "running"), a_job("b", "running")]
    jobs = [a_job("big", position=1, needs=ResourceRequest(memory_bytes=9 * GB)), a_job("small", position=2)]
    made = planned(jobs, running, machine(cpu_slots=3, memory_bytes=8 * GB))
    assert reason_of(made, "big") == "needs 9.0 GB of memory; this machine has 8.0 GB for jobs"
    assert started(made) == {"small": ()}


# ---- accelerators


def test_two_gpus_of_which_one_is_busy():
    running = [a_job("41", "running", gpus=1, devices=(1,), remaining_s=3600)]
    made = planned([a_job("a", gpus=2)], running, machine(2))
    assert reason_of(made, "a") == "needs 2 GPUs; GPU 1 is busy with job 41 until about +60 min"
    assert made.waiting["a"].expected_start == NOW + 3600


def test_chosen_gpus_are_those_that_it_gets():
    jobs = [a_job("a", needs=ResourceRequest(devices=2, device_indices=(1, 3), slot="device"))]
    assert started(planned(jobs, resources=machine(4))) == {"a": (1, 3)}


def test_a_chosen_gpu_that_is_not_there():
    jobs = [a_job("a", needs=ResourceRequest(devices=1, device_indices=(3,), slot="device"))]
    assert reason_of(planned(jobs, resources=machine(2)), "a") == (
        "needs GPU 3, which this machine does not have for jobs"
    )


def test_more_gpus_than_the_machine_has_keep_nobody_waiting():
    made = planned([a_job("a", gpus=4, position=1), a_job("b", gpus=2, position=2)], resources=machine(2))
    assert reason_of(made, "a") == "needs 4 GPUs; this machine has 2 GPUs for jobs"
    assert started(made) == {"b": (0, 1)}


def test_an_unusable_gpu_is_none():
    devices = (*gpus(1), Device(index=1, name="display", memory_bytes=GB, free_bytes=GB, usable=False))
    made = planned([a_job("a", gpus=2)], resources=NodeResources(devices=devices))
    assert reason_of(made, "a") == "needs 2 GPUs; this machine has 1 GPU for jobs"


def test_memory_of_gpus():
    sizes = enumerate((24 * GB, 8 * GB))
    small, large = (Device(index=index, name="test", memory_bytes=size, free_bytes=size) for index, size in sizes)
    needs = ResourceRequest(devices=1, device_memory_bytes=6 * GB, slot="device")
    made = planned([a_job("a", needs=needs)], resources=NodeResources(devices=(small, large)))
    assert started(made) == {"a": (1,)}  # the smallest that does
    needs = ResourceRequest(devices=1, device_memory_bytes=30 * GB, slot="device")
    made = planned([a_job("a", needs=needs)], resources=NodeResources(devices=(small, large)))
    assert reason_of(made, "a") == "needs 1 GPU with 30.0 GB each; this machine has too few so large"


def test_a_gpu_on_which_a_strangers_program_is():
    device = Device(index=0, name="test", memory_bytes=16 * GB, free_bytes=2 * GB)
    needs = ResourceRequest(devices=1, device_memory_bytes=6 * GB, slot="device")
    made = planned([a_job("a", needs=needs)], resources=NodeResources(devices=(device,)))
    assert reason_of(made, "a") == "needs 1 GPU; GPU 0 has only 2.0 GB free"
    assert made.waiting["a"].expected_start is None


def test_many_busy_gpus_are_summed_up():
    running = [a_job(f"r{index}", "running", gpus=1, devices=(index,)) for index in range(5)]
    made = planned([a_job("a", gpus=1)], running, machine(5))
    assert reason_of(made, "a") == (
        "needs 1 GPU; GPU 0 is busy with job r0, GPU 1 is busy with job r1, GPU 2 is busy with job r2, "
        "and 2 more are not free"
    )


# ---- what is reserved, and what may go before


def test_small_jobs_do_not_take_what_the_first_waits_for():
    running = [a_job("r", "running", gpus=1, devices=(0,), remaining_s=600)]
    jobs = [a_job("two", gpus=2, position=1), a_job("one", gpus=1, position=2)]
    made = planned(jobs, running, machine(2))
    assert started(made) == {}
    assert reason_of(made, "one") == (
        "needs 1 GPU; GPU 0 is busy with job r until about +10 min, GPU 1 is kept for job two, which is before it"
    )


def test_what_ends_before_the_first_could_start_may_go_before_it():
    running = [a_job("r", "running", gpus=1, devices=(0,), remaining_s=600)]
    jobs = [
        a_job("two", gpus=2, position=1),
        a_job("long", gpus=1, position=2, remaining_s=601),
        a_job("short", gpus=1, position=3, remaining_s=599),
    ]
    assert started(planned(jobs, running, machine(2))) == {"short": (1,)}


def test_where_no_start_is_known_nothing_goes_before_it():
    running = [a_job("r", "running", gpus=1, devices=(0,))]
    jobs = [a_job("two", gpus=2, position=1), a_job("short", gpus=1, position=2, remaining_s=1)]
    assert started(planned(jobs, running, machine(2))) == {}


def test_what_the_first_does_not_need_is_free_for_others():
    running = [a_job("r", "running", gpus=1, devices=(0,))]
    chosen = ResourceRequest(devices=1, device_indices=(0,), slot="device")
    jobs = [a_job("first", needs=chosen, position=1), a_job("other", gpus=2, position=2)]
    assert started(planned(jobs, running, machine(3))) == {"other": (1, 2)}


def test_jobs_of_other_lines_go_on():
    running = [a_job("r", "running", gpus=1, devices=(0,))]
    made = planned([a_job("gpu", gpus=1, position=1), a_job("cpu", position=2)], running, machine(1))
    assert started(made) == {"cpu": ()}


def test_memory_is_kept_for_the_first_that_lacks_it():
    running = [a_job("r", "running", needs=ResourceRequest(memory_bytes=6 * GB), remaining_s=60)]
    jobs = [
        a_job("big", needs=ResourceRequest(memory_bytes=8 * GB), position=1),
        a_job("small", needs=ResourceRequest(memory_bytes=1 * GB), position=2),
    ]
    made = planned(jobs, running, machine(cpu_slots=9, memory_bytes=10 * GB))
    assert reason_of(made, "big") == "needs 8.0 GB of memory; 4.0 GB are free"
    assert made.waiting["big"].expected_start == NOW + 60
    assert reason_of(made, "small") == ("needs 1.0 GB of memory; 0 bytes are free, besides what is kept for job big")


def test_a_long_queue_of_jobs_that_are_alike():
    running = [a_job("r", "running", gpus=1, devices=(0,), remaining_s=60)]
    made = planned([a_job(f"j{number:04d}", gpus=2, position=number) for number in range(3000)], running, machine(2))
    assert reason_of(made, "j0000") == "needs 2 GPUs; GPU 0 is busy with job r until about +1 min"
    assert made.waiting["j0000"].expected_start == NOW + 60
    behind = (
        "needs 2 GPUs; GPU 0 is busy with job r until about +1 min, GPU 1 is kept for job j0000, which is before it"
    )
    assert {made.waiting[f"j{number:04d}"].reason for number in range(1, 3000)} == {behind}
    assert made.waiting["j0001"].expected_start is None


# ---- dependencies


def test_a_job_waits_for_its_data_set():
    running = [dataset("mnist", "running", remaining_s=120)]
    made = planned([a_job("a", depends_on=("mnist",))], running)
    assert reason_of(made, "a") == "needs the dataset mnist, which is running until about +2 min"
    assert made.waiting["a"].expected_start == NOW + 120


@pytest.mark.parametrize(
    ("state", "changes", "reason"),
    [
        ("stopped", {}, "needs the dataset mnist, which was stopped: resume that first"),
        ("stopped", {"paused": True}, "needs the dataset mnist, which was paused: resume that first"),
        ("stopping", {}, "needs the dataset mnist, which is stopping"),
    ],
)
def test_a_data_set_that_is_not_done(state, changes, reason):
    made = planned([dataset("mnist", state, **changes), a_job("a", depends_on=("mnist",))])
    assert reason_of(made, "a") == reason


def test_a_data_set_in_the_queue():
    jobs = [dataset("mnist", position=2), a_job("a", position=1, depends_on=("mnist",))]
    made = planned(jobs)
    assert started(made) == {"mnist": ()}
    assert reason_of(made, "a") == "needs the dataset mnist, which is in the queue"


def test_a_data_set_that_is_done_keeps_nobody():
    assert started(planned([dataset("mnist", "done"), a_job("a", depends_on=("mnist",))])) == {"a": ()}


def test_a_job_fails_with_its_data_set():
    jobs = [dataset("mnist", "failed", reason="the folder is empty"), a_job("a", depends_on=("mnist",))]
    assert planned(jobs).actions == (Fail("a", "the dataset mnist, which it needs, failed: the folder is empty"),)


def test_a_job_fails_when_what_it_needs_was_deleted():
    assert planned([a_job("a", depends_on=("gone",))]).actions == (Fail("a", "job gone, which it needs, was deleted"),)


def test_one_that_waits_for_its_data_set_reserves_nothing():
    running = [dataset("mnist", "running")]
    jobs = [a_job("a", position=1, depends_on=("mnist",), gpus=2), a_job("b", position=2, gpus=1)]
    assert started(planned(jobs, running, machine(2))) == {"b": (0,)}


# ---- the disk


def test_nothing_starts_on_a_full_disk():
    resources = machine(disk_free_bytes=1_200_000_000, disk_reserve_bytes=5 * GB)
    made = planned([a_job("a"), dataset("d")], resources=resources)
    assert made.actions == ()
    assert reason_of(made, "a") == ("the disk has 1.2 GB free and needs 5.0 GB: free some space, or lower the reserve")


def test_times_of_day_are_those_of_the_machine():
    running = [a_job("r", "running", remaining_s=60.0), a_job("q", "running", remaining_s=200_000.0)]
    made = plan([a_job("a")], running, [machine(cpu_slots=2)], NOW)
    assert re.search(r"job q until about [A-Z][a-z]+ \d\d:\d\d and job r until about \d\d:\d\d$", reason_of(made, "a"))
