"""The page of the machines: nodes with their places and jobs, and why each job of the queue waits."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import pytest

from ziggurat.entities import Device, Job, NodeResources, ResourceRequest, Share
from ziggurat.store import Store
from ziggurat.web.pages.machines.view import differing_versions, node_views

SIZE = 16_000_000_000


def _text(answer: Any) -> str:
    without = re.sub(r"<[^>]*>", " ", answer.text)
    return re.sub(r"[\s\u202f]+", " ", html.unescape(without))


def job(name: str, *shares: Share, slot: str = "cpu") -> Job:
    needs = ResourceRequest(slot=slot)
    return Job(id=name, kind="train", name=name, state="running", folder="", spec={}, needs=needs, placement=shares)


def test_the_studios_machine_is_there_alone(visit: Any, studio: Any, train: Any) -> None:
    train(spec={"name": "lenet"})
    page = visit.get("/machines")
    assert page.status_code == 200
    text = _text(page)
    assert "Machines This machine alone" in text
    assert studio.jobs.nodes()[0].name in text
    assert "Nodes 1" in text
    assert ("GPUs" in text) == bool(studio.jobs.nodes()[0].devices), "no count of what is not there"
    assert "Queue 1 Runs lenet" in text
    assert "ziggurat up --ray ADDRESS" in text
    assert f"RAY_AUTH_TOKEN_PATH={studio.root}/.ray_token" in text
    assert 'id="machines-problem"' not in page.text
    assert '<a href="/machines" aria-current="page">Machines</a>' in page.text


def test_slurm_is_shown_without_counts_of_places(visit: Any, studio: Any, monkeypatch: Any) -> None:
    slurm = NodeResources(name="slurm", executor="slurm", has_queue=True, disk_free_bytes=SIZE)
    monkeypatch.setattr(studio.jobs, "nodes", lambda: [slurm])
    text = _text(visit.get("/machines"))
    assert "Machines Slurm" in text
    assert "slurm cluster with a queue of its own Places for jobs as its queue gives them Disk 16.0 GB free" in text
    assert "No job is there." in text
    assert "GPUs" not in text.partition("Nodes 1")[2].partition("Queue")[0]
    assert "ray start" not in text


def test_a_job_that_waits_in_a_cluster_says_why(visit: Any, studio: Any, train: Any) -> None:
    job = train()
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job.id, ("queued",), "running", started=1.0, reason="waits in Slurm's queue: Priority")
    assert "Waits in Slurm's queue: Priority." in _text(visit.get(visit.get(f"/jobs/{job.id}").headers["location"]))
    assert "Waits in Slurm's queue: Priority" in _text(visit.get("/"))


def test_the_nodes_are_said_to_programs_too(visit: Any, studio: Any) -> None:
    found = visit.get("/api/v1/machine").json()
    assert [node["name"] for node in found["nodes"]] == [studio.jobs.nodes()[0].name]
    assert found["node_problem"] == ""


@pytest.fixture
def nodes() -> list[NodeResources]:
    devices = tuple(Device(index=index, name="RTX", memory_bytes=SIZE, free_bytes=SIZE) for index in range(2))
    versions = {"python": "3.12.1", "torch": "2.9"}
    return [
        NodeResources(name="studio", cpu_slots=2),
        NodeResources(name="b", devices=devices, versions=versions, datasets=frozenset({"cells"})),
    ]


def test_each_place_names_its_job(nodes: list[NodeResources]) -> None:
    running = [job("old"), job("41", Share("b", (1,)), slot="device"), job("cpu", Share("b"))]
    own, other = node_views(nodes, running)
    assert [(place.title, place.job and place.job.id) for place in own.places] == [("CPU", "old"), ("CPU", None)]
    assert [(place.title, place.job and place.job.id) for place in other.places] == [
        ("GPU 0", None),
        ("GPU 1", "41"),
        ("CPU", "cpu"),
    ]
    assert (own.kind, other.kind, own.datasets, other.datasets) == ("this machine", "Ray", "all", "1")
    assert (other.versions, other.places[0].detail) == ("python 3.12.1, torch 2.9", "RTX, 16.0 GB")


def test_a_cluster_with_a_queue_shows_its_jobs() -> None:
    slurm = NodeResources(name="slurm", executor="slurm", has_queue=True)
    gpus, cpu = job("a", Share("slurm", (0, 1)), slot="device"), job("b", Share("slurm"))
    (view,) = node_views([slurm], [gpus, cpu])
    assert [(place.title, place.job) for place in view.places] == [("2 × GPU", gpus), ("CPU", cpu)]
    assert view.facts[0] == ("Places for jobs", "as its queue gives them")
    assert view.has_queue


def test_a_job_on_two_nodes_is_on_both(nodes: list[NodeResources]) -> None:
    both = job("j", Share("studio"), Share("b", (0, 1), (1, 2)))
    own, other = node_views(nodes, [both])
    assert [place.job for place in other.places[:2]] == [both, both]
    assert own.places[0].job == both


def test_versions_that_differ_are_named(nodes: list[NodeResources]) -> None:
    assert differing_versions(nodes) == ()
    third = replace(nodes[1], name="c", versions={"python": "3.12.1", "torch": "2.8", "tensorflow": "2.21"})
    assert differing_versions([*nodes, third]) == ("tensorflow", "torch")
