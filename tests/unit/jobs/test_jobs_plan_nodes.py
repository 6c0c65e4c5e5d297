"""Plans over several nodes: where a job starts, and which node a reason names."""

import sys
from dataclasses import replace

import pytest
from jobs_doubles import a_job, gpus

from ziggurat.entities import NodeResources, ResourceRequest, Share
from ziggurat.jobs.plan import Start, plan

NOW = 1_000_000.0
GB = 1_000_000_000


def clock(moment, now):
    return f"+{(moment - now) / 60:.0f} min"


def node(name, devices=0, *, memory_bytes=16 * GB, **changes):
    changes.setdefault("datasets", frozenset())
    return NodeResources(name=name, executor="ray", devices=gpus(devices, memory_bytes), dataset_slots=0, **changes)


def studio(**changes):
    return NodeResources(name="studio", **changes)


def planned(jobs, nodes, running=()):
    return plan(jobs, running, nodes, NOW, clock=clock)


def started(made):
    return {action.job_id: action.placement for action in made.actions if isinstance(action, Start)}


def on(name, node_name, *devices, **changes):
    placement = (Share(node_name, devices),)
    return a_job(name, "running", gpus=len(devices), devices=devices, placement=placement, **changes)


# ---- where a job starts


def test_a_job_starts_on_a_node_that_has_room():
    running = [on("41", "a", 0)]
    assert started(planned([a_job("j", gpus=1)], [node("a", 1), node("b", 1)], running)) == {"j": (Share("b", (0,)),)}


def test_a_cluster_with_a_queue_gets_every_job_at_once():
    slurm = NodeResources(name="slurm", executor="slurm", has_queue=True)
    big = ResourceRequest(devices=8, device_indices=(), memory_bytes=10**15, slot="device")
    chosen = ResourceRequest(devices=2, device_indices=(4, 6), slot="device")
    jobs = [a_job("big", needs=big), a_job("chosen", needs=chosen), *(a_job(f"c{each}") for each in range(5))]
    made = planned(jobs, [slurm], [on("41", "slurm", 0, 1), on("42", "slurm", 0)])
    assert made.waiting == {}
    found = started(made)
    assert (found["big"], found["chosen"]) == ((Share("slurm", tuple(range(8))),), (Share("slurm", (0, 1)),))
    assert found["c4"] == (Share("slurm"),)


def test_a_cluster_on_a_full_disk_gets_none():
    slurm = NodeResources(name="slurm", has_queue=True, disk_free_bytes=0, disk_reserve_bytes=GB)
    for nodes in ([slurm], [studio(cpu_slots=0), slurm]):
        made = planned([a_job("j", gpus=2)], nodes)
        assert "the disk has" in made.waiting["j"].reason
        assert made.waiting["j"].expected_start is None


def test_the_tightest_node_is_taken():
    nodes = [node("a", 8), node("b", 2), node("c", 4)]
    assert started(planned([a_job("j", gpus=2)], nodes)) == {"j": (Share("b", (0, 1)),)}


def test_the_data_matter_more_than_the_fit():
    needs = ResourceRequest(devices=1, slot="device", datasets=("cells",))
    nodes = [node("a", 1), node("b", 8, datasets=frozenset({"cells", "digits"}))]
    assert started(planned([a_job("j", needs=needs)], nodes)) == {"j": (Share("b", (0,)),)}


def test_the_studios_own_machine_has_all_datasets():
    needs = ResourceRequest(datasets=("cells",))
    assert started(planned([a_job("j", needs=needs)], [node("a"), studio()])) == {"j": (Share("studio"),)}


def test_datasets_are_made_on_the_studios_machine_only():
    needs = ResourceRequest(slot="dataset")
    jobs = [a_job(name, kind="dataset", needs=needs, position=number) for number, name in enumerate("de")]
    made = planned(jobs, [studio(), node("a")])
    assert started(made) == {"d": (Share("studio"),)}
    assert made.waiting["e"].reason == "waits for another dataset; node studio: dataset d"


