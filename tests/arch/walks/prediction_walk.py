"""One image predicted from the page by a job that is done; only the answer of the studio is recorded."""

import sys
from pathlib import Path

import cv2
import numpy as np
import sitecustomize

from tests.unit.studio_samples import CHEAP
from tests.unit.web.conftest import Visitor
from ziggurat.app import create_studio
from ziggurat.entities import JobFilter
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio

picture = cv2.imencode(".png", np.arange(784, dtype=np.uint32).astype(np.uint8).reshape(28, 28))[1].tobytes()
with open_studio(Settings(workspace=Path(sys.argv[1]), disk_reserve_mib=0), start=False, passwords=CHEAP) as studio:
    (job,) = studio.jobs.page(JobFilter(kinds=("train",))).jobs
    visit = Visitor(create_studio(studio))
    visit.get(f"/models/{job.id}/test")
    sitecustomize.begin()
    answer = visit.post(f"/models/{job.id}/test/one", files={"picture": ("one.png", picture)})
    sys.setprofile(None)
    assert answer.status_code == 200, answer.text
    assert "one.png" in answer.text
