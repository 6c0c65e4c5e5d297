"""Jobs as plain values: their states, what they need of a machine, their results, and changes by users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ziggurat.entities.arithmetic import AttemptArithmetic
from ziggurat.entities.best_checkpoint import metric_title
from ziggurat.entities.next_step import NextStep
from ziggurat.errors import NonFiniteError
from ziggurat.events import DivergenceNoticed
from ziggurat.formatting import as_number

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "ACTIVE_STATES",
    "DIVERGED",
    "ENDED_STATES",
    "INTERVENTION",
    "JOB_KINDS",
    "JOB_OUTCOMES",
    "JOB_STATES",
    "RECOVERED",
    "RUN_KINDS",
    "TRAINING_LOSSES",
    "Attempt",
    "Checkpoint",
    "Curve",
    "Device",
    "Divergence",
    "Job",
    "JobChange",
    "JobFilter",
    "JobPage",
    "JobTotals",
    "Listing",
    "Mark",
    "NewJob",
    "NodeResources",
    "ResourceRequest",
    "ScalarSummary",
    "Share",
    "SweepSummary",
    "WorkerRef",
    "disk_reserve_bytes",
    "divergence_after",
    "divergence_of_error",
    "outcome_of",
    "rate_text",
]


_GIBIBYTE = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Device:
    """An accelerator.

    Args:
        index: by which it is asked for, from 0.
        name: as its driver says.
        memory_bytes: that it has.
        free_bytes: not in use.
        load: share of the last second in which it worked, in [0, 1]; None where that is not known.
        usable: whether jobs may be put on it.
    """

    index: int
    name: str
    memory_bytes: int
    free_bytes: int
    load: float | None = None
    usable: bool = True


@dataclass(frozen=True, kw_only=True)
class NodeResources:
    """Resources of one machine for jobs, in use or not.

    Args:
        name: of the node; unique among those of an executor.
        executor: name of the executor that starts workers on it.
        devices: its accelerators.
        cpu_slots: jobs that may run on its processors at a time, besides those on accelerators.
        memory_bytes: memory that all jobs may use together; 0 for no limit.
        dataset_slots: datasets that may be made at a time; 0 for nodes other than the studio's own machine.
        disk_free_bytes: free space where its job folders are.
        disk_reserve_bytes: no job is started with less free space than this.
        labels: what its administrator said of it.
        versions: of ``python``, ``ziggurat`` and the frameworks, by name.
        datasets: hashes of the datasets in its cache; None for the studio's own machine, which has all of them.
        has_queue: whether it is a cluster that places jobs itself: they are sent at once, and its room is not counted.
    """

    name: str = ""
    executor: str = "local"
    devices: tuple[Device, ...] = ()
    cpu_slots: int = 1
    memory_bytes: int = 0
    dataset_slots: int = 1
    disk_free_bytes: int = 1 << 62
    disk_reserve_bytes: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    datasets: frozenset[str] | None = None
    has_queue: bool = False


@dataclass(frozen=True)
class Share:
    """Part of a job on one node.

    Args:
        node: name of the node.
        devices: indices of the accelerators there; empty for a job on the processors.
        ranks: numbers of its processes there, from 0 over all nodes of the job.
    """

    node: str
    devices: tuple[int, ...] = ()
    ranks: tuple[int, ...] = (0,)


@dataclass(frozen=True, kw_only=True)
class WorkerRef:
    """A worker, as its executor finds it again.

    Args:
        executor: name of the executor.
        node: name of the node of rank 0.
        attempt: number of the attempt as the studio counts them; it grows with every start, and what a worker of a
            lower number says is refused.
        opaque: JSON values that only the executor reads; empty from the decision to start the worker until it is there.
    """

    executor: str
    node: str
    attempt: int = 0
    opaque: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ResourceRequest:
    """What a job needs.

    Args:
        devices: accelerators of each node, at the same time; 0 for a job on the processors.
        device_indices: just these, where a person chose them; empty for any.
        device_memory_bytes: free memory on each of them; 0 if unknown.
        memory_bytes: of each node; 0 if unknown.
        slot: ``cpu``, ``device`` or ``dataset``: what limits how many run at a time.
        nodes: machines that it runs on at the same time.
        datasets: hashes of the datasets that it reads, as far as they are known.
    """

    devices: int = 0
    device_indices: tuple[int, ...] = field(default=())
    device_memory_bytes: int = 0
    memory_bytes: int = 0
    slot: str = "cpu"
    nodes: int = 1
    datasets: tuple[str, ...] = ()


def disk_reserve_bytes(total_bytes: int, chosen_mib: int | None = None) -> int:
    """Return the free space below which no job is started: 2 % of the disk, at least 1 GiB and at most 5 GiB.

    Args:
        total_bytes: size of the disk.
        chosen_mib: the setting ``disk_reserve_mib``, which holds instead where it is given.
    """
    if chosen_mib is not None:
        return chosen_mib << 20
    return min(max(_GIBIBYTE, total_bytes // 50), 5 * _GIBIBYTE)


TRAINING_LOSSES: Final = ("cost", "loss")
"""Names of the loss of a training step, as curves and errors have them."""

DIVERGED = "diverged"
RECOVERED = "recovered"


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """A divergence; the fields are those of the event ``divergence``, and ``text`` says it in a sentence.

    The sentence is such as ``Diverged: the loss became NaN at step 4, learning rate 1000.`` or
    ``Diverged: the validation loss rose to 948 at epoch 9 (best 1.21 at epoch 8), learning rate 0.5.``
    """

    tag: str
    value: float | None
    step: int
    epoch: int
    best: float | None
    best_step: int
    best_epoch: int
    noticed_step: int
    non_finite: str = ""
    learning_rate: float | None = None
    text: str = ""

    def __post_init__(self) -> None:
        loss = "loss" if self.tag in TRAINING_LOSSES else metric_title(self.tag)
        if self.value is None:
            change = f"became {self.non_finite or 'NaN or infinite'} at step {as_number(self.step)}"
        else:
            best = "" if self.best is None else f" (best {self.best:.4g} at epoch {self.best_epoch})"
            change = f"rose to {as_number(self.value)} at epoch {self.epoch}{best}"
        rate = "" if self.learning_rate is None else f", learning rate {rate_text(self.learning_rate)}"
        object.__setattr__(self, "text", f"Diverged: the {loss} {change}{rate}.")


def rate_text(rate: float) -> str:
    """Return a learning rate as people type it: ``1000``, ``0.01``, ``1e-5``."""
    return as_number(rate).replace(",", "")


def divergence_of_error(error: Mapping[str, Any], time_s: float, epoch: int) -> DivergenceNoticed | None:
    """Return the divergence that an error tells of; None unless a loss of the training was not finite.

    Args:
        error: as JSON values, as the event ``error`` has it.
        time_s: of the error, in seconds since 1970.
        epoch: of the error, for errors of earlier releases, which do not say it.
    """
    details = error.get("details")
    if error.get("error") != NonFiniteError.code or not isinstance(details, Mapping):
        return None
    tag, step, rate = details.get("tag"), details.get("step"), details.get("learning_rate")
    if tag not in TRAINING_LOSSES or type(step) is not int:
        return None
    known, kind = details.get("epoch"), details.get("non_finite")
    return DivergenceNoticed(
        time=time_s,
        state=DIVERGED,
        tag=tag,
        non_finite=kind if isinstance(kind, str) else "",
        learning_rate=rate if isinstance(rate, float) else None,
        step=step,
        epoch=known if type(known) is int else epoch,
        noticed_step=step,
    )


def divergence_after(event: DivergenceNoticed) -> Divergence | None:
    """Return what holds after an event; None where it says that the run recovered."""
    if event.state != DIVERGED:
        return None
    return Divergence(
        tag=event.tag,
        value=event.value,
        step=event.step,
        epoch=event.epoch,
        best=event.best,
        best_step=event.best_step,
        best_epoch=event.best_epoch,
        noticed_step=event.noticed_step,
        non_finite=event.non_finite,
        learning_rate=event.learning_rate,
    )


JOB_KINDS: Final = ("dataset", "train", "evaluate", "infer", "export", "program", "embed")
RUN_KINDS: Final = ("train", "program")
"""Kinds of jobs with steps, curves and checkpoints of their own."""
JOB_STATES: Final = ("queued", "running", "stopping", "done", "failed", "stopped")
ACTIVE_STATES: Final = ("running", "stopping")
ENDED_STATES: Final = ("done", "failed", "stopped")
JOB_OUTCOMES: Final = (*ENDED_STATES, DIVERGED)


def outcome_of(state: str, divergence: Divergence | None) -> str:
    """Return how a job ended: ``diverged`` where it did, else its state; empty while it has not ended."""
    if state not in ENDED_STATES:
        return ""
    return state if divergence is None else DIVERGED


INTERVENTION: Final = "intervention"
"""Level of a message that says what a person changed in a running training."""


@dataclass(frozen=True, kw_only=True)
class ScalarSummary:
    """What a curve came to.

    Args:
        tag: name of the curve.
        last: newest value.
        minimum: smallest value that was no NaN.
        maximum: largest value that was no NaN.
        count: number of points.
        last_step: step of the newest value.
    """

    tag: str
    last: float
    minimum: float
    maximum: float
    count: int
    last_step: int


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job.

    Args:
        id: ``YYYYMMDD-HHMMSS-xxxxxxxx`` (8 hexadecimal digits; 4 in release 0.1), also the name of its folder.
        kind: a name in ``JOB_KINDS``.
        name: what people call it.
        state: a name in ``JOB_STATES``.
        folder: absolute path.
        spec: what was asked, as JSON values.
        project: name of its project; empty for none.
        owner: name of the user who made it; empty where there was none.
        group: id of the sweep that it belongs to; empty for none.
        parent: id of the job that it is a clone of; empty for none.
        depends_on: ids of the jobs that must be done first, such as a dataset.
        needs: of the machine.
        priority: higher is sooner; 0 is usual.
        position: place in the queue among jobs of the same priority; smaller is sooner.
        devices: indices of the accelerators that it has or had on its first node.
        placement: its shares of nodes; empty before the first attempt and for jobs of earlier releases, which ran on
            the studio's own machine.
        reason: why it waits or ended, one sentence.
        paused: whether a stop was meant as a pause.
        framework: backend that trains; empty for other kinds.
        network: name or file of the network; empty for other kinds.
        created: seconds since 1970.
        started: of the newest attempt; None before the first.
        ended: of the newest attempt; None while it is under way.
        attempt: number of the newest attempt; 0 before the first.
        epoch: epoch that it is in.
        max_epoch: epochs that it has.
        global_step: steps done (of a dataset: samples).
        total_steps: steps that it has; 0 while unknown.
        stage: what is done at the moment, where a job has stages.
        remaining_s: estimated time left; None while unknown.
        steps_per_s: recent rate.
        data_wait_share: share of the step time spent waiting for data.
        health: of the worker: ``alive``, ``hung``, ``silent``, ``lost`` or empty.
        exit_code: of the newest attempt, once it ended.
        error: that ended the newest attempt, as JSON values.
        pid: process of the worker, None where there is none.
        host: machine of the worker.
        worker: of the newest attempt, as its executor finds it again; None before the first, and for jobs of earlier
            releases.
        events_offset: bytes of ``events.jsonl`` that are in the store.
        notes: free text.
        tags: words that people gave it.
        divergence: of a training that diverged, where and how; None where it did not, or recovered.
        outcome: how it ended, a name in ``JOB_OUTCOMES``: ``diverged`` where it did, whatever its state is, else the
            state; empty while it has not ended.
        scalars: tag → what its curve came to.
        baselines: of a single job that was asked for, if it is a finished training: its result beside that of simple
            models, in one line; else empty.
        next_step: of a single job that was asked for, if it is a training or an evaluation that ended: what to do next;
            else None.
    """

    id: str
    kind: str
    name: str
    state: str
    folder: str
    spec: Mapping[str, Any]
    project: str = ""
    owner: str = ""
    group: str = ""
    parent: str = ""
    depends_on: tuple[str, ...] = ()
    needs: ResourceRequest = field(default_factory=ResourceRequest)
    priority: int = 0
    position: float = 0.0
    devices: tuple[int, ...] = ()
    placement: tuple[Share, ...] = ()
    reason: str = ""
    paused: bool = False
    framework: str = ""
    network: str = ""
    created: float = 0.0
    started: float | None = None
    ended: float | None = None
    attempt: int = 0
    epoch: int = 0
    max_epoch: int = 0
    global_step: int = 0
    total_steps: int = 0
    stage: str = ""
    remaining_s: float | None = None
    steps_per_s: float | None = None
    data_wait_share: float | None = None
    health: str = ""
    exit_code: int | None = None
    error: Mapping[str, Any] | None = None
    pid: int | None = None
    host: str = ""
    worker: WorkerRef | None = None
    events_offset: int = 0
    notes: str = ""
    tags: tuple[str, ...] = ()
    divergence: Divergence | None = None
    outcome: str = ""
    scalars: Mapping[str, ScalarSummary] = field(default_factory=dict)
    baselines: str = ""
    next_step: NextStep | None = None

    @property
    def is_active(self) -> bool:
        """Whether a worker is at it."""
        return self.state in ACTIVE_STATES


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A job that is to be put into the store; see ``Job``."""

    id: str
    kind: str
    name: str
    folder: str
    spec: Mapping[str, Any]
    project: str = ""
    owner: str = ""
    group: str = ""
    parent: str = ""
    depends_on: tuple[str, ...] = ()
    needs: ResourceRequest = field(default_factory=ResourceRequest)
    priority: int = 0
    framework: str = ""
    network: str = ""
    created: float = 0.0
    tags: tuple[str, ...] = ()
    notes: str = ""


@dataclass(frozen=True, kw_only=True)
class JobChange:
    """What a person may change of a job; None leaves it."""

    name: str | None = None
    notes: str | None = None
    project: str | None = None
    priority: int | None = None
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Layout of a list of jobs.

    Args:
        pinned: active jobs and this number of queued ones come first; 0 for the plain order.
        one_per_sweep: a sweep is one entry, its first job.
        sweeps_only: only jobs of sweeps.
        best_per_dataset: only the best training of each dataset.
    """

    pinned: int = 0
    one_per_sweep: bool = False
    sweeps_only: bool = False
    best_per_dataset: bool = False


