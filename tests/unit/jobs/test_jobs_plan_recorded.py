"""Plans of random situations, which stay what they were when every job asked every node."""

import hashlib
import random

from jobs_doubles import a_job

from ziggurat.entities import Device, NodeResources, ResourceRequest, Share
from ziggurat.jobs.plan import plan

NOW = 1_000_000.0
GB = 1_000_000_000
RECORDED = (
    "c6249818b47a",
    "b9a184d0239e",
    "c0fe63a44f80",
    "1638e8143ca7",
)
"""Digests of 250 plans each; the first ones were made by the scheduler that computed each answer anew."""


def clock(moment, now):
    return f"+{moment - now:.0f} s"


def a_node(draw, number, *, is_cluster):
    sizes = [
        draw.choice((8, 16, 16, 24)) * GB for _ in range(draw.choice((0, 1, 2, 4, 8) if is_cluster else (0, 1, 2, 4)))
    ]
    devices = [
        Device(
            index=index,
            name="GPU",
            memory_bytes=size,
            free_bytes=size - draw.choice((0, 0, 0, 3, 8)) * GB,
            usable=draw.random() < 0.95,
        )
        for index, size in enumerate(sizes)
    ]
    return NodeResources(
        name=f"n{number}",
        executor="ray" if is_cluster else "local",
        devices=tuple(devices),
        cpu_slots=draw.choice((0, 1, 2, 3)),
        dataset_slots=draw.choice((0, 1, 2)) if number == 0 else 0,
        memory_bytes=draw.choice((0, 0, 16, 64)) * GB,
        disk_free_bytes=draw.choice((9, 9, 9, 9, 9, 9, 9, 2)) * GB if number else 9 * GB,
        disk_reserve_bytes=5 * GB,
        datasets=None if number == 0 else frozenset(draw.sample("abc", draw.randint(0, 2))),
        has_queue=is_cluster and draw.random() < 0.05,
    )


def a_request(draw):
    kind = draw.choice(("cpu", "cpu", "dataset", "device", "device", "device", "chosen"))
    datasets = tuple(draw.sample("abc", draw.choice((0, 0, 1, 2))))
    memory = draw.choice((0, 0, 1, 4, 12, 20, 70)) * GB + draw.choice((0, 0, draw.randint(1, GB)))
    if kind in ("cpu", "dataset"):
        return ResourceRequest(memory_bytes=memory, slot=kind, datasets=datasets, nodes=draw.choice((1, 1, 1, 1, 2)))
    size = draw.choice((0, 0, 0, 5, 9, 16, 20, 30)) * GB + draw.choice((0, draw.randint(1, GB)))
    indices = tuple(sorted(draw.sample(range(4), draw.randint(1, 2)))) if kind == "chosen" else ()
    return ResourceRequest(
        devices=len(indices) or draw.choice((1, 1, 1, 2, 3, 4)),
        device_indices=indices,
        device_memory_bytes=size,
        memory_bytes=memory,
        slot="device",
        nodes=draw.choice((1, 1, 1, 2, 3)),
        datasets=datasets,
    )


def a_situation(draw):
    """Return jobs in the queue, jobs that run, and nodes."""
    is_cluster = draw.random() < 0.7
    nodes = [a_node(draw, number, is_cluster=is_cluster) for number in range(draw.randint(2, 9) if is_cluster else 1)]
    running, taken = [], set()
    for number in range(draw.randint(0, 2 * len(nodes))):
        node = draw.choice(nodes)
        usable = [each.index for each in node.devices if (node.name, each.index) not in taken]
        devices = tuple(sorted(draw.sample(usable, min(len(usable), draw.choice((0, 1, 2))))))
        taken |= {(node.name, index) for index in devices}
        needs = ResourceRequest(
            devices=len(devices), slot="device" if devices else "cpu", memory_bytes=draw.choice((0, 1, 9)) * GB
        )
        where = {"placement": (Share(node.name, devices),)} if node is not nodes[0] or draw.random() < 0.5 else {}
        remaining = draw.choice((None, None, 60.0 * draw.randint(1, 15)))
        running.append(a_job(f"r{number}", "running", needs=needs, devices=devices, remaining_s=remaining, **where))
    kinds = [a_request(draw) for _ in range(draw.randint(1, 8))]
    queue = []
    for number in range(draw.randint(1, 30)):
        others = [*queue, *running]
        depends = (draw.choice(others).id,) if others and draw.random() < 0.08 else ()
        queue.append(
            a_job(
                f"j{number}",
                kind="program",  # trainings over several nodes go to a cluster with a queue since then
                needs=draw.choice(kinds) if draw.random() < 0.6 else a_request(draw),
                position=float(number),
                priority=draw.choice((0, 0, 0, 1)),
                remaining_s=draw.choice((None, 60.0 * draw.randint(1, 15))),
                depends_on=depends,
            )
        )
    return queue, running, nodes


def told(made):
    """Return everything that a plan decided and said."""
    return made.actions, [(job_id, each.reason, each.expected_start) for job_id, each in made.waiting.items()]


def test_plans_are_those_that_were_recorded():
    draw, digests = random.Random(40), []
    for _ in RECORDED:
        plans = [told(plan(*a_situation(draw), NOW, clock=clock)) for _ in range(250)]
        # Notes are younger than the digests; none of these jobs has one.
        digests.append(hashlib.sha256(repr(plans).replace(", note=''", "").encode()).hexdigest()[:12])
    assert tuple(digests) == RECORDED
