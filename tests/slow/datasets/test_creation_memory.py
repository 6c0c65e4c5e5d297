"""A creation that refers to its images needs hardly more memory for more of them."""

import subprocess
import sys
import textwrap
from pathlib import Path

import cv2
import numpy as np
import pytest

PROGRAM = """
    import sys
    from pathlib import Path
    from ziggurat.datasets.creation import CreationRequest, create_dataset
    from ziggurat.records.manifest import ImageForm
    source, folder = sys.argv[1:]
    form = ImageForm(encoding="reference")
    create_dataset(CreationRequest(name="tiny", source=source, image=form, workers=0), Path(folder))
    # Not `ru_maxrss`: it also counts what the process that started this one had in memory.
    print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
"""
FEW, MANY = 5_000, 20_000
MB = 1024
MOST_MB_FOR_10_000 = 10


@pytest.mark.nightly
def test_memory_hardly_grows_with_the_number_of_pictures(tmp_path: Path) -> None:
    few, many = (peak_kb(tiny_pictures(tmp_path / str(count), count), tmp_path) for count in (FEW, MANY))
    assert few < 300 * MB
    assert many - few < MOST_MB_FOR_10_000 * MB * (MANY - FEW) / 10_000


def tiny_pictures(folder: Path, count: int) -> Path:
    """Write class folders of 500 tiny images, each with bytes of its own behind its end."""
    encoded = cv2.imencode(".png", np.zeros((5, 7, 3), np.uint8))[1].tobytes()
    for number in range(count):
        place = folder / f"class {number // 500:02d}"
        if number % 500 == 0:
            place.mkdir(parents=True)
        (place / f"{number:06d}.png").write_bytes(encoded + number.to_bytes(4, "little"))
    return folder


def peak_kb(source: Path, place: Path) -> int:
    """Return the highest resident memory of a process that makes a dataset, in KiB."""
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), source, place / f"set {source.name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])
