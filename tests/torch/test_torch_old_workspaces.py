"""PyTorch models of workspaces that earlier versions made answer as they did then, and trainings resume."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("argon2", reason="the extra `studio` is not installed")

from tests.old_workspaces import (
    PICTURE,
    OldWorkspace,
    answers_of,
    check_measured_again,
    check_resumes,
    unpack,
)
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio

EVALUATIONS = OldWorkspace(PICTURE, answers_of("0.2.0")).evaluations("torch")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> OldWorkspace:
    """The workspace of 0.2; that of 0.1 has no model of PyTorch."""
    return unpack("0.2.0", tmp_path_factory.mktemp("old"))


def test_old_model_answers_as_it_did(old: OldWorkspace) -> None:
    model = old.job_id("torch", "answer")
    with open_studio(Settings(workspace=old.folder), start=False) as studio:
        pictures = [(PICTURE.name, PICTURE.read_bytes())]
        (found,) = studio.models.predict(model, pictures, top=3, checkpoint="latest")["predictions"]
    answer = {each["class"]: each["probability"] for each in found["classes"]}
    assert answer == pytest.approx(old.jobs[model]["answer"], abs=1e-5)


@pytest.mark.parametrize("evaluation", EVALUATIONS.values(), ids=EVALUATIONS.keys())
def test_old_model_is_measured_as_it_was(old: OldWorkspace, evaluation: str) -> None:
    check_measured_again(old, evaluation)


def test_stopped_training_of_0_2_resumes(tmp_path) -> None:
    check_resumes(unpack("0.2.0", tmp_path), "torch")
