"""Workers of jobs as the store keeps them: one JSON value that only their executor reads, and the nodes of the job."""

from __future__ import annotations

import shutil
from pathlib import Path

from store_samples import new_job

from ziggurat.entities import ResourceRequest, Share, WorkerRef
from ziggurat.layout import JobFolder
from ziggurat.store import JobOnDisk, Relocation, Store

WORKER = WorkerRef(executor="ray", node="b", attempt=3, opaque={"actor": "m-3", "births": [1.5, None]})
PLACEMENT = (Share("b", (0, 1), (0, 1)), Share("c", (2, 3), (2, 3)))


def test_a_worker_and_its_placement_come_back_as_they_were(store: Store) -> None:
    needs = ResourceRequest(devices=2, slot="device", nodes=2, datasets=("cells",))
    job = store.jobs.add(new_job("m", needs=needs))
    assert (job.worker, job.placement, job.needs) == (None, (), needs)
    store.jobs.move("m", ("queued",), "running", worker=WORKER, placement=PLACEMENT)
    job = store.jobs.get("m")
    assert (job.worker, job.placement) == (WORKER, PLACEMENT)
    store.jobs.note("m", worker=None)
    assert store.jobs.get("m").worker is None


def test_a_rebuild_leaves_the_worker_that_the_store_knows(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "m"
    folder.mkdir(parents=True)
    JobFolder(folder).spec.write_text("{}")
    store.jobs.add(new_job("m", folder=str(folder)))
    store.jobs.move("m", ("queued",), "running", worker=WORKER, placement=PLACEMENT, pid=7, host="b")
    asked = new_job("m", folder=str(folder))
    store.reindex(tmp_path, lambda _: JobOnDisk(job=asked, state="running", fields={"pid": 7, "host": "b"}))
    job = store.jobs.get("m")
    assert (job.worker, job.placement, job.state) == (WORKER, PLACEMENT, "running")


def test_a_moved_workspace_keeps_its_workers_and_a_copy_has_none(address: str, tmp_path: Path) -> None:
    before, moved, copied = (tmp_path / name for name in ("before", "moved", "copied"))
    (before / "jobs" / "m").mkdir(parents=True)
    with Store.open(address) as store:
        assert store.settle(before) is None
        store.jobs.add(new_job("m", folder=str(before / "jobs" / "m")))
        store.jobs.note("m", worker=WORKER)
    before.rename(moved)
    with Store.open(address) as store:
        assert store.settle(moved) == Relocation(before=str(before), copied=False)
        assert store.jobs.get("m").worker == WORKER
    shutil.copytree(moved, copied)
    with Store.open(address) as store:
        assert store.settle(copied, take_over=True) == Relocation(before=str(moved), copied=True)
        assert store.jobs.get("m").worker is None, "the original's worker must not be ended from here"
