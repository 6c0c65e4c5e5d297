"""Jobs of Slurm, over stand-ins for its commands: it passes the suite of all executors, and says what Slurm says."""

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

from tests.slurm_stand_ins import Slurm
from tests.waiting import PROCESS_S, wait_until
from ziggurat.atomic import read_fence
from ziggurat.cluster.slurm.executor import SlurmExecutor, SlurmTimes, slurm_executor
from ziggurat.cluster.slurm.node import script_of
from ziggurat.entities import EXIT_STOPPED, NodeResources, Share, WorkerRef
from ziggurat.errors import ConfigurationError, JobError
from ziggurat.jobs import Ended, Executor, ExecutorOptions, Running
from ziggurat.layout import JobFolder
from ziggurat.settings import THREADS_VARIABLE
from ziggurat.testing.executor import STAND_IN, ExecutorConformance

HERE = (Share("slurm"),)


@pytest.fixture
def slurm(tmp_path):
    return Slurm(tmp_path)


@pytest.fixture
def made():
    """Return what makes executors, which look often; they are closed."""
    executors = []

    def make(slurm, command, workspace, **more):
        times = SlurmTimes(every_s=0.05, answer_within_s=more.pop("answer_within_s", 0.2))
        executor = SlurmExecutor(command, slurm.environment, workspace, times=times, **more)
        executors.append(executor)
        return executor

    yield make
    for executor in executors:
        executor.close()


class TestSlurmExecutor(ExecutorConformance):
    at_most_s = PROCESS_S

    @pytest.fixture(autouse=True)
    def cluster(self, slurm, made, tmp_path):
        self.executor_of = lambda command: made(slurm, command, tmp_path)

    def executor(self, command):
        return self.executor_of(command)


@pytest.fixture
def stand_in(tmp_path):
    path = tmp_path / "stand_in.py"
    path.write_text(STAND_IN)
    return (sys.executable, "-S", str(path))


@pytest.fixture
def executor(slurm, made, stand_in, tmp_path):
    return made(slurm, stand_in, tmp_path, options=("--partition=gpu", "--account=a b"))


def job(tmp_path, name="job", **spec):
    folder = tmp_path / name
    folder.mkdir()
    JobFolder(folder).spec.write_text(json.dumps(spec))
    return folder


def said(folder):
    path = folder / "said.json"
    wait_until(path.exists, PROCESS_S)
    return json.loads(path.read_text())


def ended(executor, worker):
    def end():
        state = executor.poll(worker)
        return state if isinstance(state, Ended) else None

    found = wait_until(end, PROCESS_S)
    assert found is not None
    return found


def test_it_is_an_executor_with_one_node_that_places_jobs_itself(executor):
    assert isinstance(executor, Executor)
    (node,) = executor.nodes()
    assert (node.name, node.executor, node.has_queue) == ("slurm", "slurm", True)
    assert executor.problem() == ""


@pytest.mark.parametrize("words", [("--partition=gpu",), ("-p", "gpu"), ("-pgpu",), ()])
def test_the_node_says_whether_its_partition_has_gpus(slurm, made, tmp_path, words):
    slurm.set("gpus", "gpu" if words else "")
    executor = made(slurm, (), tmp_path, options=words)
    wait_until(lambda: len(executor.nodes()[0].devices) == 1, PROCESS_S)


def test_another_partition_has_none(slurm, made, tmp_path):
    slurm.set("gpus", "gpu")
    executor = made(slurm, (), tmp_path, options=("--partition=cpu",))
    worker = executor.start(job(tmp_path), HERE, {}, attempt=1)
    wait_until(lambda: executor.poll(worker) != Running("waits in Slurm's queue"), PROCESS_S)  # it was asked before
    assert executor.nodes()[0].devices == ()


def test_a_job_asks_for_what_it_needs(executor, slurm, tmp_path):
    folder = job(tmp_path)
    share = Share("slurm", (0, 1))
    worker = executor.start(folder, (share,), {THREADS_VARIABLE: "4"}, attempt=3)
    (number,) = slurm.jobs()
    options = slurm.options(number)
    assert {"--gres=gpu:2", "--cpus-per-task=4", "--signal=B:TERM@120", "--no-requeue"} <= set(options)
    assert options[-2:] == ["--partition=gpu", "--account=a b"], "what the setting says counts last"
    assert ended(executor, worker).exit_code == 0
    assert said(folder)["environment"]["CUDA_VISIBLE_DEVICES"] == "1,3", "Slurm says which"


def test_a_job_without_gpus_asks_for_none(executor, slurm, tmp_path):
    ended(executor, executor.start(job(tmp_path), HERE, {}, attempt=1))
    assert not [word for word in slurm.options(slurm.jobs()[0]) if word.startswith(("--gres", "--cpus"))]


