"""Every new job gets an id that no other process can get in the same second."""

import subprocess
import sys

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("argon2", reason="the extra `studio` is not installed")

NOW = 1_795_276_800.0
CLAIMS = """
import sys
from pathlib import Path
from ziggurat.workspace.new_jobs import claim_folder, new_job_ids, new_job_names

for _ in range(2500):
    names = new_job_ids(float(sys.argv[2])) if sys.argv[3] == "ids" else new_job_names("lenet", float(sys.argv[2]))
    print(claim_folder(Path(sys.argv[1]), names).name)
"""


def claims_of_four_processes(folder, kind):
    """Return the names of 10,000 folders that four processes claimed in one second."""
    words = [sys.executable, "-c", CLAIMS, str(folder), str(NOW), kind]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    return [name for process in processes for name in process.communicate()[0].split()]


@pytest.mark.nightly
def test_ids_of_four_processes_in_one_second_are_distinct(tmp_path):
    ids = claims_of_four_processes(tmp_path / "jobs", "ids")
    assert len(ids) == len(set(ids)) == 10_000
    assert {path.name for path in (tmp_path / "jobs").iterdir()} == set(ids)
