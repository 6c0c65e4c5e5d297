"""The doctor looks at the studio without changing anything, and says how to mend what is broken."""

import dataclasses
import os
import socket
import sqlite3
import threading

import pytest

from tests.slurm_stand_ins import Slurm
from ziggurat import __version__
from ziggurat.cluster.slurm.commands import SlurmCommands
from ziggurat.entities import Device, NodeResources
from ziggurat.workspace.doctor import cluster_finding, examine_studio, slurm_finding
from ziggurat.workspace.server_process import make_server_state, write_server

NOBODY = "http://127.0.0.1:9/"


def findings(folder):
    return {finding.name: finding for finding in examine_studio(folder)}


@pytest.fixture
def answering():
    """An address at which somebody answers like a server."""

    def answer():
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(60)


@pytest.fixture
def database(tmp_path):
    """A database of the studio, as far as the doctor looks at it."""
    path = tmp_path / "studio.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('0001')")
    connection.close()
    path.chmod(0o600)
    return path


def revise(path, revision):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.close()


def test_a_studio_that_was_never_started(tmp_path):
    found = findings(tmp_path / "none")
    assert {name: finding.level for name, finding in found.items() if name != "port"} == {
        "server": "ok",
        "database": "ok",
    }
    assert found["server"].text == "does not run; start it with: ziggurat up"
    assert "port" in found
    assert not (tmp_path / "none").exists()


def test_a_server_that_answers(tmp_path, answering):
    write_server(tmp_path, make_server_state(answering, __version__, now=1.0))
    server = findings(tmp_path)["server"]
    assert (server.level, server.text.split(",")[0]) == ("ok", f"runs at {answering}")


def test_a_server_of_another_version_is_to_be_started_again(tmp_path, answering):
    write_server(tmp_path, make_server_state(answering, "0.0.9", now=1.0))
    server = findings(tmp_path)["server"]
    assert server.level == "note"
    assert server.text.startswith(f"runs as version 0.0.9, and {__version__} is installed")


def test_a_server_that_does_not_answer_is_a_problem(tmp_path):
    write_server(tmp_path, make_server_state(NOBODY, __version__, now=1.0))
    server = findings(tmp_path)["server"]
    assert server.level == "problem"
    assert server.text == f"does not answer ({NOBODY}, process {os.getpid()} on {socket.gethostname()})"
    assert "ziggurat down" in server.advice


def test_a_file_that_a_killed_server_left(tmp_path):
    state = make_server_state(NOBODY, __version__, now=1.0)
    write_server(tmp_path, dataclasses.replace(state, birth=state.birth - 1))
    found = findings(tmp_path)
    assert (found["server"].level, found["server"].advice) == (
        "note",
        "Start it again with `ziggurat up`; jobs were not disturbed.",
    )
    assert "port" in found


def test_a_sound_database(tmp_path, database):
    found = findings(tmp_path)["database"]
    assert found.level == "ok"
    assert "revision 0001" in found.text


def test_a_newer_database_is_a_problem(tmp_path, database):
    pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
    revise(database, "9999")
    found = findings(tmp_path)["database"]
    assert (found.level, found.advice) == ("problem", "Install that release, or put back a backup of before.")


def test_a_damaged_database_is_a_problem(tmp_path, database):
    database.write_bytes(b"no database at all" * 100)
    found = findings(tmp_path)["database"]
    assert found.level == "problem"
    assert "cannot be read: file is not a database" in found.text
    assert "ziggurat reindex" in found.advice


def test_a_torn_database_is_a_problem(tmp_path, database):
    content = database.read_bytes()
    database.write_bytes(content[: len(content) - 4096])
    assert findings(tmp_path)["database"].level == "problem"


def test_a_database_that_everybody_can_read_is_noted(tmp_path, database):
    database.chmod(0o644)
    found = findings(tmp_path)["database"]
    assert (found.level, found.advice) == ("note", f"Call: chmod o= {database}")


def test_an_empty_file_is_a_database_that_is_made_later(tmp_path):
    (tmp_path / "studio.db").touch(mode=0o600)
    assert "revision none yet" in findings(tmp_path)["database"].text


def test_looking_changes_nothing(tmp_path, database):
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    findings(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def node(name, gpus=0, **versions):
    devices = tuple(Device(index=index, name="test", memory_bytes=1, free_bytes=1) for index in range(gpus))
    return NodeResources(name=name, devices=devices, versions={"python": "3.12.1", **versions})


def test_a_cluster_is_counted_and_its_versions_compared():
    found = cluster_finding([node("a", 2), node("b", 2), node("c")], "")
    assert (found.name, found.level, found.text) == ("Ray", "ok", "3 nodes, 4 GPUs, versions agree")
    found = cluster_finding([node("a", torch="2.9"), node("b", torch="2.8"), node("c")], "")
    assert (found.level, found.text) == (
        "note",
        "3 nodes, 0 GPUs, versions differ: torch 2.8 on b, 2.9 on a, none on c",
    )


def test_slurm_is_asked(tmp_path):
    slurm = Slurm(tmp_path)
    found = slurm_finding(SlurmCommands(slurm.environment))
    assert (found.name, found.level, found.text) == ("Slurm", "ok", "slurm 23.11.4, 0 jobs of this user")
    slurm.set("away")
    found = slurm_finding(SlurmCommands(slurm.environment))
    assert found.level == "problem"
    assert "Unable to contact slurm controller" in found.text
    found = slurm_finding(SlurmCommands({"PATH": str(tmp_path)}))
    assert (found.level, found.text) == ("problem", "no sbatch, squeue, scancel on PATH")
    assert "use-slurm" in found.advice


def test_a_cluster_without_nodes_is_a_problem():
    found = cluster_finding([], "")
    assert (found.level, found.text) == ("problem", "0 nodes, 0 GPUs; no node has CPUs to give away")
    found = cluster_finding([node("a", 1)], "node b: it does not see the studio's workspace /srv")
    assert found.text == "1 node, 1 GPU; node b: it does not see the studio's workspace /srv"
    assert "use-several-machines" in found.advice