def test_a_job_of_several_nodes_gets_all_of_them_or_none():
    needs = ResourceRequest(devices=2, slot="device", nodes=2)
    nodes = [node("a", 2), node("b", 1), node("c", 2)]
    made = planned([a_job("j", needs=needs)], nodes)
    assert started(made) == {"j": (Share("a", (0, 1), (0, 1)), Share("c", (0, 1), (2, 3)))}
    made = planned([a_job("j", needs=needs)], nodes, [on("41", "c", 1, remaining_s=600)])
    assert started(made) == {}
    assert made.waiting["j"].reason == (
        "needs 2 nodes, of which 1 can be had now; needs 2 GPUs; node c: GPU 1 is busy with job 41 until about +10 min"
    )
    assert made.waiting["j"].expected_start == NOW + 600
    # What is free on the nodes that it waits for is kept for it; the other node is not.
    behind = planned([a_job("j", needs=needs), a_job("k", position=1, gpus=1)], nodes, [on("41", "c", 1)])
    assert started(behind) == {"k": (Share("b", (0,)),)}


def test_a_job_of_several_nodes_is_on_the_cluster_alone():
    job = a_job("j", needs=ResourceRequest(nodes=2))
    assert started(planned([job], [studio(), node("a"), node("b")])) == {
        "j": (Share("a"), Share("b", (), (1,))),
    }
    made = planned([job], [studio(), node("a")])
    assert made.waiting["j"].reason == (
        "needs 2 nodes, of which 1 can be had now; node studio is no node of a Ray cluster"
    )


def test_a_job_that_runs_on_two_nodes_holds_both():
    placement = (Share("a", (0,), (0,)), Share("b", (0,), (1,)))
    needs = ResourceRequest(devices=1, slot="device", nodes=2)
    running = [a_job("41", "running", needs=needs, devices=(0,), placement=placement)]
    made = planned([a_job("j", gpus=1)], [node("a", 1), node("b", 1)], running)
    assert made.waiting["j"].reason == (
        "needs 1 GPU; node a: GPU 0 is busy with job 41, node b: GPU 0 is busy with job 41"
    )


def test_a_job_without_placement_is_on_the_studios_machine():
    running = [a_job("old", "running", gpus=1, devices=(0,))]
    made = planned([a_job("j", gpus=1)], [studio(devices=gpus(1)), node("a", 1)], running)
    assert started(made) == {"j": (Share("a", (0,)),)}


# ---- reasons


def test_a_reason_names_the_node_that_is_free_first():
    running = [on("40", "a", 0, remaining_s=3600), on("41", "b", 0, remaining_s=600)]
    made = planned([a_job("j", gpus=1)], [node("a", 1), node("b", 1)], running)
    assert made.waiting["j"].reason == (
        "needs 1 GPU; node b: GPU 0 is busy with job 41 until about +10 min, "
        "node a: GPU 0 is busy with job 40 until about +60 min"
    )
    assert made.waiting["j"].expected_start == NOW + 600


@pytest.mark.parametrize("nodes", [[node("a", 1)], [studio(), node("a", 1)]])
def test_a_job_without_devices_is_told_of_the_cpu(nodes):
    jobs = [a_job(name, gpus=1, spec={"devices": each}) for name, each in (("open", []), ("chosen", ["gpu:0"]))]
    made = planned(jobs, nodes, [on("41", "a", 0)])
    sentence = "any GPU will do, as no device is selected; with CPU only it would need none"
    assert made.waiting["open"].reason.startswith("needs 1 GPU; ")
    assert made.waiting["open"].reason.endswith(f"; {sentence}")
    assert sentence not in made.waiting["chosen"].reason


def test_a_job_that_waits_for_memory_is_told_of_no_gpu():
    nodes = [replace(node(name, 2), memory_bytes=100) for name in ("with 1 GPU", "b")]
    needs = ResourceRequest(devices=1, slot="device", memory_bytes=60)
    running = [a_job(each.name, "running", needs=needs, placement=(Share(each.name, (0,)),)) for each in nodes]
    made = planned([a_job("j", needs=needs, spec={"devices": []})], nodes, running)
    assert made.waiting["j"].reason == (
        "needs 60 bytes of memory; node with 1 GPU: 40 bytes are free, node b: 40 bytes are free"
    )


