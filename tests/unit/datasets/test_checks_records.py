"""A check that reads everything finds damaged records, and files of the source that changed."""

import dataclasses

from small_datasets_for_checks import dataset_of, jpeg, picture

from ziggurat.datasets.checks import check_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.records.codec import FileReference
from ziggurat.records.manifest import MANIFEST_NAME, Manifest, SourceNote, SplitNote, StoreNote


def points(contents):
    return [(f"{n}.jpg", (content,), 0) for n, content in enumerate(contents)]


def test_pictures_that_cannot_be_decoded_are_found(tmp_path):
    whole = [jpeg(picture(seed)) for seed in range(4)]
    contents = [whole[0], whole[1][:-300], whole[2], b"<html>404</html>"]
    folder = tmp_path / "set"
    with dataset_of(folder, {"train": points(whole)}) as dataset:
        assert "corrupt-record" not in check_dataset(dataset, verify=True)
    with dataset_of(tmp_path / "bad", {"train": points(contents)}, readable=False) as dataset:
        assert "corrupt-record" not in check_dataset(dataset)
        finding = check_dataset(dataset, verify=True)["corrupt-record"]
    assert finding.exclude == {"train": (1, 3)}
    assert finding.cases[0].note.startswith("the JPEG data is cut off")
    assert finding.cases[1].note.startswith("it is no image of a known format")


def test_records_whose_checksum_is_wrong_are_found(tmp_path):
    with dataset_of(tmp_path / "set", {"train": points([jpeg(picture(seed)) for seed in range(3)])}) as dataset:
        content = (dataset.folder / "train.lmdb").read_bytes()
        place = content.index(jpeg(picture(1))[900:1000]) + 40
        (dataset.folder / "train.lmdb").write_bytes(content[:place] + b"damaged!" + content[place + 8 :])
        with Dataset(dataset.folder) as damaged:
            finding = check_dataset(damaged, verify=True)["corrupt-record"]
    assert finding.exclude == {"train": (1,)}
    assert finding.severity == "error"


def test_a_store_that_is_gone_is_found_without_reading(tmp_path):
    with dataset_of(tmp_path / "set", {"train": points([jpeg(picture(seed)) for seed in range(3)])}) as dataset:
        (dataset.folder / "train.lmdb").unlink()
        with Dataset(dataset.folder) as again:
            report = check_dataset(again)
            verified = check_dataset(again, verify=True)
    assert report["changed-store"].text == "1 file is not as it was made: `train.lmdb` is not there."
    assert verified["corrupt-record"].count == 3


def test_a_changed_store_of_equal_size_is_found_by_checksum(tmp_path):
    with dataset_of(tmp_path / "set", {"train": points([jpeg(picture(0))])}) as dataset:
        manifest = Manifest.load(dataset.folder)
        store = dataset.folder / "train.lmdb"
        size = store.stat().st_size
    note = StoreNote(path=store.name, record_format="lmdb", count=1, size_bytes=size, sha256="0" * 64)
    (dataset.folder / MANIFEST_NAME).unlink()
    dataclasses.replace(manifest, splits={"train": SplitNote(count=1, stores=(note,))}).save(dataset.folder)
    with Dataset(dataset.folder) as again:
        assert "changed-store" not in check_dataset(again)
        text = check_dataset(again, verify=True)["changed-store"].text
    assert text == "1 file is not as it was made: `train.lmdb` has another checksum."
    store.write_bytes(store.read_bytes() + b"more")
    with Dataset(dataset.folder) as again:
        assert f"`train.lmdb` has {size + 4} bytes, not {size}" in check_dataset(again)["changed-store"].text


def test_files_of_the_source_that_changed_are_found(tmp_path):
    source = tmp_path / "pictures"
    source.mkdir()
    contents = [jpeg(picture(seed)) for seed in range(4)]
    with dataset_of(tmp_path / "made", {"train": points(contents)}) as made:
        catalogue = (made.folder / "index.sqlite").read_bytes()
    for number, content in enumerate(contents):
        (source / f"{number}.jpg").write_bytes(content)
    parts = [FileReference(f"{number}.jpg", len(content), 0) for number, content in enumerate(contents)]
    with dataset_of(tmp_path / "set", {"train": points(parts)}) as dataset:
        manifest = Manifest.load(dataset.folder)
    (dataset.folder / MANIFEST_NAME).unlink()
    (dataset.folder / "index.sqlite").write_bytes(catalogue)
    dataclasses.replace(manifest, source=SourceNote(uri="pictures", format="folder", root=str(source))).save(
        dataset.folder
    )
    (source / "0.jpg").unlink()
    (source / "1.jpg").write_bytes(contents[1][:-40])
    (source / "2.jpg").write_bytes(contents[2][:-40] + bytes(38) + b"\xff\xd9")
    with Dataset(dataset.folder) as again:
        finding = check_dataset(again, verify=True)["changed-file"]
    assert finding.exclude == {"train": (0, 1, 2)}
    notes = [case.note for case in finding.cases]
    assert "No such file" in notes[0]
    assert f"had {len(contents[1])} bytes when the dataset was made, now {len(contents[1]) - 40}" in notes[1]
    assert notes[2] == "its content has changed since the dataset was made."
