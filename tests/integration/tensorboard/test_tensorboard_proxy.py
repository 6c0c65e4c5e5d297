"""The studio's address of a TensorBoard: what passes through it and what does not, with a stand-in behind it."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from tests.waiting import wait_until
from ziggurat.api.app import create_app
from ziggurat.entities import NewJob
from ziggurat.services.tensorboard import TENSORBOARD_COMMAND, TensorBoardLimits, TensorBoards
from ziggurat.settings import Settings
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.studio.bootstrap import open_studio

HERE = Path(__file__).parent
ECHO = (sys.executable, str(HERE / "echo_board.py"))
FAILS = (sys.executable, "-c", "import sys; sys.exit('no such plugin')")
PLACE = "/jobs/one/tensorboard"
PAGE = {"Accept": "text/html,*/*"}


class Site:
    """A studio with one job, ``one``, whose TensorBoard is a stand-in."""

    def __init__(self, studio, prefix="", command=ECHO, environment=None, **limits):
        folder = studio.root / "jobs" / "one"
        (folder / "tb").mkdir(parents=True)
        new = NewJob(id="one", kind="train", name="one", folder=str(folder), spec={}, created=1.0)
        studio.datasets.take_in(new, {})
        self.studio = studio
        self.events = folder / "tb"
        self.own = studio.tensorboards
        studio.tensorboards = TensorBoards(
            lambda job_id: Path(studio.jobs.get(job_id).folder),
            {**os.environ, **(environment or {})},
            prefix=prefix + "/jobs/{job_id}/tensorboard",
            command=command,
            logs=studio.root,
            limits=TensorBoardLimits(**limits),
        )
        self.app = create_app(studio, prefix=prefix)

    def ask(self, method, path, *, at=("127.0.0.1", 40000), **options):
        async def request():
            transport = httpx.ASGITransport(self.app, client=at)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
                return await client.request(method, path, **options)

        return asyncio.run(request())

    def ready(self, method, path, **options):
        """Ask until the TensorBoard has started."""
        return wait_until(lambda: (got := self.ask(method, path, **options)).status_code != 503 and got, 60)

    def token(self, role="viewer", scope="read"):
        if not self.studio.people.has_accounts():
            self.studio.people.create_user("first", None, role="admin", by=LOCAL)
        self.studio.people.create_user(role, None, role=role, by=LOCAL)
        return {"Authorization": f"Bearer {self.studio.people.create_token(role, 't', scope=scope, by=LOCAL)[1]}"}


@pytest.fixture(scope="session")
def empty_workspace(tmp_path_factory):
    place = tmp_path_factory.mktemp("empty") / "workspace"
    open_studio(Settings(workspace=place), start=False).close()
    return place


@pytest.fixture
def make_site(tmp_path, empty_workspace):
    made = []

    def make(**options):
        shutil.copytree(empty_workspace, tmp_path / "workspace")
        studio = open_studio(Settings(workspace=tmp_path / "workspace"), start=False)
        made.append(Site(studio, **options))
        return made[-1]

    yield make
    for site in made:
        site.studio.tensorboards.close()
        site.studio.close()


def test_a_request_and_answer_pass_without_the_studios_own(make_site):
    site = make_site()
    headers = {
        **site.token(),
        "Cookie": "ziggurat_session_5000=secret; other=1",
        "X-Forwarded-For": "192.0.2.1",
        "X-TensorBoard-Feature-Flags": "{}",
        "Accept": "application/json",
    }
    answer = site.ready("GET", PLACE + "/data/plugin/scalars/scalars?tag=a%2Fb&run=.", headers=headers)
    said = answer.json()
    assert (said["method"], said["path"]) == ("GET", PLACE + "/data/plugin/scalars/scalars?tag=a%2Fb&run=.")
    assert set(said["headers"]) <= {
        "host",
        "accept",
        "accept-encoding",
        "x-tensorboard-feature-flags",
    }
    assert said["headers"]["host"].startswith("127.0.0.1:")
    assert answer.status_code == 200
    for name in ("set-cookie", "location", "access-control-allow-origin", "keep-alive"):
        assert name not in answer.headers
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"


def test_what_is_sent_passes(make_site):
    site = make_site()
    body = b'{"requests": ["x"]}'
    said = site.ready("POST", PLACE + "/data/x", content=body, headers={"Content-Type": "application/json"}).json()
    assert (said["method"], said["body"].encode(), said["headers"]["content-length"]) == ("POST", body, str(len(body)))
    head = site.ask("HEAD", PLACE + "/")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 0
    assert site.ask("PUT", PLACE + "/").status_code == 405
    large = site.ask("POST", PLACE + "/data/x", content=b"x" * 10_000_001)
    assert (large.status_code, large.json()["error"]) == (413, "too_large")


def test_its_pages_reach_their_own_address_and_run_no_inline(make_site):
    site = make_site(prefix="/ziggurat")
    theirs = "script-src 'self' 'unsafe-eval' 'unsafe-inline' 'sha256-YWJj' https://evil.example.com 'sha256-x;y'"
    asked = {"type": "text/html; charset=utf-8", "policy": theirs}
    for path in (PLACE, "/ziggurat" + PLACE):  # with a proxy that takes the prefix away, and one that does not
        answer = site.ready("GET", path + "/", params=asked)
        assert answer.json()["path"].startswith("/ziggurat/jobs/one/tensorboard/?type=")
        place = "127.0.0.1:5000/ziggurat/jobs/one/tensorboard/"
        assert answer.headers["content-security-policy"] == (
            f"default-src 'self'; script-src {place} 'unsafe-eval' 'sha256-YWJj'; style-src 'self' 'unsafe-inline'; "
            f"img-src 'self' data: blob:; font-src 'self' data:; connect-src {place}; worker-src {place}; "
            f"frame-src {place}; object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'self'; "
            "sandbox allow-scripts allow-same-origin allow-downloads"
        )
        assert answer.headers["x-frame-options"] == "SAMEORIGIN"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    other = site.ask("GET", PLACE + "/", params=asked, headers={"Host": "[::1]:5000"})
    assert "connect-src 'self'; " in other.headers["content-security-policy"]


def test_a_missing_slash_is_added(make_site):
    site = make_site(prefix="/ziggurat")
    answer = site.ask("GET", PLACE + "?darkMode=true")
    assert (answer.status_code, answer.headers["location"]) == (
        308,
        "/ziggurat/jobs/one/tensorboard/?darkMode=true",
    )
    assert site.studio.tensorboards.status() == []


def test_nobody_who_may_not_look_comes_through(make_site):
    site = make_site()
    token = site.token()
    anonymous = site.ask("GET", PLACE + "/")
    assert (anonymous.status_code, anonymous.json()["error"]) == (401, "not_logged_in")
    assert site.ask("POST", PLACE + "/data/x").status_code == 401
    page = site.ask("GET", PLACE + "/", headers=PAGE)
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Fjobs%2Fone%2Ftensorboard%2F")
    assert site.ask("GET", "/api/v1/jobs/one/tensorboard").status_code == 401
    assert site.studio.tensorboards.status() == []
    assert site.ready("GET", PLACE + "/", headers=token).status_code == 200


def test_another_site_sends_nothing_to_it(make_site):
    site = make_site()
    foreign = {"Origin": "http://evil.example.com", "Sec-Fetch-Site": "cross-site"}
    assert site.ask("POST", PLACE + "/data/x", headers=foreign).status_code == 403
    assert site.ask("POST", "/api/v1/jobs/one/tensorboard", headers=foreign).status_code == 403


def test_a_job_that_is_not_there_has_none(make_site):
    site = make_site()
    for path in ("/jobs/two/tensorboard/", "/api/v1/jobs/two/tensorboard"):
        answer = site.ask("GET", path)
        assert (answer.status_code, answer.json()["rule"][:15]) == (404, "There is no job")
    assert site.ask("POST", "/api/v1/jobs/two/tensorboard").status_code == 404
    assert site.ready("GET", PLACE + "/").status_code == 200
    site.studio.jobs.delete("one")
    assert site.ask("GET", PLACE + "/").status_code == 404


def test_while_it_starts_pages_reload_and_programs_are_told(make_site):
    site = make_site()
    (site.events / "waits").touch()
    page = site.ask("GET", PLACE + "/", headers=PAGE)
    assert (page.status_code, page.headers["retry-after"]) == (503, "2")
    assert '<meta http-equiv="refresh" content="2">' in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'self'; base-uri 'none'")
    program = site.ask("GET", PLACE + "/data/runs")
    assert (program.status_code, program.headers["retry-after"]) == (503, "2")
    assert (program.json()["error"], program.json()["details"]) == ("not_ready", {"retry_after_s": 2})
    started = site.ask("POST", "/api/v1/jobs/one/tensorboard").json()
    assert started["state"] == "starting"
    (site.events / "go").touch()
    assert site.ready("GET", PLACE + "/", headers=PAGE).status_code == 200
    assert len(site.studio.tensorboards.status()) == 1


def test_the_api_says_how_it_is_and_starts_it(make_site):
    site = make_site(prefix="/ziggurat")
    before = site.ask("GET", "/api/v1/jobs/one/tensorboard").json()
    assert before == {
        "address": "/ziggurat/jobs/one/tensorboard/",
        "state": "off",
        "idle_s": None,
        "folder": str(site.events),
        "command": f"tensorboard --logdir {site.events}",
    }
    wait_until(lambda: site.ask("POST", "/api/v1/jobs/one/tensorboard").json()["state"] == "ready", 60)
    after = site.ask("GET", "/api/v1/jobs/one/tensorboard").json()
    assert after["state"] == "ready"
    assert after["idle_s"] >= 0


def test_one_that_nobody_looks_at_ends(make_site):
    site = make_site(idle_s=0.3)
    assert site.ready("GET", PLACE + "/").status_code == 200
    (status,) = site.studio.tensorboards.status()
    wait_until(lambda: site.ask("GET", "/api/v1/jobs/one/tensorboard").json()["state"] == "off", 60)
    wait_until(lambda: not psutil.pid_exists(status.pid), 60)
    assert site.ready("GET", PLACE + "/").status_code == 200  # and comes back


def test_it_ends_before_its_job_is_deleted(make_site):
    site = make_site()
    site.ready("GET", PLACE + "/")
    (status,) = site.studio.tensorboards.status()
    site.studio.jobs.delete("one")
    wait_until(lambda: not psutil.pid_exists(status.pid), 60)
    assert site.ask("GET", PLACE + "/").status_code == 404


def test_one_that_dies_comes_back(make_site):
    site = make_site()
    site.ready("GET", PLACE + "/")
    (status,) = site.studio.tensorboards.status()
    psutil.Process(status.pid).kill()
    assert site.ready("GET", PLACE + "/").status_code == 200


def test_half_an_answer_is_not_taken_for_a_whole_one(make_site):
    site = make_site()
    site.ready("GET", PLACE + "/")
    with pytest.raises(httpx.RemoteProtocolError):
        site.ask("GET", PLACE + "/?break=1")


def test_errors_of_it_pass(make_site):
    site = make_site()
    answer = site.ready("GET", PLACE + "/nothing?status=404")
    assert (answer.status_code, answer.json()["path"]) == (404, PLACE + "/nothing?status=404")


@pytest.mark.parametrize("path", ["/%252e%252e/x", "/%E2%80%AE", "//x", "/%3fa=b", "/a%09b", "/%00"])
def test_odd_paths_stay_below_its_address(make_site, path):
    answer = make_site().ready("GET", PLACE + path)
    assert answer.status_code == 200
    assert answer.json()["path"].startswith(PLACE + "/")
    assert "?" not in answer.json()["path"]


def test_paths_that_leave_its_address_are_none(make_site):
    site = make_site()
    for path in ("/a%0d%0aX-Y:%20z", "/%2e%2e/%2e%2e/x", "/data/%2e%2e", "/%2e/x"):
        answer = site.ask("GET", PLACE + path)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert site.studio.tensorboards.status() == []


def test_one_that_does_not_start_says_why(make_site):
    site = make_site(command=FAILS)
    answer = wait_until(lambda: (got := site.ask("GET", PLACE + "/")).json()["error"] != "not_ready" and got, 60)
    assert (answer.status_code, answer.json()["error"]) == (503, "job")
    assert "received: no such plugin)." in answer.json()["message"]


def test_without_the_package_it_says_what_to_install(make_site, tmp_path):
    missing = "raise ModuleNotFoundError('No module named tensorboard', name='tensorboard')"
    (tmp_path / "tensorboard.py").write_text(missing)
    site = make_site(command=TENSORBOARD_COMMAND, environment={"PYTHONPATH": str(tmp_path)})
    answer = site.ready("GET", PLACE + "/")
    assert (answer.status_code, answer.json()["error"]) == (501, "missing_dependency")
    assert answer.json()["advice"] == "Install it with: pip install 'ziggurat[studio]'."
