"""TensorFlow models of workspaces that earlier versions made answer as they did then, and trainings resume."""

import json
from pathlib import Path

import numpy as np
import pytest
from tensorflow_jobs import quick_job

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("argon2", reason="the extra `studio` is not installed")

from tests.old_workspaces import PICTURE, RELEASES, check_measured_again, check_resumes, unpack
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import load_train_spec
from ziggurat.worker.build import build_job
from ziggurat.worker.commands.trained import open_network, open_trained_job
from ziggurat.worker.heartbeat_thread import StepClock
from ziggurat.workspace.studio.bootstrap import open_studio
from ziggurat.zoo import ZOO

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module", params=RELEASES)
def old(request, tmp_path_factory):
    """The workspace of each release."""
    return unpack(request.param, tmp_path_factory.mktemp("old"))


def test_old_model_answers_as_it_did(old):
    model = old.job_id("tensorflow", "answer")
    with open_studio(Settings(workspace=old.folder), start=False) as studio:
        (found,) = studio.models.predict(model, [(PICTURE.name, PICTURE.read_bytes())], top=3, checkpoint="latest")[
            "predictions"
        ]
    answer = {each["class"]: each["probability"] for each in found["classes"]}
    assert answer == pytest.approx(old.jobs[model]["answer"], abs=1e-5)


def test_old_model_is_measured_as_it_was(old):
    (evaluation,) = old.evaluations("tensorflow").values()
    check_measured_again(old, evaluation)


def test_stopped_training_of_0_2_resumes(tmp_path):
    check_resumes(unpack("0.2.0", tmp_path), "tensorflow")


def job_of_0_1(folder: Path, name: str, **changes) -> Path:
    """Return a job with the network that a name stood for in 0.1, which kept no text of it."""
    text = (ZOO / "tensorflow" / "release_0_1" / f"{name}.py").read_text()
    quick_job(folder, text, **changes)
    spec = json.loads(JobFolder(folder).spec.read_text())
    JobFolder(folder).spec.write_text(json.dumps({**spec, "network": {"source": "zoo", "name": name}}))
    assert not JobFolder(folder).network.exists()
    return folder


@pytest.mark.parametrize(
    ("name", "last"),
    [("resnet18", "logits/weights"), ("mobilenet_v2", "logits/weights"), ("vgg16", "fc8/weights")],
)
@pytest.mark.nightly
def test_standard_network_of_0_1_predicts_with_its_weights(tmp_path, name, last):
    size = [32, 32] if name == "vgg16" else [16, 16]
    folder = job_of_0_1(tmp_path / "job", name, steps=1, preprocessing={"size": size}, learning_rate=0.01)
    job = open_trained_job(folder, "latest")
    assert f"model/{last}" in job.state.arrays
    x = np.random.default_rng(0).uniform(0, 255, (2, *size, 1)).astype(np.float32)
    with open_network(job) as network:
        first = network.predict(x)["output"]
    assert first.shape == (2, 10)
    assert np.ptp(first) > 0


def test_training_of_0_1_resumes_with_its_network(tmp_path):
    changes = {"preprocessing": {"size": [16, 16]}, "epochs": 1, "monitors": []}
    folder = job_of_0_1(tmp_path / "job", "resnet18", steps=1, learning_rate=0.01, **changes)
    spec = load_train_spec(JobFolder(folder).spec)
    built = build_job(spec, JobFolder(folder), StepClock(), Settings(progress="none"))
    newest = built.store.latest()
    assert newest is not None
    program = built.trainer.program
    program.declare(())
    program.load_state(newest[1].arrays)
    np.testing.assert_array_equal(
        program.state()["model/stage2/block1/conv1/weights"], newest[1].arrays["model/stage2/block1/conv1/weights"]
    )
    program.close()
