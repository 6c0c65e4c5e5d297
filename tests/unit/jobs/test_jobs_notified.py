"""The scheduler beside notifications whose receiver never answers."""

import socket
from dataclasses import replace

from ziggurat.entities.jobs import outcome_of
from ziggurat.workspace.studio.notifications import Notifications


class Jobs:
    """The jobs of the double of a store, with the outcome that the real one adds."""

    def __init__(self, store):
        self.store = store

    def some(self, job_ids):
        jobs = [self.store.jobs.get(job_id) for job_id in job_ids]
        return {job.id: replace(job, outcome=outcome_of(job.state, job.divergence)) for job in jobs}


def test_the_scheduler_goes_on_while_no_receiver_answers(studio, tmp_path):
    bus, now = studio.supervisor.hub, lambda: studio.executor.now
    told = Notifications(tmp_path, Jobs(studio.store), bus, lambda: (2, 1), webhook_hosts="127.0.0.1", clock=now)
    with socket.create_server(("127.0.0.1", 0)) as receiver:
        receiver.settimeout(30)
        url = f"http://127.0.0.1:{receiver.getsockname()[1]}/"
        told.set({"webhook_url": url, "webhook_key": "0123456789abcdef"})
        told.start()
        for number in range(4):
            studio.submit(f"j{number}")
            studio.tick()
            studio.executor.end(studio.folder(f"j{number}"), "done", 0, "all epochs are done")
            studio.tick()
            if number == 0:
                connection, _ = receiver.accept()  # the message comes, and nobody ever answers it
        assert studio.states() == {f"j{number}": "done" for number in range(4)}
        assert told.describe()["last"] == {}
        told.close()
        connection.close()
