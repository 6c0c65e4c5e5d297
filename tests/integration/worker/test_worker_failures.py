"""Errors in a training: the exit code of their family, what the events and the log say, and going on afterwards."""

import pytest
from worker_jobs import LAST, differences, end_of, error_of, messages_of, outcome_of, steps_of

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities import EXIT_STOPPED
from ziggurat.events import AttemptStarted, read_events
from ziggurat.layout import CheckpointFiles, JobFolder, checkpoint_name

ADVICE = "Its traceback is in log.txt of the job; mend the cause, then resume the job."
FAILURES = [
    ("DataError", 4, "data", "The data must stay (received: nothing). Bring it back."),
    ("TrainingError", 6, "training", "The training must go well (received: a strike). Wait for its end."),
    (
        "ValueError",
        1,
        "unexpected",
        "The attempt ended by an error that Ziggurat does not know (received: ValueError: struck "
        f"(Raised by trigger_step of callback Strike, epoch 2, step 9)). {ADVICE}",
    ),
]


@pytest.mark.parametrize(("kind", "code", "name", "text"), FAILURES)
def test_an_error_in_mid_epoch(workers, job, kind, code, name, text):
    worker = workers.start(job, environment={"TEST_STRIKE": f"{kind}:9"})
    assert worker.wait() == code
    assert worker.said == f"Error: {text}\n"  # one sentence: the traceback is for those who look for it
    error, end = error_of(job), end_of(job)
    assert (error.error["error"], error.error["message"], error.step) == (name, text, 9)
    assert f'raise {kind}("' in error.traceback
    assert error.traceback in JobFolder(job).log.read_text()
    assert (end.outcome, end.exit_code, end.reason, end.global_step) == ("failed", code, text, 9)
    assert steps_of(job)[-1] == 8

    assert workers.execute(job) == 0  # once the cause is gone
    assert steps_of(job)[-1] == LAST


def test_the_traceback_is_shown_to_those_who_want_it(workers, job):
    worker = workers.start(job, environment={"TEST_STRIKE": "ValueError:2", "ZIGGURAT_DEBUG": "true"})
    assert worker.wait() == 1
    assert worker.said.startswith("Traceback (most recent call last):\n")
    assert worker.said.splitlines()[-1].startswith("Error: The attempt ended by an error that")


def test_an_error_in_the_set_up(workers, new_job):
    job = new_job(backend="test_broken")
    assert workers.execute(job) == 1
    assert "received: ValueError: no program today)." in error_of(job).error["message"]
    assert (end_of(job).outcome, end_of(job).global_step) == ("failed", 0)


def test_data_that_is_gone(workers, new_job, tmp_path, data):
    mine = tmp_path / "mine"
    mine.mkdir()
    files = {path.name: path.read_bytes() for path in data.iterdir()}
    for name, content in files.items():
        (mine / name).write_bytes(content)
    job = new_job(data=mine)
    assert workers.execute(job, "term:4") == EXIT_STOPPED
    (mine / "train-images-idx3-ubyte").unlink()
    assert workers.execute(job) == 4
    assert error_of(job).error["error"] == "data"
    assert "train-images-idx3-ubyte" in end_of(job).reason
    (mine / "train-images-idx3-ubyte").write_bytes(files["train-images-idx3-ubyte"])
    assert workers.execute(job) == 0


def test_two_workers_in_one_folder(workers, new_job):
    options = {"each_s": 0.05}
    job = new_job(callbacks=[{"name": "test_pause", "options": options}])
    first = workers.start(job)
    while not read_events(JobFolder(job).events)[0]:
        assert first.is_alive()
    second = workers.start(job)
    assert second.wait() == 10
    assert second.said == (
        f"Error: Process {first.pid} trains in {job} already. "
        f"Wait for it to end, or ask it to with: ziggurat stop {job}.\n"
    )
    assert first.wait() == 0
    assert [event.pid for event in read_events(JobFolder(job).events)[0] if isinstance(event, AttemptStarted)] == [
        first.pid
    ]
    assert steps_of(job)[-1] == LAST


DAMAGES = {
    "a changed byte": lambda files: files.arrays.write_bytes(flipped(files.arrays.read_bytes())),
    "a cut file": lambda files: files.arrays.write_bytes(files.arrays.read_bytes()[:-9]),
    "an empty state": lambda files: files.state.write_bytes(b""),
    "a missing file": lambda files: files.arrays.unlink(),
    "a changed state": lambda files: files.state.write_bytes(b'{"format": 1, "meta": {}}'),
}


def flipped(data):
    """Return bytes with another one in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def damage(job, step, how):
    """Damage a checkpoint; return its folder."""
    files = CheckpointFiles(JobFolder(job).checkpoints / checkpoint_name(step))
    DAMAGES[how](files)
    return files.path


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over(workers, new_job, how):
    whole, job = new_job(), new_job()
    assert workers.execute(whole) == 0
    assert workers.execute(job, "kill:9") == -9
    path = damage(job, 8, how)
    assert workers.execute(job) == 0
    (message,) = messages_of(job)
    assert message.startswith(f"The checkpoint {path} is damaged: ")
    assert message.endswith(f"It goes on from {checkpoint_name(6)}.")
    started = [event for event in read_events(JobFolder(job).events)[0] if isinstance(event, AttemptStarted)][-1]
    assert (started.checkpoint, started.global_step, started.attempt) == (checkpoint_name(6), 6, 2)
    assert differences(outcome_of(job), outcome_of(whole)) == []


def test_a_job_with_all_checkpoints_damaged_does_not_restart(workers, job):
    assert workers.execute(job, "kill:9") == -9
    store = CheckpointStore(JobFolder(job).checkpoints)
    steps = [info.step for info in store.list()]
    paths = [damage(job, step, "a changed byte") for step in steps]
    assert workers.execute(job) == 7
    assert error_of(job).error["error"] == "checkpoint"
    assert f"The checkpoint {paths[-1]} is damaged: the checksum of arrays.npz is another." in end_of(job).reason
    assert [info.step for info in store.list()] == steps  # nothing was removed


def test_damaged_names_of_checkpoints_are_given_again(workers, new_job):
    whole, job = new_job(), new_job()
    assert workers.execute(whole) == 0
    assert workers.execute(job, "kill:9") == -9
    (JobFolder(job).checkpoints / "names.json").write_text("{")
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), outcome_of(whole)) == []
