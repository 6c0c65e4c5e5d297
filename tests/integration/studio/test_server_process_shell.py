"""``ziggurat`` asks any studio, from a machine without a workspace; settings say where it is and how it is served."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

import httpx
from studio_process import StudioProcess, call, tiny_training

from ziggurat.client import Client

WAITING = {**tiny_training(1), "devices": ["gpu:7"], "learning_rate": 0.05}


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """A studio that lets in by token alone, with three trainings that wait for a GPU that is not there."""
    process = StudioProcess(tmp_path_factory.mktemp("studio") / "workspace", "--new-token")
    process.token = process.said["token"]
    with Client(process.address, process.token) as client:
        names = ("first", "second", "third")
        process.ids = [client.train({**WAITING, "name": name}, project=f"p-{name}")[0]["id"] for name in names]
    yield process
    process.end(signal.SIGTERM)


@pytest.fixture
def ziggurat(tmp_path, monkeypatch):
    """Call ``ziggurat`` in a workspace that is not there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ZIGGURAT_WORKSPACE", str(tmp_path / "nowhere"))

    def ask(*words):
        answer = call(None, *(str(word) for word in words))
        assert not (tmp_path / "nowhere").exists()
        return answer

    return ask


@pytest.fixture
def known(studio, monkeypatch):
    """The studio stands in the environment."""
    monkeypatch.setenv("ZIGGURAT_SERVER", studio.address)
    monkeypatch.setenv("ZIGGURAT_TOKEN", studio.token)


def listed(answer):
    assert answer.returncode == 0, answer.stderr
    return [each["name"] for each in json.loads(answer.stdout)]


def test_flags_before_the_verb_name_the_studio(ziggurat, studio):
    answer = ziggurat("--server", studio.address, "--token", studio.token, "job", "list", "--json")
    assert listed(answer) == ["third", "second", "first"]
    without = ziggurat("--server", studio.address, "job", "list")
    assert without.returncode != 0
    assert "Log in first" in without.stderr


def test_flags_of_the_verb_count_more(ziggurat, studio, known):
    answer = ziggurat("--server", "http://127.0.0.1:9", "job", "list", "--server", studio.address, "--json")
    assert answer.returncode != 0  # the token is for the studio that the settings name
    assert studio.token not in answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--state", "queued", "--kind", "train"), ["third", "second", "first"]),
        (("--state", "done", "--state", "failed"), []),
        (("--kind", "dataset"), []),
        (("--project", "p-second"), ["second"]),
        (("--project", ""), []),
        (("--text", "thir"), ["third"]),
        (("--where", "learning_rate > 0.01", "--sort", "name"), ["first", "second", "third"]),
        (("--where", "learning_rate > 0.1"), []),
        (("--sort", "-name", "--limit", "1"), ["third"]),
    ],
)
def test_a_list_is_filtered_and_sorted(ziggurat, known, words, names):
    assert listed(ziggurat("job", "list", "--json", *words)) == names


def test_a_job_is_moved_in_the_queue(ziggurat, studio, known):
    first, second, third = studio.ids
    assert listed(ziggurat("job", "move", third, "--before", second, "--json")) == ["first", "third", "second"]
    assert listed(ziggurat("job", "move", first, "--last", "--json")) == ["third", "second", "first"]
    text = ziggurat("job", "move", first).stdout
    assert text.splitlines()[0].split() == ["id", "name", "waits", "because"]
    assert [line.split()[1] for line in text.splitlines()[1:]] == ["first", "third", "second"]
    listed(ziggurat("job", "move", third, "--last", "--json"))
    both = ziggurat("job", "move", first, "--last", "--before", second)
    assert (both.returncode, "exclude each other" in both.stderr) == (2, True)


@pytest.mark.parametrize("words", [("show",), ("stop",), ("log",), ("move",), ("checkpoints",)])
def test_a_mistyped_id_names_the_nearest(ziggurat, studio, known, words):
    wrong = studio.ids[1][:-1] + ("0" if studio.ids[1][-1] != "0" else "1")
    answer = ziggurat("job", *words, wrong)
    assert answer.returncode == 10
    assert "Did you mean" in answer.stderr + answer.stdout
    assert studio.ids[1] in answer.stderr + answer.stdout


def test_the_shell_completes_jobs(studio, known, tmp_path, monkeypatch):
    monkeypatch.setenv("ZIGGURAT_WORKSPACE", str(tmp_path / "nowhere"))

    def complete(words, **variables):
        count = str(len(words.split()) - 1)
        asked = {"_ZIGGURAT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": count, **variables}
        command = [sys.executable, "-m", "ziggurat"]
        done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    assert complete("ziggurat job show sec") == ["plain,second"]
    assert complete("ziggurat job show sec", ZIGGURAT_SERVER="http://127.0.0.1:9") == []


def test_a_name_stands_in_the_place_of_an_id(ziggurat, studio, known):
    assert json.loads(ziggurat("job", "show", "second", "--json").stdout)["id"] == studio.ids[1]
    answer = ziggurat("job", "show", "secnd", "--json")
    assert answer.returncode == 10
    assert json.loads(answer.stdout)["advice"] == f"Did you mean `{studio.ids[1]}` (second)?"
    assert "Look at the list of jobs" in ziggurat("job", "show", "zzz").stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("job", "mov"), "Did you mean `ziggurat job move`"),
        (("job", "downlod"), "Did you mean `ziggurat job download`?"),
        (("--servr", "x", "job", "list"), "Did you mean `--server`"),
        (("job", "move", "a", "--befor", "b"), "Did you mean `--before`?"),
    ],
)
def test_mistyped_words(ziggurat, words, text):
    answer = ziggurat(*words)
    assert answer.returncode == 2
    assert text in answer.stderr


