"""What holds of every plan: nothing is given twice, nobody waits without a reason, nobody waits for ever."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from jobs_doubles import a_job, machine

from ziggurat.entities import ResourceRequest
from ziggurat.jobs.plan import Fail, Start, plan

NOW = 5000.0

remaining = st.none() | st.integers(1, 1000).map(float)
needs = st.one_of(
    st.builds(lambda memory: ResourceRequest(memory_bytes=memory), st.integers(0, 12)),
    st.builds(lambda count: ResourceRequest(devices=count, slot="device"), st.integers(1, 5)),
    st.builds(
        lambda indices: ResourceRequest(devices=len(indices), device_indices=tuple(sorted(indices)), slot="device"),
        st.sets(st.integers(0, 4), min_size=1, max_size=3),
    ),
    st.just(ResourceRequest(slot="dataset")),
)


@st.composite
def situations(draw):
    """Jobs in the queue, jobs that a plan could have started, and a machine."""
    resources = machine(
        draw(st.integers(0, 4)),
        cpu_slots=draw(st.integers(0, 3)),
        dataset_slots=draw(st.integers(0, 2)),
        memory_bytes=draw(st.sampled_from([0, 10])),
    )
    jobs = [
        a_job(f"job{number}", position=number, needs=draw(needs), remaining_s=draw(remaining),
              priority=draw(st.integers(0, 1)))
        for number in range(draw(st.integers(0, 10)))
    ]  # fmt: skip
    depends = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4))
    for one, other in depends:
        if other < one < len(jobs):
            jobs[one] = type(jobs[one])(**{**vars(jobs[one]), "depends_on": (jobs[other].id,)})
    first = plan(jobs[::2], (), [resources], NOW)
    taken = {action.job_id: action.placement[0].devices for action in first.actions if isinstance(action, Start)}
    running = [
        type(job)(**{**vars(job), "state": "running", "devices": taken[job.id]}) for job in jobs if job.id in taken
    ]
    return [job for job in jobs if job.id not in taken], running, resources


def check_room(running, resources):
    devices = [index for job in running for index in job.devices]
    assert len(devices) == len(set(devices))
    assert set(devices) <= {device.index for device in resources.devices}
    for job in running:
        wanted = job.needs
        assert len(job.devices) == (len(wanted.device_indices) or wanted.devices)
        assert set(wanted.device_indices) <= set(job.devices)
    assert sum(job.needs.slot == "cpu" for job in running) <= resources.cpu_slots
    assert sum(job.needs.slot == "dataset" for job in running) <= resources.dataset_slots
    if resources.memory_bytes:
        assert sum(job.needs.memory_bytes for job in running) <= resources.memory_bytes


def begun(jobs, made):
    taken = {action.job_id: action.placement[0].devices for action in made.actions if isinstance(action, Start)}
    return [type(job)(**{**vars(job), "state": "running", "devices": taken[job.id]}) for job in jobs if job.id in taken]


@settings(max_examples=300, deadline=None)
@given(situations())
def test_nothing_is_given_twice_and_waiting_has_its_reason(situation):
    jobs, running, resources = situation
    made = plan(jobs, running, [resources], NOW)
    check_room([*running, *begun(jobs, made)], resources)
    acted = [action.job_id for action in made.actions]
    assert sorted([*acted, *made.waiting]) == sorted(job.id for job in jobs)
    for waiting in made.waiting.values():
        assert waiting.reason
        assert waiting.expected_start is None or waiting.expected_start >= NOW


@settings(max_examples=200, deadline=None)
@given(situations(), st.randoms())
def test_the_same_situation_gives_the_same_plan(situation, shuffler):
    jobs, running, resources = situation
    made = plan(jobs, running, [resources], NOW)
    shuffler.shuffle(jobs)
    shuffler.shuffle(running)
    assert plan(jobs, running, [resources], NOW) == made


@settings(max_examples=200, deadline=None)
@given(situations())
def test_a_second_plan_starts_nothing_more(situation):
    jobs, running, resources = situation
    made = plan(jobs, running, [resources], NOW)
    more = begun(jobs, made)
    gone = {job.id for job in more} | {action.job_id for action in made.actions if isinstance(action, Fail)}
    left = [job for job in jobs if job.id not in gone]
    again = plan(left, [*running, *more], [resources], NOW)
    assert not [action for action in again.actions if isinstance(action, Start)]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.integers(0, 10_000), st.booleans())
def test_a_stream_of_small_jobs_starves_nobody(count, seed, knows_ends):
    draw = random.Random(seed)
    resources = machine(4)
    running = [
        a_job(f"r{index}", "running", gpus=1, devices=(index,), remaining_s=draw.randint(1, 50)) for index in range(4)
    ]
    large = a_job("large", position=-1, gpus=count)
    queue, now = [large], NOW
    for number in range(60):
        queue.append(a_job(f"s{number}", position=number, gpus=1, remaining_s=draw.randint(1, 50)))
        if not knows_ends:
            running = [type(job)(**{**vars(job), "remaining_s": None}) for job in running]
        made = plan(queue, running, [resources], now)
        fresh = begun(queue, made)
        running += fresh
        check_room(running, resources)
        if large.id in {job.id for job in fresh}:
            return
        queue = [job for job in queue if job.id in made.waiting]
        # The next one ends: the one that said so, or any.
        ends = min(running, key=lambda job: (job.remaining_s or 0, job.id)) if knows_ends else draw.choice(running)
        passed = (ends.remaining_s or 1) if knows_ends else 1
        now += passed
        running = [
            type(job)(**{**vars(job), "remaining_s": max(0.0, (job.remaining_s or passed) - passed)})
            for job in running
            if job is not ends
        ]
    raise AssertionError("the large job waits for ever")
