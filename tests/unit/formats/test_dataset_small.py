"""MNIST, CIFAR, SVHN and scikit-learn's digits, from files that the tests make in the published formats."""

import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import numpy as np
import pytest

from ziggurat.dataflow.dataset import Cifar10, Cifar100, FashionMnist, Mnist, SklearnDigits, SVHNDigit, set_data_folder
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.errors import DataError, UnknownNameError, UsageError

RNG = np.random.RandomState(0)
PICTURES = RNG.randint(0, 256, (12, 28, 28), dtype=np.uint8)
DIGITS = (np.arange(12) % 10).astype(np.uint8)
SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return header + array.tobytes()


@pytest.fixture
def mnist(tmp_path):
    for name, count in (("train", 12), ("t10k", 5)):
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(PICTURES[:count])))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(DIGITS[:count]))  # one of them not compressed
    return tmp_path


# ---- MNIST


@pytest.mark.parametrize("reader", [Mnist, FashionMnist])
def test_mnist_yields_floats_and_labels(mnist, reader):
    flow = reader("train", shuffle=False, dir=mnist)
    points = list(flow)
    assert len(flow) == len(points) == 12
    for (image, label), picture, digit in zip(points, PICTURES, DIGITS, strict=True):
        assert image.dtype == np.float32
        assert (image == picture.astype(np.float32) / np.float32(255)).all()
        assert isinstance(label, np.uint8)
        assert label == digit
    points[0][0][:] = 0  # new memory
    assert list(flow)[0][0].any()  # noqa: RUF015


def test_mnist_gives_pixels_as_they_are(mnist):
    flow = Mnist("train", shuffle=False, dir=mnist, raw=True)
    image, _label = next(iter(flow))
    assert image.dtype == np.uint8
    assert (image == PICTURES[0][:, :, None]).all()
    assert flow.images.shape == (12, 28, 28)
    assert flow.labels.tolist() == DIGITS.tolist()


def test_only_the_training_set_is_shuffled_by_default(mnist):
    def labels(flow):
        return [int(dp[1]) for dp in flow]

    assert labels(Mnist("test", dir=mnist)) == DIGITS[:5].tolist()
    shuffled = Mnist("train", dir=mnist).seed(0)
    first, second = labels(shuffled), labels(shuffled)
    assert first != second
    assert sorted(first) == sorted(second) == sorted(DIGITS.tolist())
    assert labels(Mnist("train", dir=mnist).seed(0)) == first
    assert sorted(labels(Mnist("test", shuffle=True, dir=mnist))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("raw", [False, True])
def test_batches_are_gathered_and_equal_stacked_datapoints(mnist, raw):
    single = list(Mnist("train", shuffle=False, dir=mnist, raw=raw))
    batches = list(BatchData(Mnist("train", shuffle=False, dir=mnist, raw=raw), 5, remainder=True))
    assert [batch[0].shape[:3] for batch in batches] == [(5, 28, 28), (5, 28, 28), (2, 28, 28)]
    assert [batch[1].shape for batch in batches] == [(5,), (5,), (2,)]
    assert batches[0][1].dtype == np.uint8
    assert (np.concatenate([batch[0] for batch in batches]) == np.stack([dp[0] for dp in single])).all()


@pytest.mark.parametrize("position", [0, 1, 7, 12])
def test_a_data_set_resumes_exactly(mnist, position):
    expected = [int(dp[1]) for dp in Mnist("train", dir=mnist).seed(5)]
    flow = Mnist("train", dir=mnist).seed(5)
    begun = iter(flow)
    for _ in range(position):
        next(begun)
    resumed = Mnist("train", dir=mnist)
    resumed.load_state(json.loads(json.dumps(flow.state())))
    assert [int(dp[1]) for dp in resumed] == expected[position:]


def test_a_data_set_crosses_process_borders_without_its_pixels(mnist):
    flow = Mnist("train", dir=mnist).seed(5)
    message = pickle.dumps(flow)
    assert len(message) < 2000
    assert [int(dp[1]) for dp in pickle.loads(message)] == [int(dp[1]) for dp in flow]


def test_class_names():
    assert FashionMnist.get_label_names()[9] == "Ankle boot"


# ---- where files are


def test_missing_files_are_named(tmp_path, mnist):
    (mnist / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError) as caught:
        Mnist("train", dir=mnist)
    text = str(caught.value)
    assert text.startswith(f"The folder `{mnist}` has no `train-labels-idx1-ubyte.gz`, which `Mnist` reads.")
    assert "or fetch them with `download=True`" in text
    assert caught.value.details["missing"] == ["train-labels-idx1-ubyte.gz"]


def test_a_folder_must_be_named_or_set(mnist):
    with pytest.raises(UsageError, match=r"`Mnist` was given no folder to read its files from. Write `Mnist\(…, dir="):
        Mnist("train")
    mnist.rename(mnist.parent / "mnist")
    set_data_folder(mnist.parent)
    try:
        assert len(Mnist("train")) == 12
        with pytest.raises(DataError, match=r"The folder `.*fashion-mnist` has no "):
            FashionMnist("train")
    finally:
        set_data_folder(None)


def test_splits_must_be_known(mnist):
    with pytest.raises(UnknownNameError, match=r"`tset` is not a known split of `Mnist`\. Did you mean `test`"):
        Mnist("tset", dir=mnist)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it starts with b''"),
        (b"<html>not here</html>", "it starts with b'<htm'"),
        (idx(DIGITS), "it has 1 dimensions instead of 3"),
        (idx(PICTURES)[:-1], r"9407 bytes for values of shape \(12, 28, 28\)"),
        (gzip.compress(idx(PICTURES))[:-20], "it cannot be read"),
        (idx(PICTURES[:3]), "3 images in .* and 12 labels in"),
    ],
)
def test_damaged_files_are_named(mnist, content, reason):
    (mnist / "train-images-idx3-ubyte.gz").write_bytes(content)
    with pytest.raises(DataError, match=rf"train-images-idx3-ubyte.gz`: {reason}|{reason}"):
        Mnist("train", dir=mnist)


