"""What is recorded of the arithmetic of a training, and what a resume says of it."""

import json
from pathlib import Path
from typing import Any

from worker_jobs import STEPS, events_of, messages_of

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.events import ErrorRaised, Message
from ziggurat.layout import JobFolder
from ziggurat.workspace.job_folders import job_status

EXACT = "Exact: same state, data and arithmetic."


def records_of(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in JobFolder(folder).events.read_text().splitlines()]
    return [line for line in lines if line["type"] == "arithmetic"]


def test_each_attempt_and_checkpoint_has_the_record(workers, job):
    assert workers.execute(job) == 0
    values = [record["values"] for record in records_of(job)]
    assert [each["backend"] for each in values] == ["null"]
    assert {"numpy", "blas", "opencv", "pillow", "jpeg", "image_engine", "processor", "instructions"} <= set(values[0])
    newest = CheckpointStore(JobFolder(job).checkpoints, writable=False).latest()
    assert newest is not None
    assert newest[1].meta["arithmetic"] == values[0]


def test_a_resume_with_the_same_arithmetic_is_exact(workers, job):
    assert workers.execute(job, f"term:{STEPS + 1}") == 75
    assert workers.execute(job) == 0
    assert [record["verdict"] for record in records_of(job)] == ["first", "same"]
    assert records_of(job)[1]["text"] == EXACT


def test_a_resume_with_other_arithmetic_says_what_differs(workers, job):
    assert workers.execute(job, f"term:{STEPS + 1}", variables={"MKL_CBWR": "AVX2"}) == 75
    assert workers.execute(job, variables={"MKL_CBWR": "SSE4_2"}) == 0
    said = [each.text for each in events_of(job, Message) if each.level == "warning"]
    (text,) = [each for each in said if "arithmetic" in each]
    assert text.startswith("Same state and data, other arithmetic: environment variables ")
    assert "MKL_CBWR=AVX2" in text
    assert "MKL_CBWR=SSE4_2" in text
    assert EXACT not in messages_of(job)
    assert [record["checkpoint"] for record in records_of(job)] == ["", f"step-{STEPS + 1:08d}"]
    assert job_status(job, now=0.0).as_dict()["arithmetic"]["text"] == text


def test_a_resume_of_an_older_job_is_never_called_exact(workers, job):
    assert workers.execute(job, f"term:{STEPS + 1}") == 75
    for state in JobFolder(job).checkpoints.glob("step-*/state.json"):
        content = json.loads(state.read_text())
        content["meta"].pop("arithmetic", None)
        state.write_text(json.dumps(content))
    assert workers.execute(job) == 0
    assert f"Same state and data; arithmetic not recorded in step-{STEPS + 1:08d}." in messages_of(job)
    assert EXACT not in messages_of(job)


def test_threads_are_refused_where_numpy_chooses_them(workers, new_job):
    job = new_job(threads=2)
    assert workers.execute(job) == 3
    (error,) = events_of(job, ErrorRaised)
    assert "`threads` must be left out" in error.error["message"]
