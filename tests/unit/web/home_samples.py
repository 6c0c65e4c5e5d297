"""What the tests of the first page share: trainings that ended, and what people read in an answer."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

from ziggurat.entities import Job
from ziggurat.events import AttemptEnded, AttemptStarted, ScalarLogged
from ziggurat.store import Store
from ziggurat.workspace.studio import Studio

STARTED = AttemptStarted(
    time=10.0, attempt=1, pid=7, host="here", backend="null", release="1", max_epoch=2, steps_per_epoch=20
)


def ended_training(studio: Studio, train: Callable[..., Any], accuracy: float, **fields: Any) -> Job:
    """Return a training that is done, with the accuracy that it came to; its newest one is less by 0.1."""
    job = train(**fields)
    said = [
        STARTED,
        ScalarLogged(time=11.0, tag="validation_accuracy", value=accuracy, step=20, epoch=1),
        ScalarLogged(time=12.0, tag="validation_accuracy", value=accuracy - 0.1, step=40, epoch=2),
        AttemptEnded(time=75.0, outcome="done", exit_code=0, global_step=40, epoch=2),
    ]
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0)
        assert store.events.take(job.id, 0, 1, said)
        store.jobs.move(job.id, ("running",), "done", ended=75.0)
    return studio.jobs.get(job.id)


def text_of(answer: Any) -> str:
    """Return the words of an answer as people read them."""
    return words_of(answer.text)


def words_of(content: str) -> str:
    """Return the words of HTML as people read them."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", content))).strip()


def rows_of(answer: Any) -> list[str]:
    """Return the ids of the table's rows in their order."""
    return re.findall(r'<(?:tr|li) id="row-([^"]+?)(?:-sweep)?"', answer.text)
