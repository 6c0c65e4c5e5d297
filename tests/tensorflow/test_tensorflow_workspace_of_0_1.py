"""A TensorFlow model of a workspace that release 0.1.0 made answers as it did then."""

import tarfile
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("argon2", reason="the extra `studio` is not installed")

from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio

FIXTURES = Path(__file__).parents[1] / "fixtures"
TINY = "20261122-081113-1a4c"

pytestmark = pytest.mark.tensorflow


def test_tensorflow_model_of_0_1_answers_as_it_did(tmp_path):
    with tarfile.open(FIXTURES / "workspace-0.1.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    with open_studio(Settings(workspace=tmp_path / "workspace-0.1.0"), start=False) as studio:
        picture = ("square.png", (FIXTURES / "square.png").read_bytes())
        (found,) = studio.models.predict(TINY, [picture], top=3, checkpoint="latest")["predictions"]
    assert {each["class"]: each["probability"] for each in found["classes"]} == pytest.approx(
        {"square": 0.9990122318267822, "circle": 0.0004695200768765062, "cross": 0.0005181602900847793}, abs=1e-5
    )