# ---- CIFAR

IMAGES = RNG.randint(0, 256, (10, 32, 32, 3), dtype=np.uint8)
ROWS = IMAGES.transpose(0, 3, 1, 2).reshape(10, 3072)
FINE = np.arange(10) * 3
COARSE = np.arange(10)


def cifar_files(version):
    """Name in the archive → content, with two images a batch."""
    parts = {f"data_batch_{n + 1}": slice(2 * n, 2 * n + 2) for n in range(5)} | {"test_batch": slice(6, 9)}
    files = {}
    for name, rows in parts.items():
        if version == "binary":
            files[f"cifar-10-batches-bin/{name}.bin"] = b"".join(
                bytes([label]) + row.tobytes() for label, row in zip(COARSE[rows], ROWS[rows], strict=True)
            )
        else:
            batch = {b"data": ROWS[rows], b"labels": COARSE[rows].tolist(), b"batch_label": b"one"}
            files[f"cifar-10-batches-py/{name}"] = pickle.dumps(batch, protocol=2)
    if version == "binary":
        files["cifar-10-batches-bin/batches.meta.txt"] = b"airplane\nautomobile\n\n"
    else:
        files["cifar-10-batches-py/batches.meta"] = pickle.dumps({b"label_names": [b"airplane", b"automobile"]})
    return files


def cifar100_files(version):
    files = {}
    for name, rows in (("train", slice(0, 6)), ("test", slice(6, 10))):
        if version == "binary":
            files[f"cifar-100-binary/{name}.bin"] = b"".join(
                bytes([coarse, fine]) + row.tobytes()
                for coarse, fine, row in zip(COARSE[rows], FINE[rows], ROWS[rows], strict=True)
            )
        else:
            batch = {b"data": ROWS[rows], b"fine_labels": FINE[rows].tolist(), b"coarse_labels": COARSE[rows].tolist()}
            files[f"cifar-100-python/{name}"] = pickle.dumps(batch, protocol=2)
    names = [f"class{number}" for number in range(100)]
    if version == "binary":
        files["cifar-100-binary/fine_label_names.txt"] = "\n".join(names).encode()
    else:
        files["cifar-100-python/meta"] = pickle.dumps({b"fine_label_names": [name.encode() for name in names]})
    return files


def place(files, folder, form):
    """Write the files as the archive, unpacked with the archive's folder, or directly into the folder."""
    if form == "archive":
        inner = next(iter(files)).split("/")[0]
        name = {"bin": "cifar-10-binary", "py": "cifar-10-python"}.get(inner.rpartition("-")[2], inner)
        with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
            for path, content in files.items():
                member = tarfile.TarInfo(path)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return
    for path, content in files.items():
        target = folder / (path if form == "unpacked" else path.split("/")[1])
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)


