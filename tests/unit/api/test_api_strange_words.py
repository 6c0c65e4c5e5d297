"""Names, ids and texts that nobody chooses in good faith: refused in the one shape, or kept and given back as data."""

import asyncio
import shutil

import httpx
import pytest

from ziggurat.api.app import create_app
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio

SPEC = {"kind": "train", "version": 1, "network": "mlp", "data": "digits", "backend": "null", "epochs": 1}
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u2066 'x' \"y\" {{7*7}} ]]>"
ODD_IDS = [
    "..",
    "%2e%2e",
    "..%2f..%2fx",
    "a%2fb",
    "con",
    "nul",
    "%00",
    "%E2%80%AE",
    "%20",
    "a" * 5000,
    "-1",
    "%ff",
    "*",
]


@pytest.fixture(scope="module")
def first_workspace(tmp_path_factory):
    place = tmp_path_factory.mktemp("empty") / "workspace"
    open_studio(Settings(workspace=place), start=False).close()
    return place


@pytest.fixture
def ask(tmp_path, first_workspace):
    shutil.copytree(first_workspace, tmp_path / "workspace")
    with open_studio(Settings(workspace=tmp_path / "workspace"), start=False) as studio:
        app = create_app(studio)

        async def request(method, path, options):
            transport = httpx.ASGITransport(app, client=("127.0.0.1", 40000))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
                return await client.request(method, path, **options)

        yield lambda method, path, **options: asyncio.run(request(method, path, options))


@pytest.fixture
def job(ask):
    answer = ask("POST", "/api/v1/trainings", json={"spec": SPEC})
    assert answer.status_code == 201, answer.text
    return answer.json()["jobs"][0]


def refused(answer, *statuses):
    assert answer.status_code in statuses, (answer.status_code, answer.text[:500])
    assert {"error", "message", "rule"} <= set(answer.json())
    assert len(answer.content) < 20_000
    return answer.json()


def test_notes_with_scripts_come_back_as_data(ask, job):
    place = f"/api/v1/jobs/{job['id']}"
    changed = ask("PATCH", place, json={"notes": SCRIPT, "name": SCRIPT, "tags": [SCRIPT], "project": SCRIPT})
    assert changed.status_code == 200
    answer = ask("GET", place)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    found = answer.json()
    assert (found["notes"], found["name"], found["tags"], found["project"]) == (SCRIPT, SCRIPT, [SCRIPT], SCRIPT)
    assert [each["id"] for each in ask("GET", "/api/v1/jobs", params={"text": SCRIPT}).json()["jobs"]] == [job["id"]]
    named = ask("GET", f"{place}/download").headers["content-disposition"]
    assert named.isascii()
    assert "<" not in named
    assert "\n" not in named


def test_ids_that_are_none(ask):
    for odd_id in ODD_IDS:
        for rest in ("", "/log", "/checkpoints", "/download", "/tensorboard", "/curves"):
            error = refused(ask("GET", f"/api/v1/jobs/{odd_id}{rest}"), 404)
            assert error["error"] in ("job", "not_found")


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "\udfff\ud800"])
@pytest.mark.parametrize("field", ["name", "notes", "project", "tags"])
def test_text_that_is_none(ask, job, field, text):
    body = f'{{"{field}": {_json(text) if field != "tags" else "[" + _json(text) + "]"}}}'
    answer = ask(
        "PATCH", f"/api/v1/jobs/{job['id']}", content=body.encode(), headers={"Content-Type": "application/json"}
    )
    if "\0" in text:
        assert answer.status_code in (200, 400, 422), answer.text
    else:
        refused(answer, 422)
    after = ask("GET", f"/api/v1/jobs/{job['id']}")
    assert after.status_code == 200
    assert "\0" not in str(after.json())


@pytest.mark.parametrize("field", ["name", "project"])
def test_names_without_end(ask, job, field):
    refused(ask("PATCH", f"/api/v1/jobs/{job['id']}", json={field: "x" * 1_000_000}), 422)
    assert ask("GET", f"/api/v1/jobs/{job['id']}").json()[field] == job[field]


@pytest.mark.parametrize(
    "name", ["../../x.png", "/etc/x.png", "a/../../x.png", "con", "x\0.png", "..", ".", "", "\u202egnp.x"]
)
def test_names_of_files_that_are_sent(ask, tmp_path, name):
    before = {path for path in tmp_path.rglob("*") if "uploads" not in path.parts}
    answer = ask("POST", "/api/v1/uploads", params={"name": name}, files={"files": (name or "x", b"content")})
    assert answer.status_code < 500
    if answer.status_code >= 400:
        refused(answer, 400, 404, 422)
    after = {path for path in tmp_path.rglob("*") if "uploads" not in path.parts}
    assert {path.name for path in after - before} <= {"studio.db-wal", "studio.db-shm"}
    for path in (tmp_path / "workspace" / "uploads").rglob("*"):
        assert path.resolve().is_relative_to(tmp_path / "workspace" / "uploads")


@pytest.mark.parametrize("body", [b"[" * 5_000_000 + b"]" * 5_000_000, b'{"spec":' * 100_000, b'{"a":[' * 1_000_000])
def test_ten_megabytes_of_brackets(ask, body):
    answer = ask("POST", "/api/v1/trainings", content=body, headers={"Content-Type": "application/json"})
    error = refused(answer, 422)
    assert error["error"] == "validation"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400])
def test_numbers_that_are_none(ask, number):
    body = '{"spec": {"kind": "train", "version": 1, "network": "mlp", "epochs": ' + number + "}}"
    answer = ask("POST", "/api/v1/trainings", content=body.encode(), headers={"Content-Type": "application/json"})
    refused(answer, 422)
    assert ask("GET", "/api/v1/jobs").json()["total"] == 0


def _json(text):
    """Return a text as JSON writes it, also one that is no Unicode."""
    return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'
