"""A network that generates: noise from a seed, rows that a person gives, and predictions that are images."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from tensorflow_jobs import digit_pictures, quick_job, save_pictures

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.errors import ConfigurationError, UnknownNameError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.inference.generation import generate
from ziggurat.worker.inference.handlers import WarmModel


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(quick_job(tmp_path_factory.mktemp("gan") / "job", "gan", steps=2))


def made(job: str, **request) -> np.ndarray:
    found = predict({"folder": job, **request})
    assert not found["failures"]
    return np.array([each["outputs"]["output"]["values"] for each in found["predictions"]])


def test_a_seed_decides_what_is_generated(job: str) -> None:
    some = made(job, count=3, seed=7)
    assert some.shape == (3, 28, 28, 1)
    np.testing.assert_array_equal(some, made(job, count=3, seed=7))
    np.testing.assert_allclose(some[:2], made(job, count=2, seed=7), atol=1e-6)
    assert np.abs(some - made(job, count=3, seed=8)).max() > 1e-3
    assert np.abs(some[0] - some[1]).max() > 1e-3


def test_no_image_is_generated_twice_in_one_answer(job: str) -> None:
    found = made(job, count=40)
    assert len({np.round(each, 6).tobytes() for each in found}) == 40
    np.testing.assert_array_equal(found, made(job, count=40, seed=0))


def test_noise_that_is_given_is_what_a_network_gets(job: str) -> None:
    row = [0.5] * 64
    one, other = made(job, count=2, inputs={"noise": row})
    np.testing.assert_allclose(one, other, atol=1e-6)
    both = made(job, count=2, inputs={"noise": [row, [-0.5] * 64]})
    np.testing.assert_allclose(both[0], one, atol=1e-6)
    assert np.abs(both[1] - one).max() > 1e-4


def test_the_first_numbers_replace_those_of_the_seed(job: str) -> None:
    noise = np.random.default_rng([7, *b"noise"]).standard_normal((2, 64)).astype(np.float32)
    np.testing.assert_allclose(
        made(job, count=2, seed=7), made(job, count=2, inputs={"noise": noise.tolist()}), atol=1e-6
    )
    noise[:, :3] = [0.5, -3, 2]
    found = made(job, count=2, seed=7, first={"noise": [0.5, -3, 2]})
    np.testing.assert_allclose(found, made(job, count=2, inputs={"noise": noise.tolist()}), atol=1e-6)


def test_an_inference_process_generates_the_same(job: str) -> None:
    model = WarmModel(Path(job))
    found = generate(model, {"count": 40, "seed": 7, "first": {"noise": [1.5]}, "drawn": True})
    assert found["inputs"] == {"noise": {"shape": [64], "dtype": "float32"}}
    assert [each["file"] for each in found["predictions"]] == [str(number) for number in range(1, 41)]
    values = np.array([each["outputs"]["output"]["values"] for each in found["predictions"]])
    np.testing.assert_allclose(values, made(job, count=40, seed=7, first={"noise": [1.5]}), atol=1e-6)
    picture = cv2.imdecode(np.frombuffer(found["predictions"][39]["picture"], np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_array_equal(picture[:, :, :1], np.rint(values[39] * 255))
    with pytest.raises(UsageError, match="`count` says how many samples a network makes"):
        generate(model, {"seed": 1})
    model.close()


def test_noise_beside_images_follows_those_that_can_be_read(job: str, tmp_path: Path) -> None:
    files = [*save_pictures(tmp_path, digit_pictures()[0][:2]), str(tmp_path / "gone.png")]
    found = predict({"folder": job, "images": [files[0], files[2], files[1]], "seed": 7})
    assert [each["file"] for each in found["predictions"]] == files[:2]
    assert [each["file"] for each in found["failures"]] == files[2:]
    values = np.array([each["outputs"]["output"]["values"] for each in found["predictions"]])
    np.testing.assert_allclose(values, made(job, count=3, seed=7)[[0, 2]], atol=1e-6)


def test_generated_images_are_written(job: str, tmp_path: Path) -> None:
    found = predict({"folder": job, "count": 2, "seed": 1, "pictures": str(tmp_path / "made")})["predictions"]
    for number, each in enumerate(found, 1):
        assert each["picture"] == str(tmp_path / "made" / f"{number}.png")
        values = np.array(each["outputs"]["output"]["values"])
        np.testing.assert_array_equal(cv2.imread(each["picture"])[:, :, :1], np.rint(values * 255))
    with pytest.raises(UsageError, match="The folder for predicted images is new or empty"):
        predict({"folder": job, "count": 1, "pictures": str(tmp_path / "made")})


@pytest.mark.parametrize(
    ("request_", "error", "said"),
    [
        ({"count": 0}, UsageError, "`count` is a whole number from 1 to 1000"),
        ({"count": 1, "images": ["a.png"]}, UsageError, "`count` is for predictions without any sample"),
        ({"count": 1, "seed": -1}, UsageError, "`seed` is a whole number from 0 up"),
        ({"count": 1, "inputs": {"nois": [1.0]}}, UnknownNameError, "Did you mean `noise`"),
        ({"count": 1, "inputs": {"noise": ["a"]}}, UsageError, "The input `noise` is a list of numbers"),
        ({"count": 1, "inputs": {"noise": [1.0, 2.0]}}, ConfigurationError, r"rows of shape \(64\)"),
        ({"count": 2, "inputs": {"noise": [[0.0] * 64] * 3}}, ConfigurationError, r"\(3, 64\) for 2 sample"),
        ({"count": 1, "first": {"nois": [1.0]}}, UnknownNameError, "Did you mean `noise`"),
        ({"count": 1, "first": {"noise": [0.0] * 65}}, UsageError, "`first` has numbers for the beginning of"),
        ({"count": 1, "first": [1.0]}, UsageError, "`first` has the numbers of each input by its name"),
    ],
)
def test_what_cannot_be_generated(job: str, request_: dict, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        predict({"folder": job, **request_})


def test_a_classifier_generates_nothing(tmp_path: Path) -> None:
    job = str(quick_job(tmp_path / "job", "lenet"))
    with pytest.raises(UsageError, match="has no inputs beside its samples"):
        predict({"folder": job, "count": 2})
    files = save_pictures(tmp_path, digit_pictures()[0][:1])
    found = predict({"folder": job, "images": files, "pictures": str(tmp_path / "made")})
    assert found["predictions"][0]["picture"] is None


def test_a_free_network_is_evaluated_with_and_without_classes(job: str) -> None:
    found = evaluate({"folder": job})
    assert (found["task"], found["samples"]) == ("free", 270)
    assert np.isfinite(list(found["scalars"].values())).all()
    assert {"discriminator_loss", "generator_loss"} <= set(found["scalars"])


def test_the_newest_checkpoint_of_a_generator_is_used(tmp_path: Path) -> None:
    """The loss of a generator is smallest before it has learned; a metric that a person names still decides."""
    folder = quick_job(tmp_path / "job", "gan")
    store = CheckpointStore(folder / "checkpoints")
    state = store.latest()[1]
    for step, cost in ((4, 1.0), (8, 3.0)):
        meta = {**state.meta, "global_step": step, "latest": {"validation_cost": [step, cost]}}
        store.save(RunState(meta, state.arrays))
    found = best_checkpoint(JobFolder(folder))
    assert (found.checkpoint.step, found.basis) == (8, "newest")
    store.give_name("min-validation_cost", store.list()[1].name)
    assert best_checkpoint(JobFolder(folder)).checkpoint.step == 4
