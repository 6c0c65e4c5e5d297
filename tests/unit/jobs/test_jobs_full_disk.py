"""A full disk: what a worker said last is known, however little can be written."""

from ziggurat.entities.heartbeat import reserve_last_words, write_last_words
from ziggurat.events import AttemptEnded
from ziggurat.layout import JobFolder

FULL = "A checkpoint must be written (received: No space left on device (errno 28))."


def end_on_a_full_disk(studio, name):
    """Let the worker end as one whose file of events takes nothing any more."""
    file = JobFolder(studio.folder(name)).last_words
    reserve_last_words(file)
    write_last_words(file, AttemptEnded(time=studio.executor.now, outcome="failed", exit_code=11, reason=FULL))
    studio.executor.end(studio.folder(name), code=11)


def test_the_cause_is_noted(studio):
    studio.submit("a")
    studio.tick()
    end_on_a_full_disk(studio, "a")
    studio.tick()
    job = studio.job("a")
    assert (job.state, job.reason, job.exit_code) == ("failed", FULL, 11)


def test_the_cause_survives_a_kill_of_the_studio(studio):
    studio.submit("a")
    studio.tick()
    studio.supervisor.close()
    end_on_a_full_disk(studio, "a")
    studio.executor.codes.clear()  # nobody noted the exit code
    studio.again()
    studio.tick()
    assert (studio.job("a").state, studio.job("a").reason) == ("failed", FULL)


def test_words_of_an_earlier_attempt_do_not_count(studio):
    studio.submit("a")
    studio.tick()
    end_on_a_full_disk(studio, "a")
    studio.tick()
    studio.supervisor.resume("a")
    studio.tick()
    studio.executor.end(studio.folder("a"), code=-9)
    studio.tick()
    assert "killed by SIGKILL" in studio.job("a").reason


def test_while_nothing_can_be_noted_the_end_is_told(studio):
    studio.submit("a")
    studio.tick()
    studio.store.events.is_full = True
    studio.executor.put(studio.folder("a"), 1)
    end_on_a_full_disk(studio, "a")
    studio.tick()
    assert studio.states() == {"a": "running"}
    assert studio.supervisor.problems()["a"] == (
        f"its worker has ended ({FULL}); this cannot be noted: "
        "The store must be writable (received: no space left on device)."
    )
    studio.store.events.is_full = False
    studio.tick()
    assert (studio.job("a").state, studio.supervisor.problems()) == ("failed", {})
