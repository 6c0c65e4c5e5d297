"""Checkpoints are atomic: whenever their writer is killed, the newest one loads, and nothing that was saved is lost."""

import signal

import numpy as np
import pytest
from worker_saver import REPORT

from tests.waiting import PROCESS_S, take_time, wait_until
from ziggurat.engine.checkpoints import CheckpointStore

KILLS = 200


@pytest.mark.nightly
def test_200_random_kills_never_leave_an_unloadable_state(workers, tmp_path):
    random = np.random.default_rng(8)
    folder, report = tmp_path / "checkpoints", tmp_path / REPORT
    saved_in_all, mended = 0, 0
    for number in range(KILLS):
        reported_bytes = report.stat().st_size if report.exists() else 0
        writer = workers.start_saver(folder, seed=number)
        wait_until(lambda: report.exists() and report.stat().st_size > reported_bytes, PROCESS_S, what="a save")  # noqa: B023
        take_time(random.uniform(0, 0.04))  # the moment of the kill is the subject: none may be special
        writer.signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL

        mended += any(path.name.startswith(".") for path in folder.iterdir())
        reported = report.read_bytes()
        saved_in_all = len(reported) // 8
        store = CheckpointStore(folder)
        loaded = store.latest()
        assert loaded is not None
        info, state, problems = loaded
        assert problems == []
        assert info.step >= int.from_bytes(reported[-8:])
        assert state.meta["global_step"] == info.step
        assert all((array == info.step).all() for array in state.arrays.values())
        names = [each.name for each in store.list()]
        assert set(store.names().values()) <= set(names)
    print(f"{saved_in_all} saves, {mended} of {KILLS} kills came in the middle of one")
    assert mended > KILLS / 10  # else the kills hit nothing


def test_a_checkpoint_saved_again_is_there_all_the_time(tmp_path, workers):
    folder, report = tmp_path / "checkpoints", tmp_path / REPORT
    writer = workers.start_saver(folder, seed=1)
    wait_until(lambda: report.exists() and report.stat().st_size > 80, PROCESS_S, what="ten saves")
    reader = CheckpointStore(folder, writable=False)
    for _ in range(100):
        reader.list()  # checkpoints come and go, and none of that is an error
    writer.signal(signal.SIGKILL)
    writer.wait()
    assert CheckpointStore(folder).latest() is not None
