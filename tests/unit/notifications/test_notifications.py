"""Notifications of a studio: what is told of which job, and that a dead receiver delays nothing."""

import json
import threading

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")

from tests.unit.studio_samples import make_empty_workspace, studio_in_copy
from tests.waiting import wait_until
from ziggurat.errors import UsageError
from ziggurat.jobs.pubsub import EventBus
from ziggurat.store import Store
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.notifications import Notifications

KEY = "0123456789abcdef"


@pytest.fixture(scope="session")
def empty_workspace(tmp_path_factory):
    return make_empty_workspace(tmp_path_factory.mktemp("empty"))


@pytest.fixture
def studio(tmp_path, empty_workspace):
    with studio_in_copy(empty_workspace, tmp_path) as opened:
        yield opened


class Disk:
    """Free and reserved bytes, as a test says."""

    def __init__(self):
        self.free, self.reserve = 10_000, 1_000

    def __call__(self):
        return self.free, self.reserve


@pytest.fixture
def told(studio, receiver):
    """Notifications of the studio, sent to the receiver, with a bus and a disk of the test."""
    bus, disk, now = EventBus(), Disk(), [studio.clock()]
    made = Notifications(
        studio.root, studio.jobs, bus, disk, webhook_hosts="127.0.0.1", clock=lambda: now[0], retry_after_s=(0.0,)
    )
    made.set({"webhook_url": receiver.url, "webhook_key": KEY, "address": "https://studio.example.org/"})
    made.start()

    class Told:
        notifications = made

        def notice(self, job_id):
            bus.publish("jobs", "state", job_id)

        def after(self, seconds):
            now[0] += seconds

    Told.bus, Told.disk = bus, disk
    yield Told()
    made.close()


@pytest.fixture
def end(studio):
    """End a new training as a worker would; return it."""

    def move(state, **fields):
        spec = {"kind": "train", "version": 1, "name": "tiny", "backend": "null", "network": "mlp", "data": "digits"}
        (job,) = studio.training.create(JobRequest(spec={**spec, "epochs": 2, "batch_size": 4}), owner="local")
        with Store.open(studio.root / "studio.db") as store:
            store.jobs.move(job.id, ("queued",), "running", started=studio.clock() - 1)
            store.jobs.move(job.id, ("running",), state, ended=studio.clock(), **fields)
        return job

    return move


def next_body(receiver):
    assert receiver.came.acquire(timeout=30)
    return json.loads(receiver.got[-1].body)


def test_a_finished_run_is_told_once(told, receiver, end):
    job = end("done")
    for _ in range(3):
        told.notice(job.id)
    body = next_body(receiver)
    assert (body["kind"], body["title"]) == ("finished", "Run finished: tiny")
    assert body["text"] == f"Run tiny finished.\nhttps://studio.example.org/jobs/{job.id}"
    assert (body["job"]["id"], body["job"]["state"]) == (job.id, "done")
    failed = end("failed", reason="Out of memory.")
    told.notice(failed.id)
    body = next_body(receiver)
    assert (body["kind"], body["job"]["id"]) == ("failed", failed.id)  # and no second message of the first
    assert "Out of memory." in body["text"]


def test_a_diverged_run_is_told_as_such(told, receiver, end):
    moment = {"tag": "loss", "value": None, "step": 4, "epoch": 1, "non_finite": "NaN", "learning_rate": 1000.0}
    best = {"best": None, "best_step": 0, "best_epoch": 0, "noticed_step": 4}
    told.notice(end("done", facts={"divergence": {**moment, **best}}).id)
    body = next_body(receiver)
    assert (body["kind"], body["title"]) == ("diverged", "Run diverged: tiny")
    assert "Diverged: the loss became NaN at step 4" in body["text"]


def test_stopped_runs_and_events_not_chosen_are_not_told(told, receiver, end):
    told.notifications.set({"events": ["failed"]})
    for state in ("stopped", "done", "failed"):
        told.notice(end(state).id)
    assert next_body(receiver)["kind"] == "failed"
    assert len(receiver.got) == 1


def test_a_full_disk_is_told_once_until_it_is_well_again(told, receiver, end):
    told.disk.free = 999
    told.after(60)
    told.notice("x")
    body = next_body(receiver)
    assert (body["kind"], body["disk"]) == ("disk_low", {"free_bytes": 999, "reserve_bytes": 1000})
    since = told.notifications.disk_low_since
    for free in (998, 5000):
        told.disk.free = free
        told.after(60)
        told.notice("x")
    wait_until(lambda: told.notifications.disk_low_since is None)
    told.disk.free = 10
    told.after(60)
    told.notice("x")
    assert next_body(receiver)["disk"]["free_bytes"] == 10
    assert since != told.notifications.disk_low_since
    assert len(receiver.got) == 2


def test_many_ends_at_once_are_all_told(told, receiver, end):
    jobs = [end("done") for _ in range(3)]
    told.bus.publish("jobs", "reload")  # stands for notices that were too many
    for _ in jobs:
        assert receiver.came.acquire(timeout=30)
    assert {json.loads(each.body)["job"]["id"] for each in receiver.got} == {job.id for job in jobs}


def test_the_test_message_says_what_became_of_it(told, receiver):
    receiver.answers = [404]
    assert told.notifications.test() == {"webhook": "it answered 404 Not Found"}
    assert told.notifications.test() == {"webhook": ""}
    last = told.notifications.describe()["last"]["webhook"]
    assert (last["title"], last["problem"]) == ("Test of notifications", "")
    told.notifications.set({"webhook_url": ""})
    with pytest.raises(UsageError, match="No receiver is set"):
        told.notifications.test()


def test_a_dead_receiver_delays_neither_jobs_nor_requests(told, receiver, end):
    receiver.may_answer.clear()  # it takes the first message and answers never
    told.notice(end("done").id)
    assert receiver.came.acquire(timeout=30)
    jobs = [end("done") for _ in range(3)]
    for job in jobs:
        told.notice(job.id)  # the scheduler publishes and goes on
    assert told.notifications.describe()["last"] == {}
    told.disk.free = 1
    told.after(60)
    told.notice("x")
    wait_until(lambda: told.notifications.disk_low_since is not None)  # the watch goes on, too
    assert len(receiver.got) == 1
    closing = threading.Thread(target=told.notifications.close)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