@pytest.mark.parametrize("form", ["archive", "unpacked", "flat"])
@pytest.mark.parametrize("version", ["binary", "python"])
def test_cifar10(tmp_path, version, form):
    place(cifar_files(version), tmp_path, form)
    flow = Cifar10("train", shuffle=False, dir=tmp_path)
    points = list(flow)
    assert len(flow) == 10
    assert all(type(label) is int and image.flags.c_contiguous for image, label in points)
    assert (np.stack([image for image, _label in points]) == IMAGES).all()
    assert [label for _image, label in points] == COARSE.tolist()
    assert [label for _image, label in Cifar10("test", dir=tmp_path)] == [6, 7, 8]
    assert flow.get_label_names() == ["airplane", "automobile"]
    both = np.concatenate([IMAGES, IMAGES[6:9]])
    assert np.allclose(flow.get_per_pixel_mean(), both.mean(axis=0))
    assert np.allclose(flow.get_per_pixel_mean(("train",)), IMAGES.mean(axis=0))
    assert np.allclose(flow.get_per_channel_mean(), both.mean(axis=(0, 1, 2)))
    assert sorted(label for _image, label in Cifar10("train", dir=tmp_path)) == COARSE.tolist()


@pytest.mark.parametrize("form", ["archive", "unpacked"])
@pytest.mark.parametrize("version", ["binary", "python"])
def test_cifar100(tmp_path, version, form):
    place(cifar100_files(version), tmp_path, form)
    flow = Cifar100("test", dir=tmp_path)
    assert [label for _image, label in flow] == FINE[6:].tolist()
    assert (next(iter(flow))[0] == IMAGES[6]).all()
    assert flow.get_label_names()[99] == "class99"
    batch = next(iter(BatchData(flow, 4)))
    assert batch[0].shape == (4, 32, 32, 3)
    assert batch[1].dtype == np.int64


class Harmful:
    def __reduce__(self):
        return (os.mkdir, ("harm",))


def test_a_harmful_pickle_is_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = cifar_files("python")
    files["cifar-10-batches-py/test_batch"] = pickle.dumps({b"data": Harmful()}, protocol=2)
    place(files, tmp_path, "unpacked")
    with pytest.raises(DataError, match=r"only where it holds plain data.*one that names `posix.mkdir`"):
        Cifar10("test", dir=tmp_path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x80\x02broken", "one that is damaged"),
        (pickle.dumps([1]), "a list instead of a dict"),
        (pickle.dumps({b"data": ROWS[:2]}), "labels"),
        (pickle.dumps({b"data": ROWS[:2], b"labels": [1]}), r"pixels of shape \(2, 3072\), uint8, for 1 labels"),
        (pickle.dumps({b"data": np.array([object], object), b"labels": [1]}), "names `builtins.object`"),
    ],
)
def test_damaged_batches_are_named(tmp_path, content, reason):
    place(cifar_files("python"), tmp_path, "flat")
    (tmp_path / "test_batch").write_bytes(content)
    with pytest.raises(DataError, match=reason):
        Cifar10("test", dir=tmp_path)