@dataclass(frozen=True, kw_only=True)
class SweepSummary:
    """Summary of the jobs of a sweep.

    Args:
        group: id of the sweep.
        states: state → number of jobs, without zeros.
        best_id: id of the best job by the most common primary metric; empty if there is none yet.
        rates: number of different learning rates.
        newest_end: when the last job ended, in seconds since 1970; None until all have ended.
        first_start: when the first job started; None before.
        diverged: number of jobs whose outcome is ``diverged``, whatever their state.
    """

    group: str
    states: Mapping[str, int]
    best_id: str = ""
    rates: int = 0
    newest_end: float | None = None
    first_start: float | None = None
    diverged: int = 0

    @property
    def total(self) -> int:
        """Jobs of the sweep."""
        return sum(self.states.values())


@dataclass(frozen=True, kw_only=True)
class JobTotals:
    """Numbers of jobs.

    Args:
        states: state → number of jobs, for all states.
        kinds: kind → number of jobs, without zeros.
        sweeps: number of sweeps of trainings.
        failed: number of trainings that failed within the given time.
    """

    states: Mapping[str, int]
    kinds: Mapping[str, int]
    sweeps: int = 0
    failed: int = 0


@dataclass(frozen=True, kw_only=True)
class JobFilter:
    """Which jobs.

    Args:
        kinds: of these kinds; empty for all.
        states: in these states; empty for all.
        project: of this project; None for all.
        text: with this in name, id, notes, network or tags.
        words: with each of these words in the same texts.
        tag: with this tag.
        group: of this sweep.
        owner: of this user.
        conditions: all of them hold: (name of a spec's field or of a curve, one of < <= = != >= > ~, value), as in
            ``("learning_rate", ">", 0.01)``, ``("validation_accuracy", ">", 0.98)``, ``("name", "~", "lenet")`` for a
            part of a text; a tuple of values stands for any of them, with ``!=`` for none of them.
        group_by: ``project`` or ``group``: jobs of the same one stand together, those without one last; empty for none.
        sort: ``created``, ``name``, ``state``, ``elapsed``, ``priority``, a spec's field or a curve.
        descending: whether large values come first; jobs without a value always come last.
        offset: how many to leave out first.
        limit: how many to return at most.
        listing: which jobs come first, and which represent others.
    """

    kinds: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    project: str | None = None
    text: str = ""
    words: tuple[str, ...] = ()
    tag: str = ""
    group: str = ""
    owner: str = ""
    conditions: tuple[tuple[str, str, Any], ...] = ()
    group_by: str = ""
    sort: str = "created"
    descending: bool = True
    offset: int = 0
    limit: int = 50
    listing: Listing = Listing()


