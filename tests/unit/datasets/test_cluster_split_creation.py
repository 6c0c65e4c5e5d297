"""A split by clusters does not leak by the measure of the report and of the check, whatever is stored of an image."""

import cv2
import numpy as np
import pytest
from small_datasets_for_checks import jpeg, picture

from ziggurat.dataflow.image_codec import decode_image, encode_image
from ziggurat.datasets.checks import check_dataset
from ziggurat.datasets.creation import CreationRequest, Watch, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.hashing import NO_HASH, picture_hash
from ziggurat.datasets.splitting import SplitRule
from ziggurat.datasets.versions import Exclude, make_version
from ziggurat.records.manifest import ImageForm
from ziggurat.workspace.dataset_versions import split_anew

BURSTS, FRAMES = 16, 6
RESIZED = {"resize_mode": "squash", "height_px": 64, "width_px": 80}
FORMS = {
    "original": {"encoding": "original"},
    "reference": {"encoding": "reference"},
    "jpeg": {"encoding": "jpeg"},
    "raw": {"encoding": "raw"},
    "png-squash": {"encoding": "png", **RESIZED},
    "png-crop": {"encoding": "png", **RESIZED, "resize_mode": "crop"},
    "jpeg-fill": {"encoding": "jpeg", **RESIZED, "resize_mode": "fill"},
    "raw-half-crop": {"encoding": "raw", **RESIZED, "resize_mode": "half_crop"},
    "png-grey": {"encoding": "png", "channels": 1},
}


class Listener(Watch):
    def __init__(self):
        self.warnings = []

    def message(self, level, text):
        if level == "warning":
            self.warnings.append(text)


def burst(seed):
    """Return frames that differ so much that some pairs of them are just near, and some just not."""
    random = np.random.default_rng([3, seed])
    still = picture(seed, (280, 300)).astype(np.float32)
    return [
        np.clip(still + cv2.resize(random.normal(0, 26, (12, 12, 3)).astype(np.float32), (300, 280)), 0, 255).astype(
            np.uint8
        )
        for _ in range(FRAMES)
    ]


@pytest.fixture(scope="module")
def bursts(tmp_path_factory):
    source = tmp_path_factory.mktemp("bursts")
    for number in range(BURSTS):
        folder = source / ("fox", "owl")[number % 2]
        folder.mkdir(exist_ok=True)
        for step, frame in enumerate(burst(number)):
            (folder / f"{number:02}-{step}.jpg").write_bytes(jpeg(frame, 40 + 10 * step))
    return source


def made(source, folder, form, listener=None, **options):
    rule = SplitRule(method=options.pop("method", "cluster"), val_share=0.3, max_distance=options.pop("bits", 6))
    request = CreationRequest(
        name="bursts",
        source=str(source),
        format="class_folders",
        rule=rule,
        workers=0,
        image=ImageForm(**form),
        **options,
    )
    create_dataset(request, folder, listener)
    return Dataset(folder)


@pytest.mark.parametrize("form", FORMS)
def test_cluster_split_leaks_nothing_by_its_own_measure(bursts, tmp_path, form):
    listener = Listener()
    with made(bursts, tmp_path / "set", FORMS[form], listener) as dataset:
        kinds = {finding.kind for finding in check_dataset(dataset).findings}
        assert (dataset.catalogue.column("picture_hash") != NO_HASH).all()
    assert not [warning for warning in listener.warnings if "leaks" in warning]
    assert "near-duplicate" in kinds
    assert "leak" not in kinds


@pytest.mark.parametrize("method", ["cluster", "share"])
def test_every_encoding_keeps_the_same_hashes(bursts, tmp_path, method):
    hashes = {}
    for name in ("original", "reference", "png-squash", "raw"):
        with made(bursts, tmp_path / name, FORMS[name], method=method) as dataset:
            column = dataset.catalogue.column("picture_hash").tolist()
            hashes[name] = dict(zip((entry.key for entry in dataset.catalogue.walk()), column, strict=True))
    decoded = {
        path.relative_to(bursts).as_posix(): picture_hash(decode_image(path.read_bytes()))
        for path in sorted(bursts.rglob("*.jpg"))
    }
    assert all(found == decoded for found in hashes.values())


def test_references_that_are_split_at_random_are_warned_of(bursts, tmp_path):
    listener = Listener()
    with made(bursts, tmp_path / "set", FORMS["reference"], listener, method="share") as dataset:
        report = check_dataset(dataset)
    assert any(warning.startswith("This split leaks") for warning in listener.warnings)
    assert report["leak"].severity == "warning"


def test_a_version_keeps_the_hashes(bursts, tmp_path):
    with made(bursts, tmp_path / "set", FORMS["reference"]) as dataset:
        make_version(dataset, [Exclude("train", [0])], tmp_path / "new")
        before = {entry.key: entry.picture_hash for entry in dataset.catalogue.walk()}
    with Dataset(tmp_path / "new") as version:
        after = {entry.key: entry.picture_hash for entry in version.catalogue.walk()}
        assert "leak" not in {finding.kind for finding in check_dataset(version).findings}
    assert len(after) == len(before) - 1
    assert after.items() <= before.items()


def test_report_and_check_use_the_distance_of_the_split(bursts, tmp_path):
    listener = Listener()
    spec = {"splits": {"method": "cluster", "max_distance": 1}}
    with made(bursts, tmp_path / "set", FORMS["original"], listener, bits=1, spec=spec) as dataset:
        kinds = {finding.kind for finding in check_dataset(dataset).findings}
    assert not [warning for warning in listener.warnings if "leaks" in warning]
    assert "leak" not in kinds


def test_a_new_split_of_a_dataset_without_hashes_makes_them(bursts, tmp_path):
    made(bursts, tmp_path / "set", FORMS["reference"], method="share", near_duplicates=False).close()
    _, warnings = split_anew(tmp_path / "set", {"method": "cluster", "val_share": 0.3}, tmp_path / "new")
    with Dataset(tmp_path / "new") as dataset:
        assert "leak" not in {finding.kind for finding in check_dataset(dataset, verify=True).findings}
    assert warnings == []


def test_a_new_split_at_random_is_warned_of_leaks(bursts, tmp_path):
    made(bursts, tmp_path / "set", FORMS["original"]).close()
    _, warnings = split_anew(tmp_path / "set", {"method": "share", "val_share": 0.3}, tmp_path / "new")
    assert any(warning.startswith("This split leaks") for warning in warnings)


def test_grey_files_have_one_hash_in_every_encoding(tmp_path):
    source = tmp_path / "digits"
    source.mkdir()
    for number in range(6):
        grey = np.random.default_rng(number).integers(0, 256, (20, 20), np.uint8)
        (source / f"{number}.png").write_bytes(encode_image(grey, "png"))
    found = []
    for method in ("share", "cluster"):
        folder = tmp_path / method
        rule = SplitRule(method=method, val_share=0.5)
        request = CreationRequest(name="digits", source=str(source), format="image_pairs", rule=rule, workers=0)
        create_dataset(request, folder)
        with Dataset(folder) as dataset:
            found.append({entry.key: entry.picture_hash for entry in dataset.catalogue.walk()})
    assert found[0] == found[1]
    assert None not in found[0].values()
