"""Stand-ins for Slurm's commands on ``PATH``: jobs are processes, and what Slurm knows of one is a folder."""

import json
import os
import sys

SCRIPT = '''
import json, os, signal, subprocess, sys, threading

name, words = os.path.basename(sys.argv[1]), sys.argv[2:]
root = os.environ["SLURM_STAND_IN"]


def read(job, what):
    try:
        with open(os.path.join(root, job, what)) as file:
            return file.read()
    except OSError:
        return ""


def write(job, what, text):
    path = os.path.join(root, job, what)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def there(what):
    return os.path.exists(os.path.join(root, what))


def wait():
    threading.Event().wait(0.01)


def members(job):
    """The processes of a job, as its control group has them: by what it gives to its environment."""
    # The root, too: another test has jobs of the same numbers at the same time.
    marks = {b"SLURM_JOB_ID=" + job.encode(), b"SLURM_STAND_IN=" + os.fsencode(root)}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/" + pid + "/environ", "rb") as file:
                if marks.issubset(file.read().split(bytes(1))):
                    yield int(pid)
        except OSError:
            pass


def kill(job):
    for pid in members(job):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def fail(text):
    sys.stderr.write(text + "\\n")
    sys.exit(1)


def sbatch():
    if words == ["--version"]:
        print("slurm 23.11.4")
        return
    if there("refuse"):
        fail("sbatch: error: " + open(os.path.join(root, "refuse")).read())
    job = str(100 + len([each for each in os.listdir(root) if each.isdigit()]))
    os.mkdir(os.path.join(root, job))
    write(job, "script", sys.stdin.read())
    write(job, "options", json.dumps(words))
    write(job, "state", "PENDING")
    command = [sys.executable, "-I", "-S", __file__, "slurmd", job]
    nothing = subprocess.DEVNULL
    subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    print(job)


def slurmd():
    job = words[0]
    options = dict(word.partition("=")[::2] for word in json.loads(read(job, "options")))
    while there("hold") and read(job, "state") == "PENDING":
        wait()
    if read(job, "state") != "PENDING":
        return
    variables = {**os.environ, "SLURM_JOB_ID": job, "SLURMD_NODENAME": "c1", "SLURM_JOB_NODELIST": "localhost"}
    if "--gres" in options:
        # Its first GPUs are taken.
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(["1", "3", "5"][: int(options["--gres"].split(":")[1])])
    script = os.path.join(root, job, "script")
    with open(options["--output"], "a") as log:
        shell = "/bin/false" if there("blind") else "/bin/sh"
        batch = subprocess.Popen([shell, script], stdout=log, stderr=log, env=variables, start_new_session=True)
    write(job, "pid", str(batch.pid))
    write(job, "state", "RUNNING")
    code = batch.wait()
    write(job, "code", str(code))
    kill(job)
    said = read(job, "ends_as")
    if read(job, "state") != "RUNNING":
        return
    write(job, "state", said or ("COMPLETED" if code == 0 else "FAILED"))


def srun():
    """Tasks of a step, on nodes that are all this machine; SIGUSR1 goes to all of them."""
    options = dict(word.partition("=")[::2] for word in words if word.startswith("--"))
    first = next(number for number, word in enumerate(words) if not word.startswith("--"))
    write(os.environ["SLURM_JOB_ID"], "step", json.dumps(words[:first]))
    count, of_node = int(options["--ntasks"]), int(options["--ntasks-per-node"])
    tasks = []
    signal.signal(signal.SIGUSR1, lambda number, frame: [task.send_signal(number) for task in tasks])
    for rank in range(count):
        place = {"SLURM_PROCID": rank, "SLURM_NTASKS": count, "SLURM_LOCALID": rank % of_node,
                 "SLURM_NODEID": rank // of_node, "SLURMD_NODENAME": "c%d" % (1 + rank // of_node)}
        variables = {**os.environ, **{name: str(value) for name, value in place.items()}}
        tasks.append(subprocess.Popen(words[first:], env=variables, start_new_session=True))
    is_killed = False
    while any(task.poll() is None for task in tasks):
        if not is_killed and any(task.poll() for task in tasks):
            is_killed = True  # --kill-on-bad-exit: SIGTERM, and soon SIGKILL to all that is left of the tasks
            for task in tasks:
                task.send_signal(signal.SIGTERM)
            threading.Event().wait(1.0)
            for task in tasks:
                task.kill()
        wait()
    sys.exit(max(128 - task.returncode if task.returncode < 0 else task.returncode for task in tasks))


def scontrol():
    """The nodes of a job, one a line."""
    print(words[-1])


def squeue():
    if there("away"):
        fail("slurm_load_jobs error: Unable to contact slurm controller")
    jobs = []
    for job in sorted(filter(str.isdigit, os.listdir(root))):
        state = read(job, "state")
        if state and not there("forgotten"):
            reason = "Resources" if state == "PENDING" else "None"
            states = state if there("old") else [state]  # one text before Slurm 23.11
            jobs.append({"job_id": int(job), "job_state": states, "state_reason": reason, "nodes": "c1"})
    print(json.dumps({"jobs": jobs, "errors": []}))


def sinfo():
    gpus = os.path.join(root, "gpus")
    if there("gpus") and open(gpus).read() in ("", words[-1].partition("=")[2]):
        print("gpu:a100:4")
    print("(null)")


def sacct():
    """As ``--parsable2`` writes it: a line for each time that a job was sent to a node, the newest last."""
    if not there("accounting"):
        fail("Slurm accounting storage is disabled")
    print(open(os.path.join(root, "accounting")).read())


def scancel():
    job, options = words[-1], dict(word.partition("=")[::2] for word in words[:-1])
    with open(os.path.join(root, "scancel.txt"), "a") as file:
        file.write(" ".join(words) + "\\n")
    state = read(job, "state")
    if not state:
        fail("scancel: error: Kill job error on job id " + job + ": Invalid job id specified")
    if options.get("--state", state) != state or state not in ("PENDING", "RUNNING"):
        return
    if "--signal" not in options:
        write(job, "ends_as", "CANCELLED")
        if state == "PENDING":
            write(job, "state", "CANCELLED")
        kill(job)
    elif options["--signal"] == "KILL":
        kill(job)
    else:
        try:
            os.kill(int(read(job, "pid")), signal.SIGTERM)
        except ProcessLookupError:
            pass


globals()[name]()
'''


