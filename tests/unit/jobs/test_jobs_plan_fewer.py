"""Plans of trainings over several nodes that resume after nodes are gone: on fewer processes, and said."""

import sys
from dataclasses import replace

import pytest
from jobs_doubles import a_job, gpus

from ziggurat.entities import NodeResources, ResourceRequest, Share
from ziggurat.jobs.fewer_processes import SETTLED_S
from ziggurat.jobs.plan import Start, plan

NOW = 1_000_000.0
STUDIO = NodeResources(name="studio", devices=gpus(8))


def node(name, devices=0):
    return NodeResources(name=name, executor="ray", devices=gpus(devices), dataset_slots=0)


def training(nodes, devices=0, *, on="", batch=64, **changes):
    """Return a training, which was on the nodes with the names in ``on``."""
    needs = ResourceRequest(devices=devices, slot="device" if devices else "cpu", nodes=nodes)
    placement = tuple(Share(name, tuple(range(devices)), (rank,)) for rank, name in enumerate(on))
    return a_job("j", needs=needs, placement=placement, attempt=1, spec={"batch_size": batch}, **changes)


def planned(job, nodes, running=(), *, settled_s=SETTLED_S, resumable=("j",)):
    def clock(moment, now):
        return f"+{moment - now:.0f} s"

    return plan(
        [job], running, [STUDIO, *nodes], NOW, resumable=resumable, nodes_since=NOW - settled_s, clock=clock
    )  # fmt: skip


def shape(made):
    """Return the number of processes on each node."""
    (action,) = made.actions
    assert isinstance(action, Start)
    return [len(share.ranks) for share in action.placement]


def test_a_lost_node_leaves_fewer_processes():
    made = planned(training(3, on="abc", batch=60), [node("a"), node("b")])
    note = "Resumed on 2 of 3 processes: node c is gone."
    assert made.actions == (Start("j", (Share("a", (), (0,)), Share("b", (), (1,))), note),)


def test_one_process_stays_on_the_cluster():
    made = planned(training(2, on="ab"), [node("b")])
    assert made.actions == (Start("j", (Share("b", (), (0,)),), "Resumed on 1 of 2 processes: node a is gone."),)
    assert planned(training(2, on="ab"), []).actions == (), "the studio's machine is no node of the cluster"


@pytest.mark.parametrize(
    ("job", "there", "processes"),
    [
        (training(4, on="abcd", batch=64), (0, 0, 0), [1, 1]),
        (training(4, on="abcd", batch=60), (0, 0, 0), [1, 1, 1]),
        (training(5, on="abcde", batch=35), (0, 0, 0, 0), [1]),
        (training(2, 4, on="ab"), (4,), [4]),
        (training(2, 4, on="ab"), (2, 2), [2, 2]),
        (training(2, 4, on="ab"), (4, 2), [4]),
        (training(4, 2, on="abcd"), (2, 1, 1, 1), [1, 1, 1, 1]),
        (training(2, 3, on="ab", batch=66), (2,), [2]),
        (training(2, 3, on="ab", batch=66), (1, 0), [1]),
    ],
)
def test_the_largest_number_that_splits_the_batch_is_taken(job, there, processes):
    assert shape(planned(job, [node(f"n{number}", devices) for number, devices in enumerate(there)])) == processes


def test_each_process_has_an_accelerator_of_its_own():
    (start,) = planned(training(2, 2, on="ab"), [node("b", 2)]).actions
    assert start.placement == (Share("b", (0, 1), (0, 1)),)
    assert start.note == "Resumed on 2 of 4 processes: node a is gone."


@pytest.mark.parametrize(
    ("job", "note"),
    [
        (training(8, on="abcdefgh"), "Resumed on 1 of 8 processes: nodes a, c, d and 4 more are gone."),
        (training(3, on="abd", batch=60), "Resumed on 1 of 3 processes: nodes a and d are gone."),
        (training(4, on="b"), "Resumed on 1 of 4 processes: 1 of 4 nodes is there."),
        (training(4, 2, on="b"), "Resumed on 1 of 8 processes: 0 of 4 nodes with 2 GPUs are there."),
    ],
)
def test_the_note_names_what_is_gone(job, note):
    assert [action.note for action in planned(job, [node("b", 1)]).actions] == [note]


def test_a_first_start_waits_for_all_nodes():
    made = planned(training(2), [node("a")], resumable=())
    assert made.actions == ()
    assert made.waiting["j"].reason == (
        "needs 2 nodes, of which 1 can be had now; node studio is no node of a Ray cluster"
    )


def test_a_busy_node_is_waited_for():
    running = [a_job("41", "running", gpus=1, devices=(0,), placement=(Share("b", (0,)),))]
    made = planned(training(2, 1, on="ab"), [node("a", 1), node("b", 1)], running)
    assert made.actions == ()
    assert made.waiting["j"].reason == (
        "needs 2 nodes, of which 1 can be had now; needs 1 GPU; node b: GPU 0 is busy with job 41"
    )


@pytest.mark.parametrize(
    ("on", "awaited"), [("ab", "node b comes back"), ("a", "more nodes come"), ("cd", "more nodes come")]
)
def test_a_node_may_be_silent_for_a_moment(on, awaited):
    made = planned(training(2, on=on), [node("a")], settled_s=SETTLED_S - 8)
    assert made.actions == ()
    assert made.waiting["j"].reason.endswith(f"; resumes on 1 of 2 processes at about +8 s unless {awaited}")
    assert made.waiting["j"].expected_start == NOW + 8


def test_fewer_processes_wait_for_a_busy_node():
    running = [a_job("41", "running", gpus=1, devices=(0,), placement=(Share("a", (0,)),), remaining_s=60)]
    made = planned(training(2, 1, on="ab"), [node("a", 1)], running)
    assert made.waiting["j"].reason == (
        "resumes on 1 of 2 processes, as node b is gone; "
        "needs 1 GPU; node a: GPU 0 is busy with job 41 until about +60 s"
    )
    assert made.waiting["j"].expected_start == NOW + 60


def test_nodes_that_come_back_are_used_again():
    made = planned(training(3, on="ab", batch=60), [node(name) for name in "abc"])
    assert shape(made) == [1, 1, 1]
    assert made.actions[0].note == ""


def test_a_cluster_with_a_queue_gets_all_processes():
    slurm = NodeResources(name="slurm", executor="slurm", has_queue=True)
    assert shape(planned(training(2, on="ab"), [node("a"), slurm])) == [2]


def test_other_jobs_never_have_fewer_processes():
    job = replace(training(2, on="ab"), spec={})
    assert planned(job, [node("a")]).actions == ()


def calls(nodes, jobs):
    """Return how many functions a plan calls for trainings that resume on fewer processes."""
    machines = [node(f"n{number:03d}", 4) for number in range(nodes)]
    queue = [replace(training(200, 8, on="x"), id=f"j{number}", position=number) for number in range(jobs)]
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        made = plan(queue, [], [STUDIO, *machines], NOW, resumable={job.id for job in queue})
    finally:
        sys.setprofile(None)
    assert made.actions
    return count


def test_ten_times_the_nodes_are_ten_times_the_work_at_most():
    assert calls(100, 50) <= 10 * calls(10, 50)


def test_four_times_the_jobs_are_four_times_the_work_at_most():
    assert calls(100, 200) <= 4 * calls(100, 50)