def test_many_nodes_are_summed_up():
    running = [on(f"r{number}", f"n{number}", 0) for number in range(5)]
    made = planned([a_job("j", gpus=1)], [node(f"n{number}", 1) for number in range(5)], running)
    assert made.waiting["j"].reason == (
        "needs 1 GPU; node n0: GPU 0 is busy with job r0, node n1: GPU 0 is busy with job r1, "
        "node n2: GPU 0 is busy with job r2, and 2 more nodes"
    )


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (
            ResourceRequest(devices=4, slot="device"),
            "needs 4 GPUs; node a has 2 GPUs for jobs, node b has 1 GPU for jobs",
        ),
        (
            ResourceRequest(devices=1, device_indices=(3,), slot="device"),
            "needs GPU 3, which node a does not have for jobs, needs GPU 3, which node b does not have for jobs",
        ),
        (ResourceRequest(nodes=3), "needs 3 nodes; there are 2"),
    ],
)
def test_what_no_node_can_give(needs, reason):
    made = planned([a_job("j", needs=needs)], [node("a", 2), node("b", 1)])
    assert made.waiting["j"].reason == reason


def test_two_nodes_on_one_machine():
    made = planned([a_job("j", needs=ResourceRequest(nodes=2))], [studio()])
    assert made.waiting["j"].reason == "needs 2 nodes; there is only this machine"


def test_without_a_machine_everything_waits():
    made = planned([a_job("j")], [])
    assert made.waiting["j"].reason == "there is no machine to run on now"


def test_a_full_disk_of_a_node_is_no_place_to_start():
    full = {"disk_free_bytes": GB, "disk_reserve_bytes": 5 * GB}
    jobs = [a_job("j", gpus=1)]
    assert started(planned(jobs, [node("a", 1, **full), node("b", 1)])) == {}  # the first one is the studio's
    assert started(planned(jobs, [node("a", 1), node("b", 1, **full)], [on("41", "a", 0)])) == {}
    assert started(planned(jobs, [studio(), node("a", 2), node("b", 1, **full)])) == {"j": (Share("a", (0,)),)}


def test_small_jobs_leave_what_the_first_waits_for():
    running = [on("r", "a", 0, remaining_s=600)]
    jobs = [a_job("two", gpus=2, position=1), *(a_job(f"s{n}", gpus=1, position=2 + n) for n in range(2))]
    made = planned(jobs, [node("a", 2), node("b", 1)], running)
    assert started(made) == {"s0": (Share("b", (0,)),)}
    assert made.waiting["two"].expected_start == NOW + 600
    assert "GPU 1 is kept for job two, which is before it" in made.waiting["s1"].reason


# ---- how much is computed


def calls(nodes, jobs):
    """Return how many functions a plan calls for queued jobs that differ, on nodes that are half busy."""
    queue = [a_job(f"j{n:04d}", gpus=1 + n % 4, position=n, remaining_s=float(n + 1)) for n in range(jobs)]
    machines = [node(f"n{n:03d}", 4) for n in range(nodes)]
    running = [on(f"r{n:03d}", f"n{n:03d}", 0, 1, remaining_s=60.0 + n) for n in range(nodes)]
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        planned(queue, machines, running)
    finally:
        sys.setprofile(None)
    return count


def test_ten_times_the_nodes_are_ten_times_the_work_at_most():
    assert calls(100, 100) <= 10 * calls(10, 100)


def test_jobs_that_differ_in_length_do_not_ask_every_node():
    assert calls(100, 400) <= 3 * calls(100, 100)


# ---- trainings over several nodes on a cluster with a queue of its own


def test_slurm_gets_all_processes_of_a_training_as_one_share():
    slurm = NodeResources(name="slurm", executor="slurm", has_queue=True)
    needs = ResourceRequest(devices=2, slot="device", nodes=2)
    whole = (Share("slurm", (0, 1), (0, 1, 2, 3)),)
    jobs = [a_job("j", needs=needs), a_job("p", kind="program", needs=needs, position=1)]
    made = planned(jobs, [slurm])
    assert started(made) == {"j": whole}
    assert made.waiting["p"].reason == "needs 2 nodes; there is only this machine"
    assert started(planned(jobs[:1], [studio(), slurm, node("a", 2)])) == {"j": whole}
    ray = planned(jobs[:1], [studio(), slurm, node("a", 2), node("b", 2)])
    assert [share.node for share in started(ray)["j"]] == ["a", "b"]
    assert started(planned(jobs[:1], [studio(), replace(slurm, disk_free_bytes=0, disk_reserve_bytes=GB)])) == {}
