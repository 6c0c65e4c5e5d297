"""Behaviors 54 to 60 of DIGITS: what a job is asked for is what it does."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from digits_jobs import LINEAR, Attempt, program_of, small_spec, train

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.worker.commands.evaluation import evaluate


def training_pictures() -> np.ndarray:
    """Return the (N, 8, 8, 1) float64 images of the training split."""
    return np.stack([point[0] for point in SklearnDigits("train", shuffle=False)]).astype(np.float64)


def test_54_only_the_last_checkpoint_and_the_job_ends_done(tmp_path: Path) -> None:
    job = train(tmp_path / "job", LINEAR, epochs=3, checkpoints={"every_epochs": 0})
    assert (job.exit_code, job.outcome) == (0, "done")
    assert job.saved_steps == [60]


def test_55_half_an_epoch_between_validations_gives_two_in_each(tmp_path: Path) -> None:
    job = train(tmp_path / "job", LINEAR, epochs=2, validation={"every_epochs": 0.5})
    before_training = 0
    assert [step for step, _ in job.curve("validation_cost")] == [before_training, 10, 20, 30, 40]


@pytest.mark.parametrize(("every", "steps"), [(0.5, [10, 19, 29, 38]), (1.5, [29])])
def test_55_parts_of_an_epoch_need_not_be_whole_steps(tmp_path: Path, every: float, steps: list[int]) -> None:
    periods = {"validation": {"every_epochs": every}, "checkpoints": {"every_epochs": every, "keep_last": None}}
    job = train(tmp_path / "job", LINEAR, epochs=2, steps_per_epoch=19, **periods)
    assert [step for step, _ in job.curve("validation_cost")] == [0, *steps]
    assert job.saved_steps == sorted({*steps, 38})


@pytest.mark.parametrize("devices", [["cpu:0"], ["cpu:1"], ["cpu:0", "cpu:1"], ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]])
def test_56_every_choice_of_devices_trains(tmp_path: Path, devices: list[str]) -> None:
    job = train(tmp_path / "job", devices=devices)
    assert job.outcome == "done"
    (_, first), (_, last) = job.curve("validation_cost")
    assert last < first


def test_56_one_tower_on_each_chosen_device_no_other_visible() -> None:
    program, _ = program_of(small_spec(devices=["cpu:0", "cpu:1"]))
    assert [tower.outputs[0].device for tower in program.graph.training] == ["/device:CPU:0", "/device:CPU:1"]
    visible = [device.name for device in program.session.list_devices()]
    assert [name.rsplit("/", 1)[1] for name in visible] == ["device:CPU:0", "device:CPU:1"]


@pytest.mark.parametrize("mean", ["none", "pixel", "image"])
def test_57_every_mean_trains_and_inference_takes_off_the_same(tmp_path: Path, mean: str) -> None:
    job = train(tmp_path / "job", preprocessing={"mean": mean})
    pictures = training_pictures()
    expected = {"none": None, "pixel": pictures.mean((0, 1, 2)), "image": pictures.mean(0)}[mean]
    kept = Preprocessing.load(job.folder).mean_values
    if expected is None or kept is None:
        assert expected is kept
    else:
        np.testing.assert_allclose(kept, expected, rtol=1e-6)
    assert job.outcome == "done"
    _, validated = job.curve("validation_cost")[-1]
    assert evaluate({"folder": str(job.folder)})["scalars"]["cost"] == pytest.approx(validated, rel=1e-5)


SAYS_ITS_INPUT = LINEAR.replace(
    "        return slim",
    "        height, width, channels = self.input_shape\n"
    "        tf.get_variable('seen', [height, width, channels], trainable=False)\n"
    "        return slim",
)


def test_58_a_crop_of_the_job_is_the_input_shape(tmp_path: Path) -> None:
    job = train(tmp_path / "job", SAYS_ITS_INPUT, preprocessing={"crop": 6})
    assert job.outcome == "done"
    assert job.arrays["model/seen"].shape == (6, 6, 1)
    assert job.arrays["model/fc1/weights"].shape == (36, 10)


def test_58_a_crop_in_the_network_works_too(tmp_path: Path) -> None:
    cropped = "tf.image.resize_image_with_crop_or_pad(self.x, 6, 6)"
    job = train(tmp_path / "job", SAYS_ITS_INPUT.replace("self.x", cropped))
    assert job.outcome == "done"
    assert job.arrays["model/seen"].shape == (8, 8, 1)
    assert job.arrays["model/fc1/weights"].shape == (36, 10)


def test_59_a_job_with_every_augmentation_ends_done(tmp_path: Path) -> None:
    augmentation = {
        "flip": "fliplrud",
        "quad_rotation": "rotall",
        "rotation_deg": 10,
        "scale": 0.07,
        "noise": 0.03,
        "contrast": 0.8,
        "hue": 0.02,
        "saturation": 0.04,
        "value": 0.06,
    }
    colour = {"channels": 3, "whitening": True}
    job = train(tmp_path / "job", augmentation=augmentation, preprocessing=colour)
    assert job.outcome == "done"
    assert np.isfinite([value for _, value in job.curve("cost")]).all()


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> list[Attempt]:
    """A job, one that begins with its weights, and one that begins with those of the second."""
    folder = tmp_path_factory.mktemp("chain")
    jobs = [train(folder / "0")]
    for number in (1, 2):
        jobs.append(train(folder / str(number), pretrained=str(jobs[-1].folder)))
    return jobs


def test_60_retraining_and_retraining_that_end_done(chain: list[Attempt]) -> None:
    assert [job.outcome for job in chain] == ["done", "done", "done"]


def test_60_each_begins_where_the_one_before_ended(chain: list[Attempt]) -> None:
    for job, after in itertools.pairwise(chain):
        assert after.curve("validation_cost")[0] == (0, pytest.approx(job.curve("validation_cost")[-1][1], rel=1e-5))
    for after in chain[1:]:
        restored = [line for line in after.log.splitlines() if "Restored and trained on" in line]
        assert len(restored) == 1
        assert "model/conv1/weights" in restored[0]


def test_60_a_single_checkpoint_of_a_job_will_do(chain: list[Attempt], tmp_path: Path) -> None:
    checkpoint = chain[0].folder / "checkpoints" / "step-00000020"
    program, _ = program_of(small_spec(pretrained=str(checkpoint)))
    np.testing.assert_array_equal(program.state()["model/fc1/weights"], chain[0].arrays["model/fc1/weights"])