def said_by(folder, rank):
    return said(JobFolder(folder).of_rank(rank).path)


def several(executor, tmp_path, gpus=(0, 1), **spec):
    """Start a job of two nodes with two processes each; return its folder and its worker once all have begun."""
    folder = job(tmp_path, for_s=60, **spec)
    worker = executor.start(folder, (Share("slurm", gpus, (0, 1, 2, 3)),), {THREADS_VARIABLE: "2"}, attempt=1)
    for rank in range(4):
        said_by(folder, rank)
    return folder, worker


def test_a_training_on_nodes_has_a_task_for_each_process(executor, slurm, tmp_path):
    folder, worker = several(executor, tmp_path)
    assert {"--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--gres=gpu:2"} <= set(slurm.options("100"))
    step = json.loads(slurm.read("100", "step"))
    assert {"--ntasks=4", "--ntasks-per-node=2", "--kill-on-bad-exit=1"} <= set(step)
    found = [said_by(folder, rank)["environment"] for rank in range(4)]
    assert [(each["RANK"], each["LOCAL_RANK"], each["WORLD_SIZE"], each["GROUP_RANK"]) for each in found] == [
        ("0", "0", "4", "0"), ("1", "1", "4", "0"), ("2", "0", "4", "1"), ("3", "1", "4", "1"),
    ]  # fmt: skip
    assert len({(each["MASTER_ADDR"], each["MASTER_PORT"]) for each in found}) == 1
    assert found[3]["MASTER_ADDR"] in ("127.0.0.1", "::1"), "the way to the last node, which is localhost"
    assert {each["CUDA_VISIBLE_DEVICES"] for each in found} == {"1,3"}
    assert read_fence(JobFolder(folder).of_rank(3).fence) == read_fence(JobFolder(folder).fence)
    executor.kill(worker)
    assert ended(executor, worker).reason == "it was killed"
    pids = [said_by(folder, rank)["pid"] for rank in range(4)]
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), PROCESS_S)


def test_a_node_without_srun_says_so(executor, slurm, tmp_path):
    (slurm.bin / "srun").unlink()
    worker = executor.start(job(tmp_path), (Share("slurm", (), (0, 1)),), {}, attempt=1)
    assert ended(executor, worker).reason.startswith("its processes could not be started by srun: ")


def test_a_process_that_is_killed_ends_the_others(executor, tmp_path):
    folder, worker = several(executor, tmp_path, gpus=())
    pids = [said_by(folder, rank)["pid"] for rank in range(4)]
    os.kill(pids[2], signal.SIGKILL)
    found = ended(executor, worker)
    assert (found.exit_code, found.goes_on) == (-9, False)
    assert found.reason == "rank 2 on node c3 ended with exit code -9; its log may say why"
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), PROCESS_S)


def test_a_warning_while_the_job_starts_does_not_end_it(tmp_path):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGTERM); print('begun')"
    script = script_of([shlex.quote(word) for word in (sys.executable, "-c", code)])
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "begun\n")


def test_a_pending_job_waits_with_slurms_reason(executor, slurm, tmp_path):
    slurm.set("hold")
    worker = executor.start(job(tmp_path, for_s=60), HERE, {}, attempt=1)
    wait_until(lambda: executor.poll(worker) == Running("waits in Slurm's queue: Resources"), PROCESS_S)
    slurm.clear("hold")
    wait_until(lambda: executor.poll(worker) == Running(), PROCESS_S)
    executor.kill(worker)


def test_a_pending_job_that_is_asked_to_stop_leaves_the_queue(executor, slurm, tmp_path):
    slurm.set("hold")
    worker = executor.start(job(tmp_path, for_s=60), HERE, {}, attempt=1)
    executor.ask_to_stop(worker, "asked by ann")
    assert ended(executor, worker) == Ended(EXIT_STOPPED, reason="asked by ann")
    assert slurm.read("100", "state") == "CANCELLED"


def test_what_sbatch_says_is_the_error(executor, slurm, tmp_path):
    slurm.set("refuse", "invalid partition specified: gpu")
    with pytest.raises(JobError, match=r"sbatch must succeed.*invalid partition specified: gpu"):
        executor.start(job(tmp_path), HERE, {}, attempt=1)


def test_a_warning_of_slurm_lets_the_job_go_on_later(executor, slurm, tmp_path):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=1)
    said(folder)
    slurm.ends_as("100", "FAILED")
    slurm.scancel("--signal=TERM", "--batch", "100")  # as before a time limit
    found = ended(executor, worker)
    assert (found.exit_code, found.reason, found.goes_on) == (-15, "", True)
    assert "neither attempt saved a new step: raise --time" in found.stuck


