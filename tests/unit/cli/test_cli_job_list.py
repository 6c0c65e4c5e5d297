"""``ziggurat job list``: one line for each job, with the result of those that are trained."""

from __future__ import annotations

from typing import Any

from studio_stand_in import studio_stand_in

JOB = {
    "id": "20260101-000000-abcd", "name": "lenet on digits", "kind": "train", "state": "done",
    "reason": "all epochs are done",
    "global_step": 40, "total_steps": 40, "outcome": "done",
    "scalars": {
        "cost": {"tag": "cost", "last": 0.2, "minimum": 0.2, "maximum": 2.0},
        "validation_accuracy": {"tag": "validation_accuracy", "last": 0.8, "minimum": 0.1, "maximum": 0.856},
    },
}  # fmt: skip


def test_a_list_of_jobs_has_their_best_results(ziggurat: Any) -> None:
    other = {**JOB, "kind": "evaluate", "scalars": {}, "reason": "146 samples of val"}

    def answer(_method: str, _path: str) -> tuple[int, Any]:
        return 200, {"total": 2, "jobs": [JOB, other]}

    with studio_stand_in(answer) as (address, _):
        head, train, evaluate = ziggurat("--server", address, "job", "list").out.splitlines()
    assert head.split()[-2:] == ["result", "reason"]
    assert "validation accuracy 85.6" in train
    assert evaluate.split("step 40 of 40")[1].split() == ["146", "samples", "of", "val"]
