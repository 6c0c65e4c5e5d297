"""What DIGITS's TensorFlow examples do, by networks in its style: made, trained, predicted, and seen as pictures.

Auto-encoder, binary segmentation, regression, siamese network, and the generative network with its encoder; behaviors
89, 90 and 95 of DIGITS hold for each.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import digits_example_networks as networks
import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import EXIT_DONE
from ziggurat.layout import JobFolder, ResultFiles
from ziggurat.tasks.segmentation import palette
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.inference.handlers import PredictRequest, WarmModel
from ziggurat.worker.inference.handlers import predict as predict_warm
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest

SIDE, SAMPLES, VAL = 16, 120, 30
_kept = tempfile.TemporaryDirectory(prefix="ziggurat-tests-")


def shapes() -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield number, gray image (H, W) uint8 with a triangle, and where its inside is (H, W)."""
    random = np.random.default_rng(1)
    for number in range(SAMPLES):
        corners = random.integers(1, SIDE - 1, (3, 2)).astype(np.int32)
        inside = np.zeros((SIDE, SIDE), np.uint8)
        cv2.fillPoly(inside, [corners], 1)
        image = cv2.polylines(random.integers(0, 30, (SIDE, SIDE), np.uint8), [corners], True, 255)
        yield number, np.where(inside > 0, np.maximum(image, 140), image), inside > 0


def copies(source: Path) -> dict[str, Any]:
    for number, first, _, _ in drawn_pairs():
        write(source / f"{number}.png", first)
    return {"format": "image_pairs", "auto_encoder": True}


def triangles(source: Path) -> dict[str, Any]:
    for number, image, inside in shapes():
        write(source / "images" / f"{number}.png", image)
        write(source / "filled" / f"{number}.png", inside.astype(np.uint8) * 255)
    return {"format": "image_pairs", "inputs": "images", "targets": "filled"}


def masks(source: Path) -> dict[str, Any]:
    for number, image, inside in shapes():
        write(source / "images" / f"{number}.png", image)
        write(source / "masks" / f"{number}.png", inside.astype(np.uint8))
    (source / "classes.txt").write_text("paper\ntriangle\n")
    return {"format": "masks"}


def gradients(source: Path) -> dict[str, Any]:
    random, lines = np.random.default_rng(2), []
    y, x = np.mgrid[0:SIDE, 0:SIDE] / (SIDE - 1) - 0.5
    for number in range(SAMPLES):
        down, right = random.uniform(-1, 1, 2)
        write(source / f"{number}.png", np.rint(127.5 + 127 * (down * y + right * x)).astype(np.uint8))
        lines.append(f"{number}.png {down:.5f} {right:.5f}\n")
    (source / "train.txt").write_text("".join(lines))
    return {"format": "text_list", "kind": "image-regression"}


def drawn_pairs() -> Iterator[tuple[int, np.ndarray, np.ndarray, int]]:
    """Yield number, two gray images, and whether both show a bar that lies, or both one that stands."""
    random = np.random.default_rng(3)
    for number in range(SAMPLES):
        lies = random.integers(0, 2, 2)
        images = random.integers(0, 60, (2, SIDE, SIDE), np.uint8)
        for image, each in zip(images, lies, strict=True):
            place = random.integers(4, SIDE - 4)
            (image if each else image.T)[place - 1 : place + 2] = 255
        yield number, *images, int(lies[0] == lies[1])


def pairs(source: Path) -> dict[str, Any]:
    lines = []
    for number, first, second, same in drawn_pairs():
        write(source / f"{number}a.png", first)
        write(source / f"{number}b.png", second)
        lines.append(f"{number}a.png {number}b.png {same}\n")
    (source / "train.txt").write_text("".join(lines))
    return {"format": "siamese_pairs"}


def pairs_in_channels(source: Path) -> dict[str, Any]:
    """Write pairs as DIGITS's example has them: one image with them in its channels, of class 0 or 1."""
    for number, first, second, same in drawn_pairs():
        write(source / str(same) / f"{number}.png", np.stack([np.zeros_like(first), first, second], axis=2)[:, :, ::-1])
    return {"format": "class_folders"}


