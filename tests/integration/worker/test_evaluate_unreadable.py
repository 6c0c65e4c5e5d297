"""``evaluate`` counts the files that cannot be read, and names the first twenty with the reason."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ziggurat.cli.main import main
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.errors import DatapointError
from ziggurat.layout import JobFolder
from ziggurat.specs import TrainSpec, parse_spec, save_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.context import save_context


def make_pictures(folder: Path, *, bad: int) -> None:
    """Write splits of two classes with 6 images each; the validation split has some bad files more."""
    for split in ("train", "val"):
        for number, name in enumerate(("dark", "light")):
            place = folder / split / name
            place.mkdir(parents=True)
            for each in range(6):
                Image.new("RGB", (8, 8), (200 * number + each,) * 3).save(place / f"{each}.png")
    for each in range(bad):
        (folder / "val" / "dark" / f"bad{each:02}.png").write_bytes(b"no image" if each else b"")


def make_spec(pictures: Path, **options: Any) -> TrainSpec:
    """Return the spec of a job on images; ``options`` are those of the data."""
    content = {"kind": "train", "version": 1, "backend": "null", "network": "linear", "batch_size": 4}
    spec = parse_spec({**content, "data": {"source": str(pictures), "options": options}}, source="a test")
    assert isinstance(spec, TrainSpec)
    return spec


def make_job(folder: Path, pictures: Path, **options: Any) -> None:
    """Make the folder of a job of the NumPy backend with one checkpoint."""
    spec = make_spec(pictures, **options)
    data = data_of(spec)
    program = load_backend("null").build(program_request(spec, data))
    job = JobFolder(folder)
    folder.mkdir()
    save_spec(spec, job.spec)
    save_context(data.context, job)
    meta = {"global_step": 0, "epoch_num": 0, "latest": {}}
    CheckpointStore(job.checkpoints).save(RunState(meta, program.state()))
    assert Preprocessing.load(folder).size == (8, 8)


def test_bad_files_are_named_with_reasons(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_pictures(tmp_path / "pictures", bad=2)
    make_job(tmp_path / "job", tmp_path / "pictures")
    found = evaluate({"folder": str(tmp_path / "job")})
    place = tmp_path / "pictures" / "val" / "dark"
    assert (found["samples"], found["skipped"]) == (12, 2)
    assert [each["file"] for each in found["unreadable"]] == [str(place / "bad00.png"), str(place / "bad01.png")]
    assert found["unreadable"][0]["reason"] == "it is empty (0 bytes)."
    assert "it is no image of a known format" in found["unreadable"][1]["reason"]
    capfd.readouterr()
    assert main(["evaluate", str(tmp_path / "job")]) == 0
    text = capfd.readouterr().out
    assert "12 samples of val, 2 files could not be read" in text
    assert f"Unreadable:\n  {place / 'bad00.png'}: it is empty (0 bytes).\n  {place / 'bad01.png'}: " in text


def test_twenty_are_named_and_all_are_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_pictures(tmp_path / "pictures", bad=21)
    make_job(tmp_path / "job", tmp_path / "pictures")
    found = evaluate({"folder": str(tmp_path / "job")})
    assert (found["samples"], found["skipped"], len(found["unreadable"])) == (12, 21, 20)
    capfd.readouterr()
    assert main(["evaluate", str(tmp_path / "job")]) == 0
    assert "\n  and 1 file more\n" in capfd.readouterr().out


def test_nothing_is_listed_where_all_can_be_read(tmp_path: Path) -> None:
    make_pictures(tmp_path / "pictures", bad=0)
    make_job(tmp_path / "job", tmp_path / "pictures")
    found = evaluate({"folder": str(tmp_path / "job")})
    assert (found["samples"], found["skipped"], found["unreadable"]) == (12, 0, [])


def test_where_bad_files_are_errors_the_error_names_the_file(tmp_path: Path) -> None:
    make_pictures(tmp_path / "pictures", bad=1)
    make_job(tmp_path / "job", tmp_path / "pictures", on_error="raise")
    with pytest.raises(DatapointError, match=r"bad00\.png"):
        evaluate({"folder": str(tmp_path / "job")})


def test_training_names_the_file_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_pictures(tmp_path / "pictures", bad=0)
    (tmp_path / "pictures" / "train" / "light" / "torn.png").write_bytes(b"no image")
    data = data_of(make_spec(tmp_path / "pictures"))
    with data.train as batches:
        assert sum(len(labels) for _pictures, labels in batches) == 12
    assert any("torn.png' was skipped: it is no image" in record.getMessage() for record in caplog.records)