@pytest.mark.parametrize(
    ("state", "reason", "is_limited"),
    [
        ("BOOT_FAIL", "its node did not start", False),
        ("NODE_FAIL", "its node failed", False),
        ("PREEMPTED", "Slurm gave its node to another job", False),
        ("TIMEOUT", "its time limit in Slurm was over", True),
    ],
)
def test_a_job_that_slurm_ended_without_a_warning_goes_on_later(executor, slurm, tmp_path, state, reason, is_limited):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=1)
    said(folder)
    slurm.ends_as("100", state)
    slurm.scancel("--signal=KILL", "--full", "100")
    found = ended(executor, worker)
    assert (found.exit_code in (None, -9), found.reason, found.goes_on) == (True, reason, True)
    assert ("raise --time" in found.stuck) == is_limited


def test_a_job_that_somebody_cancels_does_not_go_on(executor, slurm, tmp_path):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=1)
    said(folder)
    slurm.scancel("100")
    assert ended(executor, worker).reason == "it was canceled in Slurm"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("DEADLINE", "its deadline in Slurm has passed"),
        ("OUT_OF_MEMORY", "it needed more memory than Slurm gave it: add --mem to `slurm_options`"),
        ("REVOKED", "Slurm gave it to another cluster, which the studio does not follow"),
    ],
)
def test_a_job_that_slurm_ended_for_good_says_why(executor, slurm, tmp_path, state, reason):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=1)
    said(folder)
    slurm.ends_as("100", state)
    slurm.scancel("--signal=KILL", "--full", "100")
    found = ended(executor, worker)
    assert (found.reason, found.goes_on) == (reason, False)


def test_a_worker_that_is_killed_for_its_memory_says_so(executor, slurm, tmp_path):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=1)
    pid = said(folder)["pid"]
    slurm.ends_as("100", "OUT_OF_MEMORY")
    os.kill(pid, signal.SIGKILL)  # one process of the job, as the kernel does
    assert ended(executor, worker) == Ended(
        -9, reason="it needed more memory than Slurm gave it: add --mem to `slurm_options`"
    )


@pytest.mark.parametrize(
    ("accounting", "reason", "goes_on"),
    [
        ("CANCELLED by 0", "it was canceled in Slurm by root", False),
        ("CANCELLED by 4000123", "it was canceled in Slurm by 4000123", False),
        ("CANCELLED by ann", "it was canceled in Slurm by ann", False),
        ("NODE_FAIL\nPREEMPTED", "Slurm gave its node to another job", True),
        ("TIMEOUT", "its time limit in Slurm was over", True),
        ("OUT_OF_MEMORY", "it needed more memory than Slurm gave it: add --mem to `slurm_options`", False),
        ("", "Slurm's job 100 left no exit code, and Slurm knows nothing of it", False),
        (None, "Slurm's job 100 left no exit code, and Slurm knows nothing of it", False),
    ],
)
def test_a_job_that_left_the_queue_is_asked_of_sacct(executor, slurm, tmp_path, accounting, reason, goes_on):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=1)
    said(folder)
    if accounting is not None:
        slurm.set("accounting", accounting)
    slurm.set("forgotten")
    slurm.stop_node("100")
    found = ended(executor, worker)
    assert (found.reason, found.goes_on) == (reason, goes_on)


def test_a_queue_of_an_older_slurm_is_read(executor, slurm, tmp_path):
    slurm.set("old")
    slurm.set("hold")
    worker = executor.start(job(tmp_path), HERE, {}, attempt=1)
    wait_until(lambda: executor.poll(worker) == Running("waits in Slurm's queue: Resources"), PROCESS_S)
    slurm.clear("hold")
    assert ended(executor, worker) == Ended(0)


def test_a_folder_that_the_nodes_do_not_see_is_refused(executor, slurm, tmp_path):
    slurm.set("blind")
    found = ended(executor, executor.start(job(tmp_path), HERE, {}, attempt=1))
    sentence = f"the workspace {tmp_path} must lie on a folder that the nodes of Slurm share"
    assert found.exit_code == JobError.exit_code
    assert found.reason.startswith(sentence)
    assert executor.problem().startswith(sentence)
    assert executor.nodes() == (), "nothing else is sent"


def test_a_folder_that_is_another_one_there_is_refused(executor, slurm, tmp_path):
    slurm.set("hold")
    folder = job(tmp_path)
    worker = executor.start(folder, HERE, {}, attempt=1)
    fence = read_fence(JobFolder(folder).fence) or {}
    JobFolder(folder).fence.write_text(json.dumps({**fence, "nonce": "of another disk"}))
    slurm.clear("hold")
    assert "must lie on a folder that the nodes of Slurm share" in ended(executor, worker).reason
    assert "c1" not in JobFolder(folder).log.read_text()
    assert "does not see the folder" in JobFolder(folder).log.read_text()