def bars(source: Path) -> dict[str, Any]:
    for number, first, _, same in drawn_pairs():
        lies = (first.max(axis=1) > 100).sum() < SIDE
        write(source / ("lies" if lies else "stands") / f"{number}-{same}.png", first)
    return {"format": "class_folders"}


DATASETS = {each.__name__: each for each in (copies, triangles, masks, gradients, pairs, pairs_in_channels, bars)}
ADAM = {"optimizer": {"name": "adam"}, "learning_rate": 0.005, "epochs": 12}
EXAMPLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "auto-encoder": ("copies", networks.AUTOENCODER, {**ADAM, "epochs": 40}),
    "binary segmentation": ("triangles", networks.MASKS_AS_IMAGES, {**ADAM, "epochs": 20}),
    "segmentation": ("masks", networks.SEGMENTATION, ADAM),
    "regression": ("gradients", networks.GRADIENTS, {"learning_rate": 0.02, "epochs": 25}),
    "siamese": ("pairs", networks.SIAMESE, ADAM),
    "siamese in channels": ("pairs_in_channels", networks.SIAMESE_OF_DIGITS, ADAM),
    "gan with encoder": ("bars", "gan_encoder", {**ADAM, "epochs": 30, "learning_rate": 0.002}),
}
"""Kind of example → dataset, network, fields of the spec."""
ALL = pytest.mark.parametrize("name", EXAMPLES)


@functools.cache
def dataset(name: str) -> Path:
    source = Path(_kept.name) / name
    options = DATASETS[name](source)
    rule = SplitRule(method="share", val_share=VAL / SAMPLES, test_share=0, seed=1, stratify=False)
    format_name = options.pop("format")
    request = CreationRequest(
        source=str(source), name=name, format=format_name, options=options, rule=rule, near_duplicates=False, workers=0
    )
    create_dataset(request, source.with_name(f"{name}-dataset"))
    return source.with_name(f"{name}-dataset")


@functools.cache
def trained(name: str) -> str:
    data, network, fields = EXAMPLES[name]
    named = {"source": "file", "path": "network.py", "text": network} if "\n" in network else network
    spec = {
        "kind": "train", "version": 1, "backend": "tensorflow", "network": named, "data": str(dataset(data)),
        "batch_size": 10, "seed": 3, "schedule": "fixed", "monitors": ["events"], "machine_load_s": 0,
        "sample_predictions": False, **fields,
    }  # fmt: skip
    return execute(Path(_kept.name) / f"job of {name}", spec)


def execute(folder: Path, spec: dict[str, Any]) -> str:
    """Do a job in this process."""
    folder.mkdir()
    JobFolder(folder).spec.write_text(json.dumps(spec))
    assert main([str(folder)], request=StopRequest()) == EXIT_DONE
    return str(folder)


def write(path: Path, image: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), image)
    return path


def validation(name: str, folder: Path, count: int = 4) -> tuple[list[str], list[np.ndarray]]:
    """Return files of images of the validation split, and these images (H, W, C)."""
    with Dataset(dataset(EXAMPLES[name][0])) as opened:
        images = [opened.picture("val", row) for row in range(count)]
    return [str(write(folder / f"{row}.png", image[..., ::-1])) for row, image in enumerate(images)], images


def answers(name: str, folder: Path, **request: Any) -> list[dict[str, Any]]:
    found = predict({"folder": trained(name), "pictures": str(folder / "pictures"), **request})
    assert not found["failures"]
    return found["predictions"]


def picture(answer: dict[str, Any]) -> np.ndarray:
    return cv2.imread(answer["picture"])[:, :, ::-1]


