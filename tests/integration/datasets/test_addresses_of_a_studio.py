"""A studio fetches datasets from public addresses and from hosts that are named; a person's own shell from all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.datasets.web_folders import serving
from tests.waiting import wait_until
from ziggurat.settings import load_settings
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.bootstrap import open_studio

LIMIT_S = 60.0


@pytest.fixture
def served(pets: Path) -> Any:
    with serving(pets) as (server, address):
        yield server, f"{address}/"


def opened(tmp_path: Path, **flags: Any) -> Studio:
    studio = open_studio(load_settings(flags={"workspace": tmp_path / "workspace", **flags}))
    studio.paths.choose([str(tmp_path)])
    return studio


def made(studio: Studio, spec: dict[str, Any]) -> Any:
    """Return the job of a dataset when it has ended."""
    job = studio.datasets.create(JobRequest(spec={"name": "pets", "workers": 1, **spec}))
    return wait_until(lambda: (now := studio.jobs.get(job.id)).state in ("done", "failed") and now, LIMIT_S)


def test_a_studio_does_not_fetch_from_its_own_network(tmp_path: Path, served: Any) -> None:
    with opened(tmp_path) as studio:
        job = made(studio, {"source": served[1]})
    assert job.state == "failed"
    assert "public address, or from a host that the setting `source_hosts` names" in job.reason
    assert served[0].asked == []


def test_a_studio_fetches_from_a_host_that_is_named(tmp_path: Path, served: Any) -> None:
    with opened(tmp_path, source_hosts=f"127.0.0.1:{served[0].server_port}") as studio:
        job = made(studio, {"source": served[1]})
        assert job.state == "done", job.reason
    assert sum(path.endswith(".png") for path in served[0].asked) == 24


def test_pictures_of_a_list_are_kept_to_it_in_all_processes(tmp_path: Path, served: Any) -> None:
    listing = tmp_path / "list.txt"
    listing.write_text("".join(f"{served[1]}cat/{number}.png {number % 2}\n" for number in range(0, 8, 2)))
    spec = {"source": str(listing), "format": "text_list", "options": {"urls": True}}
    with opened(tmp_path) as studio:
        job = made(studio, spec)
    assert job.state == "failed"
    assert "below one of the folders" not in job.reason
    assert served[0].asked == []


def test_a_job_of_a_studio_reads_no_links_out(tmp_path: Path, pets: Path) -> None:
    farm = tmp_path / "offered"
    for file in sorted(pets.rglob("*.png")):
        link = farm / file.relative_to(pets)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file)
    with opened(tmp_path) as studio:
        studio.paths.choose([str(farm)])
        refused = made(studio, {"source": str(farm), "format": "class_folders"})
        studio.paths.choose([str(farm), str(pets)])
        done = made(studio, {"source": str(farm), "format": "class_folders"})
    assert refused.state == "failed"
    assert done.state == "done", done.reason


def test_a_shell_without_a_studio_fetches_from_everywhere(ziggurat: Any, tmp_path: Path, served: Any) -> None:
    shown = ziggurat.create(served[1], tmp_path / "set")
    assert shown["name"]
    assert served[0].asked[0] == "/"
