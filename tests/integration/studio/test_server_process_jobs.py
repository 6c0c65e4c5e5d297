"""``ziggurat job`` asks the studio that serves the workspace, by the same names as its REST API."""

import json
import signal

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

import numpy as np
from PIL import Image
from studio_process import StudioProcess, tiny_training

from tests.waiting import PROCESS_S, wait_until
from ziggurat.cli.application import Application
from ziggurat.cli.main import main
from ziggurat.client import Client


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """A studio with a training that is done."""
    workspace = tmp_path_factory.mktemp("studio") / "workspace"
    process = StudioProcess(workspace)
    process.workspace = workspace
    with Client(process.address) as client:
        (job,) = client.train(tiny_training(2), tags=["first"])
        process.done = client.wait(job["id"], timeout_s=60, every_s=0.1)
    yield process
    process.end(signal.SIGTERM)


@pytest.fixture
def ziggurat(capfd, studio):
    """Call ``ziggurat`` in this process; return exit code, standard output and standard error."""

    def call(*words):
        capfd.readouterr()
        code = main(["--workspace", str(studio.workspace), *(str(word) for word in words)], Application())
        return (code, *capfd.readouterr())

    return call


@pytest.mark.nightly
def test_jobs_are_listed_and_filtered(ziggurat, studio):
    _, out, _ = ziggurat("job", "list", "--tag", "first", "--state", "done", "--kind", "train", "--json")
    assert [each["id"] for each in json.loads(out)] == [studio.done["id"]]
    _, out, _ = ziggurat("job", "list", "--where", "epochs = 2")
    assert out.splitlines()[0].split() == ["id", "name", "kind", "state", "progress", "result", "reason"]
    assert out.splitlines()[1].split()[:7] == [studio.done["id"], "tiny", "train", "done", "step", "40", "of"]
    assert ziggurat("job", "list", "--text", "no such words")[1] == "(none)\n"
    code, out, err = ziggurat("job", "list", "--where", "lr > 0.01")
    assert (code != 0, out) == (True, "")
    assert "Unknown name `lr`. Did you mean `learning_rate`?" in err
    code, _, err = ziggurat("job", "list", "--where", "epochs = 2 and")
    assert code != 0
    assert "A condition is missing after `and`." in err


@pytest.mark.nightly
def test_what_the_shell_makes_is_listed_while_the_studio_runs(ziggurat, studio, tmp_path):
    for number in range(6):
        folder = tmp_path / "shapes" / ("round", "square")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 40 * number, np.uint8)).save(folder / f"{number}.png")
    code, out, _ = ziggurat("dataset", "create", tmp_path / "shapes", "--json")
    assert code == 0
    made = json.loads(out)["folder"].rpartition("/")[2]
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**tiny_training(2), "name": ""}))
    trained = json.loads(ziggurat("train", spec, "--json")[1])["folder"].rpartition("/")[2]
    with Client(studio.address) as client:
        wait_until(lambda: {made, trained} <= {job["id"] for job in client.jobs()}, PROCESS_S)
        assert (client.job(made)["kind"], client.job(made)["state"]) == ("dataset", "done")
        wait_until(lambda: client.job(trained)["state"] == "done", PROCESS_S)
        assert client.job(trained)["name"].endswith(" on digits")


def test_a_job_is_shown(ziggurat, studio):
    _, out, _ = ziggurat("job", "show", studio.done["id"])
    assert out.splitlines()[:3] == [
        f"job        {studio.done['id']} tiny",
        f"state      done: {studio.done['reason']}",
        "progress   step 40 of 40",
    ]
    assert json.loads(ziggurat("job", "show", studio.done["id"], "--json")[1])["tags"] == ["first"]


def test_a_job_is_stopped_resumed_and_deleted(ziggurat, studio):
    with Client(studio.address) as client:
        (job,) = client.train(tiny_training(100_000))
        wait_until(lambda: client.job(job["id"])["global_step"] > 10, PROCESS_S)
        assert ziggurat("job", "pause", job["id"])[:2] == (0, f"{job['id']} is stopping now.\n")
        wait_until(lambda: client.job(job["id"])["state"] == "stopped", PROCESS_S)
        assert ziggurat("job", "wait", job["id"])[0] == 10
        assert json.loads(ziggurat("job", "resume", job["id"], "--json")[1])["state"] == "queued"
        wait_until(lambda: client.job(job["id"])["state"] == "running", PROCESS_S)
        code, out, _ = ziggurat("job", "delete", job["id"])
        assert code == 10
        assert out.startswith(f"{job['id']}: ")
        assert ziggurat("job", "delete", "--force", job["id"])[:2] == (0, f"{job['id']} is deleted now.\n")
    code, out, _ = ziggurat("job", "show", job["id"], "--json")
    assert (code, json.loads(out)["error"]) == (10, "job")


