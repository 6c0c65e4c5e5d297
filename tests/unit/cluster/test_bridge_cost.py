"""What a hundred running jobs cost the bridge, with nodes that answer at once."""

import json
import threading
import time

import pytest

from ziggurat.cluster.exchange import Append, End, FileNote, Reply, digest_of
from ziggurat.cluster.followed_job import FollowedJob, Place

JOBS, ROUNDS = 100, 5


class Node:
    """A worker that has written an event, a line of its log and a heartbeat since it was last asked."""

    def __init__(self):
        self.number = 0

    def is_started(self):
        return True

    def exchange(self, request):
        self.number += 1
        event = json.dumps({"event": "scalar", "tag": "cost", "step": self.number, "value": 0.5}).encode() + b"\n"
        beat = json.dumps({"pid": 1, "host": "a", "time": 1.0 * self.number, "global_step": self.number}).encode()
        digest = digest_of(beat)
        appends = {
            name: Append(request.ends.get(name, End()), data)
            for name, data in (("events.jsonl", event * 10), ("log.txt", b"epoch 1/9, step 3/20, cost 0.5\n"))
        }
        return Reply(
            attempt=request.attempt,
            number=self.number,
            appends=appends,
            files={"heartbeat.json": FileNote(len(beat), (digest,))},
            pieces={digest: beat},
        )


@pytest.fixture
def jobs(tmp_path):
    """Return jobs whose folders have what a running training has."""
    made = []
    for number in range(JOBS):
        folder = tmp_path / "jobs" / f"job-{number}"
        (folder / "checkpoints" / "step-1").mkdir(parents=True)
        (folder / "spec.json").write_text("{}")
        (folder / "checkpoints" / "step-1" / "arrays.npz").write_bytes(b"a" * 100_000)
        place = Place("a", tmp_path)
        made.append(FollowedJob(folder, 1, Node(), place, 15.0, time.monotonic, threading.Event()))
    return made


def test_a_hundred_jobs_cost_a_tenth_of_a_core(jobs):
    for job in jobs:
        job.look()  # reads the folder once
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for job in jobs:
            job.look()
        rounds.append(time.process_time() - began)
    assert all(job.state == {"state": "running"} for job in jobs)
    # The bridge asks each job once a second.
    assert min(rounds) < 0.1, f"{rounds} s of CPU for {JOBS} exchanges"
    print(f"{min(rounds):.3f} s of CPU for {JOBS} exchanges")
