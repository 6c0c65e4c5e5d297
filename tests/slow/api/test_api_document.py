"""What the OpenAPI document says of every operation holds for requests that are made from it."""

import asyncio
import shutil
import zlib
from types import SimpleNamespace
from typing import Any

import cv2
import httpx
import hypothesis
import numpy as np
import pytest
import requests

pytest.importorskip("schemathesis", reason="the extra `dev` is not installed")

import schemathesis
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.waiting import wait_until
from ziggurat.api.app import create_app
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.server.openapi import openapi_of
from ziggurat.settings import Settings
from ziggurat.specs import DatasetSpec, save_spec
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.bootstrap import open_studio
from ziggurat.workspace.studio.studio import Studio

NOBODY: Any = SimpleNamespace(people=None, notices=None)
load_all_checks()
SCHEMA = schemathesis.openapi.from_dict(openapi_of(create_app(NOBODY)))
ENDLESS = "/api/v1/events"  # has tests of its own
MEANT = (501, 503, 507)
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
IDS = {"job_id", "other_id"}
MANY, FEW = 5, 2
STARTS_PROCESSES = ("/describe", "/debug", "/predict", "/activations", "/evaluate", "/export", "/tensorboard")
OPERATIONS = [each.ok() for each in SCHEMA.get_all_operations() if each.ok().path != ENDLESS]
REQUEST = ("method", "url", "headers", "files", "data", "params", "auth", "cookies", "hooks", "json")


class Place:
    """A workspace that is as it was at first, for each operation anew; it has a dataset and a training, both done."""

    def __init__(self, folder):
        self.workspace = folder / "workspace"
        self.first = folder / "first"
        with open_studio(Settings(workspace=self.workspace)) as studio:
            studio.people.create_user("ann", None, role="admin", by=LOCAL)
            secret = studio.people.create_token("ann", "of a test", scope="admin", by=LOCAL)[1]
            self.headers = {"Authorization": f"Bearer {secret}"}
            self.ids = [self._dataset(studio, folder / "pets"), self._training(studio)]
        shutil.copytree(self.workspace, self.first)

    def restore(self, name):
        """Open it again; the jobs of both names lie in the first workspace."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        shutil.copytree(self.first, self.workspace)
        workspace = self.workspace.with_name(name)
        if workspace != self.workspace:
            shutil.copytree(self.first, workspace)
        return open_studio(Settings(workspace=workspace), start=False)

    def _dataset(self, studio: Studio, source):
        for number in range(6):
            path = source / ("cat", "dog")[number % 2] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(cv2.imencode(".png", np.full((8, 8, 3), 25 * number, np.uint8))[1].tobytes())
        folder = studio.root / "datasets" / "20260101-000000-0001"
        spec = DatasetSpec(source=str(source), name="pets")
        create_dataset(
            CreationRequest(source=str(source), name="pets", rule=SplitRule(val_share=0.4), workers=0), folder
        )
        save_spec(spec, folder / "spec.json")
        values = spec.model_dump(mode="json")
        new = NewJob(id=folder.name, kind="dataset", name="pets", folder=str(folder), spec=values, created=1.0)
        return studio.datasets.take_in(new, {}).id

    def _training(self, studio: Studio):
        spec = {"kind": "train", "version": 1, "backend": "null", "network": "mlp", "data": "digits", "epochs": 1}
        spec |= {"steps_per_epoch": 5, "batch_size": 4, "heartbeat_s": 0.2}
        (job,) = studio.training.create(JobRequest(spec=spec), owner="ann")
        wait_until(lambda: studio.jobs.get(job.id).state == "done", 60, what=lambda: f"done: {studio.jobs.get(job.id)}")
        return job.id


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("document"))


@pytest.fixture(scope="module")
def reading(place):
    """An application of which nothing is asked that changes something."""
    with place.restore("reading") as studio:
        yield create_app(studio)


@pytest.fixture
def app(request, place, operation):
    if operation.method == "get":
        yield request.getfixturevalue("reading")
        return
    with place.restore("workspace") as studio:
        yield create_app(studio)


def ask(app, request):
    async def send():
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 40000), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.request(
                request.method, request.url, content=request.body, headers=dict(request.headers), timeout=60
            )

    return asyncio.run(send())


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_an_operation_answers_as_the_document_says(operation, app, place):
    @hypothesis.settings(
        max_examples=FEW if operation.path.endswith(STARTS_PROCESSES) else MANY,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(operation.as_strategy())
    def check(case):
        for name in IDS & set(case.path_parameters or ()):  # else it would be the id of nothing, every time
            chosen = [case.path_parameters[name], *place.ids, place.ids[-1]]
            case.path_parameters[name] = chosen[zlib.crc32(f"{case.body!r}{case.query!r}".encode()) % 4]
        values = case.as_transport_kwargs(base_url="http://127.0.0.1:5000", headers=place.headers)
        values = {name: value for name, value in values.items() if name in REQUEST}
        answer = ask(app, requests.Request(**values).prepare())
        assert answer.status_code < 500 or answer.status_code in MEANT, answer.text
        if answer.status_code >= 400:
            assert set(answer.json()) >= {"error", "message", "rule"} or set(answer.json()) == {"errors"}, answer.text
        case.validate_response(answer, checks=CHECKS)

    check()
