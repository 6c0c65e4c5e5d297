"""Graphs of networks that are not trained are kept for a while, bounded in number and size, and cleared away."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ziggurat.errors import MissingEntryError, NetworkCodeError
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio
from ziggurat.workspace.studio.network_graphs import GRAPHS_FOLDER, GraphCache, NetworkGraphs

GONE = "is not there any more: it is kept for a while only"


class Hour:
    """A clock that a test sets forward."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hour() -> Hour:
    return Hour()


@pytest.fixture
def removed() -> list[str]:
    return []


@pytest.fixture
def make(tmp_path: Path, hour: Hour, removed: list[str]) -> Callable[..., GraphCache]:
    return lambda **limits: GraphCache(tmp_path / "graphs", hour, before_remove=removed.append, **limits)


def added(graphs: GraphCache, hour: Hour, size_bytes: int = 10) -> str:
    """Keep one graph of so many bytes, a second later than the last."""
    hour.now += 1
    name = graphs.begin()
    run = graphs.events(name) / "lenet"
    run.mkdir(parents=True)
    (run / "events.out.tfevents.1").write_bytes(b"x" * size_bytes)
    assert graphs.keep(name)
    return name


def there(graphs: GraphCache, names: list[str]) -> list[str]:
    return [name for name in names if graphs.events(name).is_dir()]


def test_one_is_found_by_its_name_alone(make, hour):
    graphs = make()
    name = added(graphs, hour)
    assert len(name) == 32
    assert (graphs.folder(name) / "tb" / "lenet" / "events.out.tfevents.1").read_bytes() == b"x" * 10
    for other in ("", "..", "../graphs", name[:-1], f"{name}/tb", name.upper() + "x", "f" * 32, "\0", "é" * 32):
        with pytest.raises(MissingEntryError) as caught:
            graphs.folder(other)
        assert GONE in caught.value.rule
        assert caught.value.advice == "Press Visualize on the page for a new model again."


def test_for_one_too_many_the_longest_unseen_goes(make, hour, removed):
    graphs = make(most=3)
    names = [added(graphs, hour) for _ in range(3)]
    hour.now += 1
    graphs.folder(names[0])
    names.append(added(graphs, hour))
    assert there(graphs, names) == [names[0], names[2], names[3]]
    assert removed == [names[1]]


def test_those_too_large_together_go_and_the_new_one_stays(make, hour):
    graphs = make(most_bytes=100)
    names = [added(graphs, hour, size) for size in (40, 50, 60)]
    assert there(graphs, names) == names[2:]
    names.append(added(graphs, hour, 100))
    assert there(graphs, names) == names[3:]


def test_one_being_written_is_not_shown_and_makes_no_room(make, hour):
    graphs = make(most=1)
    begun = graphs.begin()
    names = [added(graphs, hour) for _ in range(2)]
    assert there(graphs, names) == names[1:]
    with pytest.raises(MissingEntryError):
        graphs.folder(begun)
    (graphs.events(begun)).mkdir()
    (graphs.events(begun) / "events").write_bytes(b"1")
    assert graphs.keep(begun)
    assert there(graphs, [*names, begun]) == [begun]


def test_nothing_links_and_too_much_are_not_kept(make, tmp_path):
    graphs = make(most_bytes=100)
    (tmp_path / "secret").write_text("of somebody else")
    for write in (
        lambda folder: None,
        lambda folder: (folder / "events").write_bytes(b"x" * 101),
        lambda folder: (folder / "events").symlink_to(tmp_path / "secret"),
        lambda folder: os.mkfifo(folder / "events"),
    ):
        name = graphs.begin()
        graphs.events(name).mkdir()
        write(graphs.events(name))
        assert not graphs.keep(name)
        assert list((tmp_path / "graphs").iterdir()) == []
    assert (tmp_path / "secret").read_text() == "of somebody else"


def test_old_ones_are_cleared_away_unless_somebody_looks_at_them(make, hour, removed, tmp_path):
    graphs = make(kept_s=100.0)
    names = [added(graphs, hour) for _ in range(3)]
    (tmp_path / "graphs" / "notes.txt").write_text("of a person")
    assert graphs.remove_old() == 0
    hour.now += 99
    graphs.folder(names[1])
    hour.now += 3
    assert graphs.remove_old() == 2
    assert there(graphs, names) == [names[1]]
    assert removed == [names[0], names[2]]
    assert (tmp_path / "graphs" / "notes.txt").is_file()


def test_a_server_that_starts_has_none(tmp_path):
    place = tmp_path / "workspace" / GRAPHS_FOLDER / ("a" * 32) / "tb"
    place.mkdir(parents=True)
    with open_studio(Settings(workspace=tmp_path / "workspace")):
        assert not place.exists()


# ---- while a network is described


def written(problem: str = "", content: bytes = b"graph") -> Callable[..., dict[str, Any]]:
    """Return what describes networks, and writes so much of a graph."""

    def describe(network: str, *, tensorboard: str, **options: Any) -> dict[str, Any]:
        if content:
            Path(tensorboard).mkdir(parents=True)
            (Path(tensorboard) / "events.out.tfevents.1").write_bytes(content)
        return {"network": network, **options, "tensorboard": {"file": tensorboard, "problem": problem}}

    return describe


@pytest.mark.parametrize(
    ("network", "options", "run"),
    [
        ("lenet", {}, "lenet"),
        ("lenet", {"text": "x"}, "network"),
        ("", {"text": "x"}, "network"),
        ("../ä", {}, "network"),
    ],
)
def test_the_run_has_a_plain_network_name_where_there_is_one(make, network, options, run):
    graphs = make()
    found = NetworkGraphs(graphs, written(), None).describe(network, **options)
    name = found["tensorboard"]["graph"]
    assert found == {"network": network, **options, "tensorboard": {"graph": name, "problem": ""}}
    assert [each.name for each in graphs.events(name).iterdir()] == [run]


@pytest.mark.parametrize(
    ("describe", "problem"),
    [
        (written("It is too large."), "It is too large."),
        (written("x" * 10_000), "x" * 500),
        (written(content=b""), "The process that built the network wrote no graph that can be kept."),
    ],
)
def test_why_there_is_no_graph_is_said_and_nothing_stays(make, tmp_path, describe, problem):
    found = NetworkGraphs(make(), describe, None).describe("lenet")
    assert found["tensorboard"] == {"graph": "", "problem": problem}
    assert list((tmp_path / "graphs").iterdir()) == []


def test_of_a_network_that_cannot_be_built_nothing_stays(make, tmp_path):
    def fail(*_words: str, **_options: Any) -> dict[str, Any]:
        raise NetworkCodeError("The network must be built.")

    with pytest.raises(NetworkCodeError, match=r"^The network must be built\.$"):
        NetworkGraphs(make(), fail, None).describe("lenet")
    assert list((tmp_path / "graphs").iterdir()) == []


def test_an_unmakeable_folder_hides_nothing_of_the_network(make, tmp_path):
    (tmp_path / "graphs").write_text("a file")
    found = NetworkGraphs(make(), lambda network, **_options: {"network": network}, None).describe("lenet")
    assert found["network"] == "lenet"
    assert found["tensorboard"]["graph"] == ""
    assert f"{tmp_path / 'graphs'}" in found["tensorboard"]["problem"]