def test_a_rate_is_set_and_follows_its_schedule_again(ziggurat, studio):
    with Client(studio.address) as client:
        (job,) = client.train(tiny_training(100_000) | {"learning_rate": 0.03125})
        place = job["id"]

        def is_used(rate):
            curve = client.job(place)["scalars"].get("learning_rate")
            return curve is not None and curve["last"] == rate

        wait_until(lambda: is_used(0.03125), PROCESS_S)
        told = f"The learning rate of {place} is 0.0625, within a tenth of an epoch.\n"
        assert ziggurat("job", "rate", place, "0.0625")[:2] == (0, told)
        wait_until(lambda: is_used(0.0625), PROCESS_S)
        told = f"The learning rate of {place} follows its schedule again, within a tenth of an epoch.\n"
        assert ziggurat("job", "rate", place, "--schedule")[:2] == (0, told)
        wait_until(lambda: is_used(0.03125), PROCESS_S)
        code, out, _ = ziggurat("job", "rate", place, "--schedule", "--json")
        assert (code, json.loads(out)["rule"]) == (
            10,
            f"`learning_rate` of {place} was not set by hand, so it does not go back to its schedule.",
        )
        code, _, err = ziggurat("job", "rate", place, "0.5")
        assert code == 3
        assert "The learning rate 0.5 is more than 10 times the present one, 0.03125" in err
        assert "`--yes`" in err
        assert ziggurat("job", "rate", place, "0.5", "--yes")[0] == 0
        assert client.set_hyperparameter(place, "learning_rate", 50, force=True)["id"] == place
        assert client.unset_hyperparameter(place, "learning_rate")["id"] == place
        client.delete(place, force=True)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "The new learning rate is missing."),
        (("0.1", "--schedule"), "A rate and `--schedule` exclude each other."),
        (("nan",), "nan is no learning rate: it must be a number above 0."),
        (("fast",), "'fast' is not a valid float"),
    ],
)
def test_a_rate_is_a_number_or_the_schedule(ziggurat, studio, words, text):
    code, _, said = ziggurat("job", "rate", studio.done["id"], *words)
    assert code == 2
    assert text in said


def test_one_job_that_cannot_does_not_keep_the_others(ziggurat, studio):
    with Client(studio.address) as client:
        (job,) = client.train(tiny_training(100_000))
    code, out, _ = ziggurat("job", "stop", studio.done["id"], job["id"], "--json")
    first, second = (json.loads(line) for line in out.splitlines())
    assert code == 10
    assert (first["id"], first["error"]) == (studio.done["id"], "job")
    assert second["state"] in ("stopping", "stopped")
    assert json.loads(ziggurat("job", "queue", "--json")[1]) == []
    with Client(studio.address) as client:
        wait_until(lambda: client.job(job["id"])["state"] == "stopped", PROCESS_S)


def test_curves_log_and_waiting(ziggurat, studio):
    job_id = studio.done["id"]
    curves = json.loads(ziggurat("job", "curve", job_id, "learning_rate", "--json")[1])
    assert curves["learning_rate"]["steps"][-1] == 40
    assert ziggurat("job", "curve", job_id, "learning_rate")[1].split()[:3] == ["curve", "step", "value"]
    assert json.loads(ziggurat("job", "log", job_id, "--json")[1])["text"] == ziggurat("job", "log", job_id)[1]
    assert ziggurat("job", "wait", job_id)[1] == f"{job_id} is done.\n"


def test_a_picture_is_sent_to_a_model(ziggurat, studio, tmp_path):
    picture = tmp_path / "digit.png"
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(picture)
    code, out, err = ziggurat("job", "predict", studio.done["id"], picture, "--top", "2", "--json")
    assert code == 0, err
    (prediction,) = json.loads(out)["predictions"]
    assert len(prediction["classes"]) == 2
    (tmp_path / "bad.png").write_text("no image")
    code, out, _ = ziggurat("job", "predict", studio.done["id"], tmp_path / "bad.png", picture)
    assert code == 4
    assert "Not read: " in out
    assert ziggurat("job", "predict", studio.done["id"], tmp_path / "none.png")[0] == 2


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("job", "lst"), 2, "Did you mean `ziggurat job list`?"),
        (("job", "list", "--state", "runing"), 3, "Did you mean `running`?"),
        (("job", "list", "--kind", "trains"), 3, "Did you mean `train`?"),
        (("job", "show", "../x"), 10, "'../x' is not the id or name of a job."),
        (("job", "show", "none"), 10, "none"),
        (("job", "list", "--server", "http://127.0.0.1:9"), 2, "The studio at http://127.0.0.1:9 does not answer: "),
        (("job", "list", "--token", "a", "--token-file", "b"), 2, "exclude each other"),
        (("job", "list", "--token-file", "no/such/file"), 2, "The file of a token,"),
        (("--workspace", "/nonexistent", "job", "list"), 10, "Start one with `ziggurat up`"),
    ],
)
def test_mistyped_words(ziggurat, words, code, text):
    found, _, err = ziggurat(*words)
    assert found == code, err
    assert text in err


def test_a_token_can_come_from_a_file(ziggurat, tmp_path):
    file = tmp_path / "token"
    file.write_text("zig_not-a-token\n")
    code, _, err = ziggurat("job", "list", "--token-file", file)
    assert code != 0
    assert "The token is unknown, revoked or expired." in err