@ALL
def test_89_answers_for_images_of_any_size(name: str, tmp_path: Path) -> None:
    """Behavior 89: what a network says is in the answer for one image and for many, whatever their size."""
    files, images = validation(name, tmp_path)
    large = cv2.resize(images[0], (50, 40), interpolation=cv2.INTER_NEAREST)
    files.append(str(write(tmp_path / "large.png", large if large.ndim == 2 else large[..., ::-1])))
    many = answers(name, tmp_path, images=files)
    assert [each["file"] for each in many] == files
    (one,) = predict({"folder": trained(name), "images": files[:1]})["predictions"]
    assert set(one) == set(many[0]) - {"picture"}
    assert json.loads(json.dumps(many, allow_nan=False))


@ALL
def test_90_an_evaluation_has_each_sample_of_the_split(name: str, tmp_path: Path) -> None:
    """Behavior 90."""
    spec = {"kind": "evaluate", "version": 1, "model": trained(name), "split": "val"}
    files = ResultFiles(JobFolder(Path(execute(tmp_path / "job", spec))).results)
    assert json.loads(files.summary.read_text())["count"] == VAL
    assert evaluate({"folder": trained(name)})["samples"] == VAL


def test_the_auto_encoder_copies_its_input(tmp_path: Path) -> None:
    found = evaluate({"folder": trained("auto-encoder")})
    files, images = validation("auto-encoder", tmp_path)
    copies_of = [picture(each)[:, :, 0] for each in answers("auto-encoder", tmp_path, images=files)]
    with Dataset(dataset("copies")) as opened:
        gray = np.mean([opened.picture("train", row) for row in range(SAMPLES - VAL)], axis=0)
    pairs_of = zip(copies_of, images, strict=True)
    errors = [np.square(copy / 255 - image.squeeze() / 255).mean() for copy, image in pairs_of]
    plain = [np.square((image - gray) / 255).mean() for image in images]
    assert np.mean(errors) < 0.6 * np.mean(plain)
    assert found["mse"] < 0.6 * np.mean(plain)


def test_binary_segmentation_gives_an_image_of_the_inside(tmp_path: Path) -> None:
    files, _ = validation("binary segmentation", tmp_path, VAL)
    with Dataset(dataset("triangles")) as opened:
        wanted = [opened.sample("val", row).part(1) for row in range(VAL)]
    insides = [cv2.imdecode(np.frombuffer(each, np.uint8), cv2.IMREAD_GRAYSCALE) > 127 for each in wanted]
    found = [picture(each)[:, :, 0] > 127 for each in answers("binary segmentation", tmp_path, images=files)]
    common = np.sum([(a & b).sum() for a, b in zip(found, insides, strict=True)])
    assert common / np.sum([(a | b).sum() for a, b in zip(found, insides, strict=True)]) > 0.7