class Slurm:
    """A cluster of stand-ins in a folder.

    Files there change it: ``hold`` keeps jobs pending, ``refuse`` has the words with which ``sbatch`` refuses, ``away``
    lets ``squeue`` fail, ``blind`` lets nodes not see the folder, ``forgotten`` empties the queue, ``gpus`` names the
    partition that has some, ``old`` is a ``squeue`` before Slurm 23.11, ``accounting`` has what ``sacct`` tells.
    """

    def __init__(self, folder):
        self.root, self.bin = folder / "slurm", folder / "bin"
        self.root.mkdir()
        self.bin.mkdir()
        program = folder / "slurm_stand_in.py"
        program.write_text(SCRIPT)
        for name in ("sbatch", "srun", "scontrol", "squeue", "scancel", "sinfo", "sacct"):
            path = self.bin / name
            path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {program} {name} "$@"\n')
            path.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "SLURM_STAND_IN": str(self.root)}

    def set(self, what, text=""):
        (self.root / what).write_text(text)

    def clear(self, what):
        (self.root / what).unlink()

    def jobs(self):
        return sorted(path.name for path in self.root.iterdir() if path.name.isdigit())

    def read(self, job, what):
        return (self.root / job / what).read_text()

    def options(self, job):
        return json.loads(self.read(job, "options"))

    def ends_as(self, job, state):
        (self.root / job / "ends_as").write_text(state)

    def hide(self, job, state):
        """Let Slurm say how a job ended that still runs."""
        (self.root / job / "state").write_text(state)

    def code(self, job):
        return int(self.read(job, "code"))

    def stop_node(self, job):
        """Kill all processes of a job, as if its node had lost power."""
        self.scancel("--signal=KILL", "--full", job)

    def scancel(self, *words):
        os.spawnve(os.P_WAIT, str(self.bin / "scancel"), ["scancel", *words], self.environment)
