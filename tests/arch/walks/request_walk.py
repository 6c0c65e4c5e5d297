"""A training request from the page to the queue; only the answer to it is recorded."""

import sys
from pathlib import Path

import sitecustomize

from tests.unit.studio_samples import add_pets, make_empty_workspace, studio_in_copy
from tests.unit.web.conftest import Visitor
from ziggurat.app import create_studio

FORM = {"method": "standard", "standard_network": "null/mlp", "shuffle": "true", "epochs": "2", "batch_size": "4"}

folder = Path(sys.argv[1])
with studio_in_copy(make_empty_workspace(folder / "empty"), folder / "made") as studio:
    visit = Visitor(create_studio(studio))
    dataset = add_pets(studio, folder / "pets")
    visit.get("/models/new")
    sitecustomize.begin()
    answer = visit.post("/models/new", data={**FORM, "dataset": dataset})
    sys.setprofile(None)
    assert answer.status_code == 303, answer.text
    assert [job.kind for job in studio.jobs.queue_page(10).jobs] == ["train"]