def test_the_studio_recommends_a_recipe(ziggurat, studio, known):
    own = (
        "--framework",
        "null",
        "--network",
        "mlp",
        "--devices",
        "gpu:7",
        "--epochs",
        "3",
        "--set",
        "schedule.policy=fixed",
    )
    made = ziggurat("job", "train", "--data", "digits", "--recipe", *own, "--json")
    assert made.returncode == 0, made.stderr
    spec = json.loads(made.stdout)["spec"]
    assert (spec["batch_size"], spec["early_stopping"]["tag"]) == (32, "validation_accuracy")
    assert (spec["epochs"], spec["network"]["name"], spec["schedule"]["policy"]) == (3, "mlp", "fixed")
    assert "Recipe: " in made.stderr
    assert ziggurat("job", "delete", json.loads(made.stdout)["id"]).returncode == 0

    elsewhere = ziggurat("job", "train", "--data", "/data/pets", "--recipe")
    assert (elsewhere.returncode, "--dataset ID" in elsewhere.stderr) == (2, True)
    assert ziggurat("job", "train", "--recipe").returncode == 2
    assert ziggurat("job", "train", "--dataset", "nothing", "--recipe").returncode == 10
    mistyped = ziggurat("job", "train", "--data", "digits", "--recipe", "--network", "lenett")
    assert "lenet" in mistyped.stderr


def test_the_studio_runs_a_test_batch(ziggurat, known):
    before = listed(ziggurat("job", "list", "--json"))
    own = ("--framework", "null", "--network", "mlp", "--batch-size", "16")
    shown = ziggurat("job", "train", "--data", "digits", *own, "--test-batch")
    assert shown.returncode == 0, shown.stderr
    for title in ("time", "memory", "suggested rate", "largest finite rate"):
        assert f"\n{title}" in f"\n{shown.stdout}"
    assert listed(ziggurat("job", "list", "--json")) == before, "no job is made"
    refused = ziggurat("job", "train", "--data", "digits", "--framework", "null", "--network", "mpl", "--test-batch")
    assert "mlp" in refused.stderr


def test_a_download_says_its_kind_in_its_name(ziggurat, studio, known, tmp_path):
    answer = ziggurat("job", "download", studio.ids[0], tmp_path / "job.rar")
    assert (answer.returncode, "has no ending of an archive." in answer.stderr) == (2, True)
    assert ziggurat("job", "download", studio.ids[0], tmp_path / "job.zip").returncode == 0
    assert (tmp_path / "job.zip").read_bytes().startswith(b"PK")


def test_a_workspace_on_the_command_line_beats_the_settings(known, tmp_path):
    answer = call(tmp_path / "mine", "job", "list")
    assert (answer.returncode, f"No studio serves {tmp_path / 'mine'}" in answer.stderr) == (10, True)


@pytest.mark.nightly
def test_a_database_of_the_settings_is_in_no_process_list(tmp_path, monkeypatch):
    place = tmp_path / "elsewhere" / "mine.db"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ZIGGURAT_DATABASE", f"sqlite:///{place}")
    monkeypatch.setenv("ZIGGURAT_PORT", "0")
    monkeypatch.setenv("ZIGGURAT_TOKEN", "zig_of_another_studio")
    workspace = tmp_path / "workspace"
    said = call(workspace, "up", "--detach", "--no-open", "--json")
    assert said.returncode == 0, said.stderr
    try:
        pid = json.loads(said.stdout)["pid"]
        assert json.loads(said.stdout)["address"] != "http://127.0.0.1:5000/"
        assert str(place) not in Path(f"/proc/{pid}/cmdline").read_text()
        shown = httpx.get(f"{json.loads(said.stdout)['address']}api/v1/settings").json()
        assert {each["name"]: each["value"] for each in shown}["token"] == "***"
        assert call(workspace, "user", "add", "anna", "--role", "admin", "--no-password").returncode == 0
    finally:
        assert call(workspace, "down").returncode == 0
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT name FROM users").fetchall() == [("anna",)]
    assert not (workspace / "studio.db").exists()
    found = json.loads(call(workspace, "doctor", "--json").stdout)
    (database,) = [each for each in found if (each["section"], each["name"]) == ("studio", "database")]
    assert str(place) in database["text"]


@pytest.mark.nightly
def test_workers_do_not_get_the_token(tmp_path, monkeypatch):
    monkeypatch.setenv("ZIGGURAT_TOKEN", "zig_of_the_one_who_starts_it")
    monkeypatch.setenv("HOME", str(tmp_path))
    studio = StudioProcess(tmp_path / "workspace")
    try:
        with Client(studio.address, "") as client:
            (job,) = client.train(tiny_training(100_000))
            pid = None
            while pid is None:
                pid = client.job(job["id"])["pid"]
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            client.stop(job["id"])
            while client.job(job["id"])["state"] not in ("stopped", "failed", "done"):
                os.sched_yield()
    finally:
        studio.end(signal.SIGTERM)
    assert b"ZIGGURAT_WORKSPACE" in environment
    assert b"ZIGGURAT_TOKEN" not in environment
