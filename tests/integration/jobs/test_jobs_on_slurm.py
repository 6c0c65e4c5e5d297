"""Real trainings as jobs of Slurm, over stand-ins for its commands: taken back, resumed exactly, never doubled."""

import os
from pathlib import Path

import pytest
from jobs_studio import Studio, curves_of, paced

from tests.slurm_stand_ins import Slurm
from tests.waiting import PROCESS_S, wait_until
from ziggurat.atomic import EXIT_SUPERSEDED, read_fence
from ziggurat.cluster.slurm.executor import SlurmExecutor, SlurmTimes
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.events import AttemptStarted, read_events
from ziggurat.layout import JobFolder


class SlurmStudio(Studio):
    """A studio whose jobs all go to Slurm."""

    def __init__(self, workspace: Path, slurm: Slurm) -> None:
        self.slurm = slurm
        super().__init__(workspace)

    def executor_with(self, local):
        environment = self.slurm.environment | {
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(self.workspace / "plugins")])
        }
        times = SlurmTimes(every_s=0.1, answer_within_s=0.5)
        self.sent = SlurmExecutor(local._command, environment, self.workspace, times=times)
        return self.sent

    def close(self) -> None:
        super().close()
        self.sent.close()


@pytest.fixture
def slurm(tmp_path_factory):
    return Slurm(tmp_path_factory.mktemp("cluster"))


@pytest.fixture
def studio(workspace, slurm):
    made = SlurmStudio(workspace, slurm)
    yield made
    for job in slurm.jobs():
        slurm.scancel("--signal=KILL", "--full", job)
        slurm.scancel(job)
    made.close()


def attempts(folder):
    return [event for event in read_events(JobFolder(folder).events)[0] if isinstance(event, AttemptStarted)]


def test_a_warned_job_goes_on_at_the_exact_step(studio, slurm, undisturbed):
    folder = studio.train("job")
    studio.wait_for_step(folder, 5)
    (first,) = slurm.jobs()
    slurm.ends_as(first, "FAILED")
    slurm.scancel("--signal=TERM", "--batch", first)
    job = studio.wait_for("job", "done", "failed")
    assert (job.state, slurm.jobs()) == ("done", ["100", "101"])
    begun = attempts(folder)
    assert [each.attempt for each in begun] == [1, 2]
    assert begun[1].global_step >= 5, "at the step of the warning, not at that of an earlier checkpoint"
    assert curves_of(folder) == undisturbed
    assert studio.curves("job") == undisturbed


def test_a_worker_of_a_lost_node_is_not_heard(studio, slurm, undisturbed):
    folder = studio.train("job", callbacks=paced(0.2))
    pid = studio.wait_for_step(folder, 5)
    slurm.hide("100", "NODE_FAIL")  # the node is cut off, and its worker goes on
    wait_until(lambda: slurm.jobs() == ["100", "101"], PROCESS_S)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), PROCESS_S)
    assert "A later worker has taken" in JobFolder(folder).log.read_text()
    assert studio.wait_for("job", "done", "failed", "stopped").state == "done"
    assert (read_fence(JobFolder(folder).fence) or {})["number"] == 2
    assert curves_of(folder) == undisturbed
    assert slurm.code("100") == EXIT_SUPERSEDED
    assert CheckpointStore(JobFolder(folder).checkpoints, writable=False).list()[-1].step == 24


def test_another_studio_adopts_a_job_of_slurm(studio, slurm, workspace, undisturbed):
    folder = studio.train("job")
    studio.wait_for_step(folder, 3)
    studio.close()
    again = SlurmStudio(workspace, slurm)
    assert again.wait_for("job", "done", "failed", "stopped").state == "done"
    again.close()
    assert slurm.jobs() == ["100"]
    assert curves_of(folder) == undisturbed