def test_a_proven_folder_is_not_refused_for_one_node(executor, slurm, tmp_path):
    ended(executor, executor.start(job(tmp_path, "first"), HERE, {}, attempt=1))
    slurm.set("blind")
    found = ended(executor, executor.start(job(tmp_path, "second"), HERE, {}, attempt=1))
    assert "must lie on a folder" in found.reason
    assert executor.problem() == ""
    assert executor.nodes() != ()


def test_a_slurm_that_does_not_answer_loses_nothing(executor, slurm, tmp_path):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=1)
    said(folder)
    slurm.set("away")
    wait_until(lambda: "Unable to contact slurm controller" in executor.problem(), PROCESS_S)
    assert executor.poll(worker) == Running()
    slurm.clear("away")
    wait_until(lambda: executor.problem() == "", PROCESS_S)
    executor.kill(worker)
    assert ended(executor, worker).exit_code in (None, -9)


def test_a_job_that_slurm_has_forgotten_ends_by_its_answer(executor, made, slurm, stand_in, tmp_path):
    folder = job(tmp_path, exit_code=7)
    worker = executor.start(folder, HERE, {}, attempt=1)
    assert ended(executor, worker) == Ended(7)
    slurm.set("forgotten")
    again = made(slurm, stand_in, tmp_path)
    assert again.adopt(folder, None, worker) == worker
    assert ended(again, worker) == Ended(7)


def test_a_forgotten_one_that_said_nothing_is_lost(executor, made, slurm, stand_in, tmp_path):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=1)
    said(folder)
    slurm.scancel("--signal=KILL", "--full", "100")
    slurm.set("forgotten")
    assert "left no exit code" in ended(made(slurm, stand_in, tmp_path), worker).reason


def test_a_studio_killed_while_it_sent_a_job_finds_it(executor, made, slurm, stand_in, tmp_path):
    folder = job(tmp_path, for_s=60)
    worker = executor.start(folder, HERE, {}, attempt=2)
    said(folder)
    other = made(slurm, stand_in, tmp_path)
    planned = WorkerRef(executor="slurm", node="slurm", attempt=2)
    assert other.adopt(folder, None, planned) == worker
    other.kill(worker)
    ended(other, worker)
    assert made(slurm, stand_in, tmp_path).adopt(folder, None, planned) is None


def test_a_job_that_is_cancelled_before_it_begins_says_so(executor, slurm, tmp_path):
    slurm.set("hold")
    worker = executor.start(job(tmp_path, for_s=60), HERE, {}, attempt=1)
    slurm.scancel("100")
    assert ended(executor, worker) == Ended(None, reason="it was canceled in Slurm")
    slurm.clear("hold")


def test_a_later_attempt_keeps_an_earlier_one_from_starting(executor, slurm, tmp_path):
    slurm.set("hold")
    folder = job(tmp_path, for_s=60)
    executor.start(folder, HERE, {}, attempt=1)
    second = executor.start(folder, HERE, {}, attempt=2)
    slurm.clear("hold")
    said(folder)
    wait_until(lambda: slurm.read("100", "state") == "FAILED", PROCESS_S)
    log = JobFolder(folder).log.read_text()
    assert "A later worker has taken" in log
    assert log.count("begun") == 1
    executor.kill(second)


def options(tmp_path, environment, words=""):
    return ExecutorOptions(
        command=(), environment=environment, resources=NodeResources, log_limit_bytes=1 << 20, workspace=tmp_path,
        slurm_options=words,
    )  # fmt: skip


def test_without_slurm_it_says_what_is_missing(tmp_path):
    with pytest.raises(ConfigurationError, match=r"on PATH \(received: no sbatch, squeue, scancel"):
        slurm_executor(options(tmp_path, {"PATH": str(tmp_path)}))


def test_options_are_words_of_a_shell(slurm, tmp_path):
    with pytest.raises(ConfigurationError, match="`slurm_options` is words"):
        slurm_executor(options(tmp_path, slurm.environment, "--account='a"))
    slurm_executor(options(tmp_path, slurm.environment, "--account='a b'")).close()


@pytest.mark.parametrize("word", ["--array=0-3", "-a0-3", "--requeue", "--wait", "-W", "--wrap=true", "--test-only"])
def test_options_that_break_a_job_are_refused(slurm, tmp_path, word):
    with pytest.raises(ConfigurationError, match="The setting `slurm_options` has `-"):
        slurm_executor(options(tmp_path, slurm.environment, f"--partition=gpu {word}"))