def test_damaged_archives_and_missing_parts_are_named(tmp_path):
    with pytest.raises(DataError, match=r"has no `cifar-10-binary.tar.gz`, which `Cifar10` reads.*or fetch them"):
        Cifar10("train", dir=tmp_path)
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(gzip.compress(bytes(100))[:-5])
    with pytest.raises(DataError, match="A file of CIFAR is read as it was published"):
        Cifar10("train", dir=tmp_path)
    files = cifar_files("binary")
    del files["cifar-10-batches-bin/data_batch_3.bin"]
    place(files, tmp_path, "archive")
    with pytest.raises(DataError, match=r"has 4 of "):
        Cifar10("train", dir=tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(bytes(3072))
    with pytest.raises(DataError, match="3072 bytes, and a row has 3073"):
        Cifar10("test", dir=tmp_path)


# ---- SVHN


def test_svhn(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    labels = np.array([1, 9, 10, 2], np.uint8)
    for name in ("train", "test"):
        arrays = {"X": IMAGES[:4].transpose(1, 2, 3, 0), "y": labels[:, None]}
        scipy_io.savemat(tmp_path / f"{name}_32x32.mat", arrays)
    flow = SVHNDigit("test", tmp_path)
    assert [label for _image, label in flow] == [1, 9, 0, 2]
    assert (np.stack([image for image, _label in flow]) == IMAGES[:4]).all()
    assert sorted(label for _image, label in SVHNDigit("train", data_dir=tmp_path)) == [0, 1, 2, 9]
    mean = SVHNDigit.get_per_pixel_mean(("train", "test"), data_dir=tmp_path)
    assert np.allclose(mean, IMAGES[:4].mean(axis=0))
    with pytest.raises(
        DataError,
        match=r"has no `extra_32x32.mat`, which `SVHNDigit` reads. Put the missing files there \(from http://ufldl",
    ):
        SVHNDigit("extra", tmp_path)
    (tmp_path / "extra_32x32.mat").write_bytes(b"no matlab" * 100)
    with pytest.raises(DataError, match="A file of SVHN holds images"):
        SVHNDigit("extra", tmp_path)


# ---- scikit-learn's digits


@pytest.fixture(scope="module")
def digits():
    pytest.importorskip("sklearn")
    return {split: SklearnDigits(split, shuffle=False) for split in ("train", "val", "test")}


def test_digits_are_split_by_class_without_overlap(digits):
    assert {split: len(flow) for split, flow in digits.items()} == {"train": 1252, "val": 270, "test": 275}
    for flow in digits.values():
        assert (np.bincount(flow.labels) >= len(flow) // 10 - 4).all()
    pictures = [image.tobytes() for flow in digits.values() for image, _label in flow]
    assert len(pictures) == 1797
    assert len(set(pictures)) > 1790  # two people drew the same now and then


def test_digits_are_gray_images_from_0_to_255(digits):
    image, label = next(iter(digits["train"]))
    assert image.shape == (8, 8, 1)
    assert image.dtype == np.uint8
    assert type(label) is int
    assert digits["train"].images.max() == 255
    assert digits["train"].images.min() == 0


def test_the_split_never_changes(digits):
    assert digits["train"].labels[:12].tolist() == [3, 4, 5, 6, 7, 8, 9, 0, 2, 3, 4, 5]
    assert digits["test"].images.sum(dtype=int) == 1_364_622


def test_enlarged_digits_are_those_of_a_bilinear_resize(digits):
    import cv2

    large = SklearnDigits("test", size=28)
    assert large.images.shape == (275, 28, 28, 1)
    for small, image in zip(digits["test"].images[:20], large.images, strict=False):
        expected = cv2.resize(small.astype(np.float32), (28, 28), interpolation=cv2.INTER_LINEAR)
        assert np.abs(expected - image[:, :, 0]).max() < 1
    assert large.images.sum(dtype=int) == 16_717_270
    with pytest.raises(UsageError, match="8 x 8 or 28 x 28"):
        SklearnDigits("test", size=16)


# ---- the published files, where this machine has them


@pytest.mark.skipif(not (SHARED / "mnist").is_dir(), reason=f"no folder {SHARED / 'mnist'}: set ZIGGURAT_SHARED_DATA")
@pytest.mark.parametrize(("reader", "folder"), [(Mnist, "mnist"), (FashionMnist, "fashion-mnist")])
def test_published_files(reader, folder):
    flow = reader("test", dir=SHARED / folder)
    assert len(flow) == 10_000
    assert np.bincount(flow.labels).min() >= 892
    image, label = next(iter(flow))
    assert image.shape == (28, 28)
    assert label == {"mnist": 7, "fashion-mnist": 9}[folder]


def test_small_sets_need_no_image_library_and_names_are_checked():
    program = """
        import sys
        from ziggurat.dataflow.dataset import Cifar10, Mnist, SVHNDigit, SklearnDigits
        print(sorted({"cv2", "PIL", "sklearn", "scipy", "h5py", "torch", "tensorflow"} & set(sys.modules)))
        from ziggurat.dataflow import dataset
        try:
            dataset.Mnits
        except AttributeError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    first, second = done.stdout.splitlines()
    assert first == "[]"
    assert second.startswith("module 'ziggurat.dataflow.dataset' has no attribute 'Mnits'; it has: ILSVRC12, Cifar10")


def test_missing_packages_are_named(tmp_path):
    program = """
        import sys
        sys.modules.update({"h5py": None, "sklearn": None, "sklearn.datasets": None, "scipy": None, "scipy.io": None})
        from ziggurat.errors import MissingDependencyError
        from ziggurat.dataflow.dataset import SklearnDigits, SVHNDigit
        from ziggurat.dataflow.formats import HDF5Data
        from ziggurat.records import create_records
        from pathlib import Path
        Path(sys.argv[1], "train_32x32.mat").touch()
        for use in (
            lambda: SklearnDigits(),
            lambda: SVHNDigit("train", sys.argv[1]),
            lambda: HDF5Data("a.h5", ["a"]),
            lambda: create_records(sys.argv[1] + "/a.h5", "hdf5"),
        ):
            try:
                use()
            except MissingDependencyError as error:
                print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "The package `scikit-learn` is needed for `SklearnDigits`, and it is not installed. "
        "Install it with: pip install 'ziggurat[samples]'.",
        "The package `scipy` is needed for the `.mat` files of SVHN, and it is not installed. "
        "Install it with: pip install 'ziggurat[samples]'.",
        *[
            "The package `h5py` is needed for HDF5 files, and it is not installed. "
            "Install it with: pip install 'ziggurat[hdf5]'."
        ]
        * 2,
    ]
