"""What jobs wrote: the same use cases find it by the path of a folder and by the id of a studio's job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ziggurat.errors import CheckpointError, JobError
from ziggurat.events import EventFile, Message
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.workspace import open_folders
from ziggurat.workspace.job_outputs import JobOutputs
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.bootstrap import open_studio

SPEC = {"kind": "train", "version": 1, "network": "mlp", "data": "digits", "backend": "null"}


@pytest.fixture(params=["folders", "studio"])
def named(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[JobOutputs, str]]:
    settings = Settings(workspace=tmp_path)
    with open_studio(settings, start=False) as studio:
        (job,) = studio.training.create(JobRequest(spec=SPEC))
        folder = JobFolder(Path(job.folder))
        folder.log.write_bytes(b"one\ntwo\n")
        with closing(EventFile(folder.events)) as file:
            file.write(Message(time=1.0, level="info", text="begun"))
        if request.param == "studio":
            yield studio.outputs, job.id
        else:
            yield open_folders(settings).outputs, job.folder


def test_log_and_events_are_found_by_name(named: tuple[JobOutputs, str]) -> None:
    outputs, name = named
    assert outputs.log(name).text == "one\ntwo\n"
    assert outputs.log(name, at_most_bytes=4).text == "two\n"
    assert b"".join(outputs.whole_log(name)) == b"one\ntwo\n"
    assert [event.type for event in outputs.events(name)] == ["message"]


def test_checkpoints_of_a_job_without_any(named: tuple[JobOutputs, str]) -> None:
    outputs, name = named
    assert outputs.checkpoints(name) == []
    with pytest.raises(CheckpointError):
        outputs.remove_checkpoint(name, "step-00000001")


def test_unknown_name_is_no_job(named: tuple[JobOutputs, str], tmp_path: Path) -> None:
    outputs, _ = named
    with pytest.raises(JobError):
        outputs.log(str(tmp_path / "nothing"))
