"""What is remembered of a file goes by more than its path, its time and its size: a copy has those of its original."""

import json
import os
from pathlib import Path

from tests.unit.checkpoint_samples import write_checkpoint
from tests.waiting import wait_until
from ziggurat.atomic import file_signature
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.entities.machine_load import read_machine_load
from ziggurat.layout import CheckpointFiles, JobFolder


def overwrite(path: Path, content: bytes) -> None:
    """Write another file of the same size over a file, with the time of that, as a copy that keeps times does."""
    noted = path.stat()
    assert len(content) == noted.st_size

    def is_later() -> bool:  # the clock of the file system moves every few milliseconds
        path.write_bytes(content)
        os.utime(path, ns=(noted.st_atime_ns, noted.st_mtime_ns))
        return path.stat().st_ctime_ns != noted.st_ctime_ns

    wait_until(is_later)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (noted.st_mtime_ns, noted.st_ino)


def test_machine_load_of_another_file_is_read(tmp_path):
    path = tmp_path / "machine_load.jsonl"
    path.write_text('{"time": 1.0, "step": 3}\n')
    assert read_machine_load(path).steps == (3,)

    overwrite(path, b'{"time": 1.0, "step": 7}\n')

    assert read_machine_load(path).steps == (7,)


def test_best_checkpoint_of_another_file_is_read(tmp_path):
    write_checkpoint(tmp_path, 20, 2, validation_accuracy=0.25)
    job = JobFolder(tmp_path)
    best = best_checkpoint(job)
    assert best is not None
    assert best.value == 0.25

    path = CheckpointFiles(job.checkpoints / best.checkpoint.name).state
    overwrite(path, path.read_bytes().replace(b"0.25", b"0.75"))

    best = best_checkpoint(job)
    assert best is not None
    assert best.value == 0.75


def test_a_signature_is_of_one_file_and_one_state(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(json.dumps([1]))
    first = file_signature(path)
    assert file_signature(path) == first

    overwrite(path, b"[2]")
    assert file_signature(path) != first