@dataclass(frozen=True, kw_only=True)
class JobPage:
    """Some of the jobs that a filter leaves.

    Args:
        total: jobs that it leaves.
        jobs: of the page.
    """

    total: int
    jobs: tuple[Job, ...]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One execution of a job.

    Args:
        number: from 1.
        started: seconds since 1970.
        ended: seconds since 1970; None while it is under way, or where it was lost.
        outcome: ``done``, ``stopped``, ``failed``, ``lost`` or empty.
        exit_code: None while there is none.
        reason: one sentence.
        pid: process.
        host: machine.
        first_step: step that it went on from.
        last_step: step that it reached.
        arithmetic: what decides the last bits of its numbers, beside that of its checkpoint; None if not recorded.
    """

    number: int
    started: float
    ended: float | None = None
    outcome: str = ""
    exit_code: int | None = None
    reason: str = ""
    pid: int | None = None
    host: str = ""
    first_step: int = 0
    last_step: int = 0
    arithmetic: AttemptArithmetic | None = None


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint of a job.

    Args:
        name: of its folder.
        step: that it holds.
        epoch: that it holds.
        reason: why it was made.
        size_bytes: on disk.
        created: seconds since 1970.
        scalars: newest value of each tag at that moment.
        best_by: of the best one, the metric and value that decided; empty for the others.
    """

    name: str
    step: int
    epoch: int
    reason: str = ""
    size_bytes: int = 0
    created: float = 0.0
    scalars: Mapping[str, float] = field(default_factory=dict)
    best_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A moment of a training that explains its curves.

    Args:
        kind: ``intervention`` (a hyperparameter was set by hand), ``attempt`` or ``divergence``.
        step: ``global_step`` of the moment.
        text: what happened, one sentence.
        time: seconds since 1970; None if unknown.
    """

    kind: str
    step: int
    text: str
    time: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Points of a curve, in the order of their steps.

    Args:
        tag: its name.
        steps: (N,) int64.
        values: (N,) float64; NaN and infinities are kept.
        epochs: (N,) int32.
        times: (N,) float64, seconds since 1970.
        total: points that there are; N is smaller where the curve was thinned.
    """

    tag: str
    steps: np.ndarray
    values: np.ndarray
    epochs: np.ndarray
    times: np.ndarray
    total: int
