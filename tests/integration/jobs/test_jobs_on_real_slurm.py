"""A real training on a real Slurm of one node: warned before its time limit, sent again, resumed exactly."""

import shutil
import tempfile
from pathlib import Path

import pytest
from jobs_studio import Studio, curves_of, paced
from test_jobs_on_slurm import SlurmStudio, attempts

from tests.real_slurm import RealSlurm, why_no_slurm
from tests.waiting import wait_until
from ziggurat.cluster.slurm.executor import SlurmExecutor, SlurmTimes

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_slurm()), reason=why_no_slurm() or "Slurm is there"),
]


class RealStudio(SlurmStudio):
    """A studio whose jobs all go to that Slurm; each is warned 40 to 80 s before its limit of two minutes."""

    def executor_with(self, local):
        environment = local._environment | self.slurm.environment
        limits = ("--time=2", "--signal=B:TERM@40")
        self.sent = SlurmExecutor(
            local._command, environment, self.workspace, options=limits, times=SlurmTimes(every_s=0.5)
        )
        return self.sent


@pytest.fixture
def slurm():
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    made = RealSlurm(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def studio(workspace, slurm):
    made = RealStudio(workspace, slurm)
    yield made
    made.close()


def test_a_job_warned_by_slurm_goes_on_at_the_exact_step(studio: Studio, undisturbed):
    folder = studio.train("job", callbacks=paced(4.0))
    wait_until(lambda: len(attempts(folder)) > 1, 300.0, what="a second attempt")
    begun = attempts(folder)
    assert begun[1].global_step > 0
    # It is stopped for a moment each time, before it goes back into the queue.
    wait_until(lambda: studio.job("job").state in ("done", "failed"), 400.0)
    assert studio.job("job").state == "done", studio.job("job").reason
    assert curves_of(folder) == undisturbed