def test_95_segmentation_is_the_argmax_named_by_the_file(tmp_path: Path) -> None:
    """Behavior 95: the class of a pixel is that of the largest number; the legend has the names of the class file."""
    files, _ = validation("segmentation", tmp_path)
    model = WarmModel(Path(trained("segmentation")))
    asked = PredictRequest([(file, Path(file).read_bytes()) for file in files], drawn=True)
    predict_warm(model, [asked])
    context = model.job.context
    decoded = np.stack([context.preprocessing.decode(Path(file).read_bytes(), file) for file in files])
    outputs = model.network.predict(context.task.input_batch(context, decoded, context.preprocessing.finish))["output"]
    model.close()
    colors = palette(model.job.context.schema)
    names = (dataset("masks").parent / "masks" / "classes.txt").read_text().split()
    shown = answers("segmentation", tmp_path, images=files)
    for each, drawn, output in zip(asked.predictions, shown, np.asarray(outputs), strict=True):
        classes = np.argmax(output, axis=-1)
        np.testing.assert_array_equal(picture(drawn), colors[classes])
        decoded = cv2.imdecode(np.frombuffer(each["picture"], np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
        np.testing.assert_array_equal(decoded, colors[classes])
        legend = {entry["number"]: entry for entry in drawn["classes"]}
        assert {number: entry["class"] for number, entry in legend.items()} == {
            number: names[number] for number in np.unique(classes).tolist()
        }
        for number, entry in legend.items():
            assert entry["share"] == pytest.approx((classes == number).mean())
            assert entry["color"] == "#{:02x}{:02x}{:02x}".format(*colors[number])
    assert evaluate({"folder": trained("segmentation")})["mean_iou"] > 0.75


def test_regression_finds_both_gradients(tmp_path: Path) -> None:
    found = evaluate({"folder": trained("regression")})
    assert found["r2"] > 0.95
    files, images = validation("regression", tmp_path)
    for each, image in zip(answers("regression", tmp_path, images=files), images, strict=True):
        gray = image.reshape(SIDE, SIDE).astype(float)
        wanted = [(gray[-1] - gray[0]).mean() / 127, (gray[:, -1] - gray[:, 0]).mean() / 127]
        assert [value["value"] for value in each["values"]] == pytest.approx(wanted, abs=0.25)
        assert each["picture"] is None


def test_a_siamese_network_embeds_images(tmp_path: Path) -> None:
    found = evaluate({"folder": trained("siamese")})
    assert found["accuracy"] > 0.9
    assert found["roc_auc"] > 0.95
    files, images = validation("siamese", tmp_path, 12)
    lies = np.array([(image.squeeze().max(axis=1) > 100).sum() < SIDE for image in images])
    places = np.array([each["embedding"] for each in answers("siamese", tmp_path, images=files)])
    distances = np.linalg.norm(places[:, None] - places[None], axis=2) + np.diag(np.full(12, np.inf))
    assert (lies[distances.argmin(axis=1)] == lies).mean() > 0.9


def test_a_siamese_file_of_digits_learns_pairs_in_channels(tmp_path: Path) -> None:
    """DIGITS's own layout, a label for each image with both in its channels; the file needs no change."""
    files, _ = validation("siamese in channels", tmp_path, VAL)
    found = answers("siamese in channels", tmp_path, images=files)
    first, second = values_of(found), values_of(found, "output_1")
    with Dataset(dataset("pairs_in_channels")) as opened:
        same = np.array([opened.sample("val", row).label for row in range(VAL)])
    distances = np.linalg.norm(first - second, axis=1)
    assert ((distances < 0.5) == same).mean() > 0.85


def test_an_encoder_finds_what_a_generator_makes_images_of(tmp_path: Path) -> None:
    """Image → z and attributes → image; another attribute vector gives another image."""
    files, images = validation("gan with encoder", tmp_path, 8)
    lies = np.array([(image.squeeze().max(axis=1) > 100).sum() < SIDE for image in images])
    found = answers("gan with encoder", tmp_path, images=files)
    codes, again = values_of(found, "output_1"), values_of(found)
    assert codes.shape == (8, 32)
    # The code of an image, given as noise, makes the image that the network made of it.
    attributes = np.eye(2)[np.where(lies, 0, 1)]
    with Dataset(dataset("bars")) as opened:
        assert list(opened.schema.class_names) == ["lies", "stands"]
    request = {"folder": trained("gan with encoder"), "count": 8}
    inputs = {"noise": codes.tolist(), "attributes": attributes.tolist()}
    made = values_of(predict({**request, "inputs": inputs})["predictions"])
    assert np.abs(made - again).mean() < 0.1
    # The attributes decide how the bar lies: the rows of a lying one differ, and the columns of one that stands.
    for number in range(2):
        inputs = {"noise": codes.tolist(), "attributes": np.eye(2)[number].tolist()}
        turned = predict({**request, "inputs": inputs, "pictures": str(tmp_path / f"of class {number}")})["predictions"]
        bright = values_of(turned)[..., 0]
        rows, columns = (bright.mean(axis=axis).std(axis=1).mean() for axis in (2, 1))
        assert (rows > columns) == (number == 0), (rows, columns)
        assert picture(turned[0]).shape == (SIDE, SIDE, 3)


def values_of(predictions: list[dict[str, Any]], name: str = "output") -> np.ndarray:
    return np.array([each["outputs"][name]["values"] for each in predictions])
