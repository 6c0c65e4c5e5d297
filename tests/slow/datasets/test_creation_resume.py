"""A creation that is stopped, killed or runs out of disk goes on, and gives the same bytes as an undisturbed one."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.unit.datasets.small_sources import class_folders, content_of, fitted, request
from tests.waiting import PROCESS_S, wait_until
from ziggurat.datasets.creation import CreationStopped, Watch, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.errors import DataError
from ziggurat.layout import JobFolder
from ziggurat.specs import DatasetSpec, save_spec


class StopAfter(Watch):
    """Asks to stop at the ``count``-th question."""

    def __init__(self, count: int) -> None:
        self.left = count

    def stop_requested(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return class_folders(tmp_path_factory.mktemp("pictures") / "source", 700)


@pytest.fixture(scope="module")
def undisturbed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("whole") / "set"
    create_dataset(request(source, image=fitted(16, 16)), folder)
    return content_of(folder)


def test_the_number_of_processes_changes_no_byte(source: Path, undisturbed: dict[str, str], tmp_path: Path) -> None:
    create_dataset(request(source, image=fitted(16, 16), workers=2), tmp_path / "set")
    assert content_of(tmp_path / "set") == undisturbed


def test_a_stop_at_any_place_changes_no_byte(source: Path, undisturbed: dict[str, str], tmp_path: Path) -> None:
    stops = 0
    for count in range(1, 30):
        try:
            create_dataset(request(source, image=fitted(16, 16)), tmp_path / "set", StopAfter(count))
        except CreationStopped:
            stops += 1
            with pytest.raises(DataError, match="holds no finished dataset"):
                Dataset(tmp_path / "set")
            continue
        break
    assert stops >= 3
    assert content_of(tmp_path / "set") == undisturbed


def test_a_finished_data_set_is_left_alone(source: Path, tmp_path: Path) -> None:
    first = create_dataset(request(source, image=fitted(16, 16)), tmp_path / "set")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "set").iterdir()}
    assert create_dataset(request(source, image=fitted(16, 16)), tmp_path / "set") == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "set").iterdir()} == before


@pytest.mark.nightly
def test_kill_9_in_the_middle_again_and_again_changes_no_byte(tmp_path: Path) -> None:
    """Real workers, killed after the first, the fourth and the eighth of twelve chunks."""
    source = class_folders(tmp_path / "source", 3000)
    make_job(source, tmp_path / "whole")
    assert run_worker(tmp_path / "whole").wait() == 0
    make_job(source, tmp_path / "set")
    for chunks in (1, 4, 8):
        process = run_worker(tmp_path / "set")

        def has_chunks(process: subprocess.Popen[str] = process, chunks: int = chunks) -> bool:
            assert process.poll() is None
            return len(list((tmp_path / "set" / "work" / "chunks").glob("*.facts"))) >= chunks

        wait_until(has_chunks, PROCESS_S, every_s=0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "set" / "manifest.json").exists()
    assert run_worker(tmp_path / "set").wait() == 0
    assert content_of(tmp_path / "set") == content_of(tmp_path / "whole")


@pytest.mark.nightly
def test_a_full_disk_is_said_and_the_creation_goes_on_later(
    source: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    program = """
        import resource, signal, sys
        from pathlib import Path
        from tests.unit.datasets.small_sources import fitted, request
        from ziggurat.datasets.creation import create_dataset
        from ziggurat.errors import StorageError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000))
        try:
            create_dataset(request(Path(sys.argv[1]), image=fitted(16, 16)), Path(sys.argv[2]))
        except StorageError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(source), str(tmp_path / "set")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "free space" in done.stdout
    assert not (tmp_path / "set" / "manifest.json").exists()
    create_dataset(request(source, image=fitted(16, 16)), tmp_path / "set")
    assert content_of(tmp_path / "set") == undisturbed


def make_job(source: Path, folder: Path) -> None:
    """Write the spec of a dataset as the workspace does."""
    folder.mkdir()
    spec = DatasetSpec(name="small", source=str(source), size=[16, 16], workers=2)
    save_spec(spec, JobFolder(folder).spec)


def run_worker(folder: Path) -> subprocess.Popen[bytes]:
    """Start a worker in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ziggurat.worker", str(folder)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
