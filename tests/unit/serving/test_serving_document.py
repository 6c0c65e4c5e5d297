"""What the OpenAPI document of a server says holds for requests that are made from it; the seed is fixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
import requests

pytest.importorskip("schemathesis", reason="the extra `dev` is not installed")

import schemathesis
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from starlette.testclient import TestClient

from tests.unit.serving.conftest import Serve

load_all_checks()
EXAMPLES = 25


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda each: each.value)
@pytest.mark.parametrize("name", ["rows", "animals"])
def test_every_path_answers_as_the_document_says(
    exports: Path, serve: Serve, name: str, mode: schemathesis.GenerationMode
) -> None:
    client = serve(exports / name)
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    for each in schema.get_all_operations():
        operation: Any = each.ok()
        if mode is schemathesis.GenerationMode.POSITIVE or operation.method == "post":  # only a body can be malformed
            hold_to_document(client, operation, mode)


def hold_to_document(client: TestClient, operation: Any, mode: schemathesis.GenerationMode) -> None:
    """Ask what the document allows of an operation, or what it does not, and compare the answers with it."""

    @hypothesis.settings(
        max_examples=EXAMPLES if operation.method == "post" else 1,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        values = case.as_transport_kwargs(base_url="http://testserver")
        known = ("method", "url", "headers", "files", "data", "params", "json")
        request = requests.Request(**{key: value for key, value in values.items() if key in known}).prepare()
        answer = client.request(
            str(request.method), str(request.url), content=request.body or b"", headers=dict(request.headers)
        )
        assert answer.status_code < 500, answer.text
        assert str(answer.status_code) in operation.definition.raw["responses"], answer.text
        if answer.status_code >= 400:
            assert isinstance(answer.json()["error"], str)
        case.validate_response(answer, checks=[content_type_conformance, response_schema_conformance])

    check()
