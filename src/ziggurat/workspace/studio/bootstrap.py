"""Startup of the studio from its parts, its hourly clean-up, and operations that need no running server."""

from __future__ import annotations

import json
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Self

from ziggurat import __version__
from ziggurat.atomic import storage_errors
from ziggurat.entities import NewJob
from ziggurat.entities.job_history import read_history
from ziggurat.entities.leftovers import remove_leftovers
from ziggurat.entities.trash import Trash
from ziggurat.errors import JobError
from ziggurat.jobs import Executor, ExecutorOptions, Retention, SeveralExecutors, StopGrace, Supervisor
from ziggurat.jobs.executor import worker_fields
from ziggurat.jobs.job_file import JobRecord, StartedAttempt, read_attempt, read_job_file
from ziggurat.jobs.local_executor import LOCAL
from ziggurat.jobs.outcome import last_events
from ziggurat.jobs.worker_monitor import stop_reason
from ziggurat.layout import WEIGHTS_FOLDER, JobFolder
from ziggurat.plugins import load
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool
from ziggurat.services.model_servers import ModelServers
from ziggurat.services.tensorboard import TensorBoards
from ziggurat.settings import FOLDERS_VARIABLE, THREADS_VARIABLE, Settings
from ziggurat.specs import Spec, TrainSpec, load_spec, parse_spec
from ziggurat.store import JobOnDisk, ReindexReport, Store
from ziggurat.workspace.accounts import Accounts
from ziggurat.workspace.frameworks import Frameworks, worker_environment
from ziggurat.workspace.job_folders import JobStatus, job_status, open_job, unlisted_folders, unlisted_remark
from ziggurat.workspace.new_jobs import needs_of, network_name, telling_name
from ziggurat.workspace.passwords import Passwords
from ziggurat.workspace.server_process import ServerState, WorkspaceLock, running_server
from ziggurat.workspace.studio.folder_watch import NEVER_BEGUN, FolderWatch, is_of_shell
from ziggurat.workspace.studio.machine import UPLOADS_KEPT_S, Machine
from ziggurat.workspace.studio.network_graphs import GRAPHS_FOLDER, GraphCache
from ziggurat.workspace.studio.paths import Paths, studio_paths
from ziggurat.workspace.studio.studio import Studio, StudioParts
from ziggurat.workspace.studio.uploads import Uploads
from ziggurat.workspace.worker_process import WORKER_COMMAND
from ziggurat.zoo.weights_folder import WeightsFolder

__all__ = [
    "DATABASE",
    "Janitor",
    "open_paths",
    "open_people",
    "open_studio",
    "reindex",
    "studio_summary",
    "upgrade_database",
]

DATABASE: Final = "studio.db"
"""Name of the database in the workspace, where no other one is chosen."""

_LOGS: Final = "logs"
_LOG: Final = logging.getLogger(__name__)
_WATCHED_EVERY_S: Final = 2.0
_RAY: Final = "ray"


def open_studio(
    settings: Settings,
    *,
    url: str | None = None,
    start: bool = True,
    prefix: str = "",
    worker_command: Sequence[str] = WORKER_COMMAND,
    passwords: Passwords | None = None,
) -> Studio:
    """Put the studio of a workspace together; close it at the end.

    Args:
        settings: of this process; workers get the same, and fetch for others: see ``settings.source_hosts``.
        url: of its database; ``studio.db`` in the workspace where it is not given.
        start: whether jobs are brought forward; without, they are only looked at and asked for.
        prefix: path below which the studio stands, such as ``/ziggurat``.
        worker_command: what starts a worker.
        passwords: what hashes the passwords of its accounts; with the usual cost where it is not given.

    Raises:
        JobError: where another process serves the workspace; the message names it. Where the database belongs to
            another workspace, or a copy of a workspace shares folders with the original.
        StorageError: where workspace or database cannot be read or written, or the schema is newer.
    """
    # From here on files are read and addresses are fetched for others than the person who started this process.
    settings = replace(settings, is_for_others=True)
    root, environment = settings.workspace, worker_environment(settings)
    with ExitStack() as made:
        # First: nothing is touched of a workspace that another process serves.
        made.enter_context(WorkspaceLock(root))
        WeightsFolder(root / WEIGHTS_FOLDER).remove_partial()
        remove_leftovers(Path(tempfile.gettempdir()))
        store = made.enter_context(_open_store(settings, url))
        remarks = _settle(store, root, watched=start)
        machine = _machine(settings, store, environment)
        executor = _executor(
            settings,
            ExecutorOptions(
                command=worker_command,
                environment=environment,
                resources=lambda: machine.resources(store.settings.all()),
                log_limit_bytes=settings.log_limit_mib << 20,
                workspace=root,
                address=settings.ray_address,
                slurm_options=settings.slurm_options,
                cache_gib=settings.cache_gib,
            ),
            made,
        )
        paths = studio_paths(root, store.settings)
        supervisor = _supervisor(settings, store, executor, machine, paths)
        made.callback(supervisor.close)
        # Closed in reverse order: what asks the store ends before it.
        pool = made.enter_context(InferencePool(INFERENCE_COMMAND, environment, logs=_logs(root, "inference")))
        boards = made.enter_context(_boards(store, root, environment, prefix))
        graphs, graph_boards = _graphs(root, environment, prefix, made)
        servers = made.enter_context(ModelServers(environment, _logs(root, "serving")))
        if start:
            graphs.remove_all()  # pages that are open can ask for them again
            made.enter_context(_janitor(supervisor, store, root, graphs))
            watch = FolderWatch(root, store, job_reader(time.time), supervisor.hub, time.time)
            made.enter_context(Janitor((watch.look,), every_s=_WATCHED_EVERY_S))
        parts = StudioParts(
            store=store,
            supervisor=supervisor,
            people=Accounts(store, passwords=passwords),
            inference=pool,
            tensorboards=boards,
            graphs=graphs,
            graph_boards=graph_boards,
            servers=servers,
            machine=machine,
            read_job=job_reader(time.time),
            remarks=remarks,
        )
        studio = Studio(settings, parts, close=made.pop_all().close)
    if start:
        studio.notifications.start()  # first: the supervisor may find at once that jobs have ended
        supervisor.start()
    return studio


def _boards(store: Store, root: Path, environment: Mapping[str, str], prefix: str) -> TensorBoards:
    return TensorBoards(
        lambda job_id: Path(store.jobs.get(job_id).folder),
        environment,
        prefix=prefix + "/jobs/{job_id}/tensorboard",
        logs=_logs(root, "tensorboard"),
    )


def _executor(settings: Settings, options: ExecutorOptions, made: ExitStack) -> Executor:
    """Return what starts workers; what follows a cluster is closed with ``made``."""
    own = load("executors", settings.executor)(options)
    if hasattr(own, "close"):
        made.callback(own.close)
    if not settings.ray_address:
        return own
    ray = load("executors", _RAY)(options)
    made.callback(ray.close)
    return SeveralExecutors({settings.executor: own, _RAY: ray})


def _supervisor(settings: Settings, store: Store, executor: Executor, machine: Machine, paths: Paths) -> Supervisor:
    return Supervisor(
        store,
        executor,
        settings.workspace,
        environment=lambda _job: {
            FOLDERS_VARIABLE: json.dumps(paths.roots),
            THREADS_VARIABLE: str(machine.threads_of_a_job(store.settings.all())),
        },
        grace=StopGrace(stop_s=settings.stop_grace_s, kill_s=settings.kill_grace_s),
        retention=Retention(trash_age_s=settings.trash_days * 86400.0),
    )


def _machine(settings: Settings, store: Store, environment: Mapping[str, str]) -> Machine:
    return Machine(
        settings.workspace,
        settings=store.settings.all,
        disk_reserve_mib=settings.disk_reserve_mib,
        frameworks=Frameworks(environment=environment),
    )


def _settle(store: Store, root: Path, *, watched: bool) -> tuple[str, ...]:
    """Bring the database and its workspace in line, and return what people should know of that.

    Args:
        store: the database.
        root: the workspace.
        watched: whether folders that the shell made are taken in by themselves.
    """
    found = store.settle(root)
    unlisted = [each for each in unlisted_folders(root, store.jobs.ids()) if not (watched and is_of_shell(each))]
    moved = "" if found is None else _relocation_remark(found.before, root, copied=found.copied)
    remarks = tuple(filter(None, (moved, unlisted_remark(unlisted))))
    for remark in remarks:
        _LOG.warning("%s", remark)
    return remarks


def _relocation_remark(before: str, workspace: Path, *, copied: bool) -> str:
    """Return what is said of a workspace that is elsewhere than when it was last opened.

    Args:
        before: where it was.
        workspace: where it is.
        copied: whether a workspace is still there.
    """
    if copied:
        return (
            f"The workspace {workspace} is a copy of {before}, which is still there. "
            "The copy uses its own files; the original is not touched."
        )
    return f"The workspace was moved from {before} to {workspace}; its jobs and datasets are used from there."


def _graphs(
    root: Path, environment: Mapping[str, str], prefix: str, made: ExitStack
) -> tuple[GraphCache, TensorBoards]:
    """Return the graphs of networks that are not trained, and their TensorBoards: of their own, so that looking at
    some networks never ends the TensorBoard of a job.
    """
    graphs = GraphCache(root / GRAPHS_FOLDER, time.time, before_remove=lambda name: boards.release(name))
    address = prefix + "/models/graphs/{job_id}/tensorboard"
    boards = made.enter_context(TensorBoards(graphs.folder, environment, prefix=address, logs=_logs(root, "graphs")))
    return graphs, boards


def _janitor(supervisor: Supervisor, store: Store, root: Path, graphs: GraphCache) -> Janitor:
    uploads = Uploads(root / "uploads", time.time, Trash(root))
    uploads.remove_partial()

    def clear_uploads() -> None:
        uploads.remove_older_than(store.settings.get("uploads_kept_s", UPLOADS_KEPT_S))

    return Janitor((supervisor.tidy, clear_uploads, graphs.remove_old))


class Janitor:
    """Does its rounds until it is closed; what fails is logged and tried again in the next round.

    Args:
        duties: called one after the other; any number of calls does no harm.
        every_s: seconds between two rounds; the first comes after so long.
    """

    def __init__(self, duties: Sequence[Callable[[], Any]], every_s: float = 3600.0) -> None:
        self._duties = tuple(duties)
        self._every_s = every_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="janitor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; closing twice does nothing."""
        self._closing.set()
        self._thread.join(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _work(self) -> None:
        while not self._closing.wait(self._every_s):
            for duty in self._duties:
                try:
                    duty()
                except Exception:
                    _LOG.exception("clearing away failed; it is tried again in %.0f s", self._every_s)


@contextmanager
def open_people(settings: Settings, url: str | None = None) -> Iterator[Accounts]:
    """Give the people of a studio, whether its server runs or not.

    Raises:
        JobError: where a server of another version runs: opening could change the database under it.
        StorageError: where the database cannot be read or written.
    """
    _refuse_other_version(running_server(settings.workspace))
    with _open_store(settings, url) as store:
        yield Accounts(store)


@contextmanager
def open_paths(
    settings: Settings, url: str | None = None, *, must_exist: bool = False
) -> Iterator[tuple[Paths, Accounts]]:
    """Give the allowed folders of a studio and its accounts, whether its server runs or not.

    Args:
        settings: of this process.
        url: of the database; None for that of the workspace.
        must_exist: whether a workspace that never had a studio is refused; else its database is made.

    Raises:
        JobError: where a server of another version runs: opening could change the database under it; or where there
            never was a studio.
        StorageError: where the database cannot be read or written.
    """
    _refuse_other_version(running_server(settings.workspace))
    if must_exist and url is None and not (settings.workspace / DATABASE).is_file():
        raise JobError(
            f"There is no studio in {settings.workspace} yet.",
            advice="Name another workspace by `ziggurat --workspace FOLDER`, or start a studio with `ziggurat up`.",
        )
    with _open_store(settings, url) as store:
        yield studio_paths(settings.workspace, store.settings), Accounts(store)


def reindex(settings: Settings, url: str | None = None, *, clock: Callable[[], float] = time.time) -> ReindexReport:
    """Rebuild what the studio knows of jobs from their folders alone; users, tokens and settings stay.

    Raises:
        JobError: where a server runs in the workspace.
    """
    with WorkspaceLock(settings.workspace), _open_store(settings, url) as store:
        store.settle(settings.workspace, take_over=True)
        return store.reindex(settings.workspace, job_reader(clock))


def job_reader(clock: Callable[[], float]) -> Callable[[Path], JobOnDisk]:
    """Return what reads the folder of a job; it raises a ZigguratError where there is no sound job.

    Args:
        clock: seconds since 1970.
    """
    return lambda folder: _read_job(folder, clock())


def _read_job(folder: Path, now: float) -> JobOnDisk:
    record = read_job_file(folder)
    if not JobFolder(folder).spec.is_file() and (folder / MANIFEST_NAME).is_file():
        return _read_version(folder, record or JobRecord())
    path = open_job(folder).spec
    spec = load_spec(path)
    status = job_status(folder, now)
    state, reason = status.state, status.reason
    if state == "queued" and record is None:
        # It was never queued in a studio: a rebuild must not start to train it.
        state, reason = "stopped", NEVER_BEGUN
    known = record or JobRecord()
    job = _job(folder, spec, known, known.created or path.stat().st_mtime)
    fields = _fields(status, reason)
    attempt = read_attempt(folder)
    if attempt is None:
        return JobOnDisk(job=job, state=state, fields=fields)
    worker, placement = attempt.worker, attempt.placement
    if worker.opaque.get("folder") != job.folder:  # the folder is a copy, and the worker that of the original
        worker = replace(worker, opaque={})
    if worker.opaque and worker.executor != LOCAL and not _has_ended_since(folder, attempt.started):
        # Files of a job on a cluster come later, or lie in its queue: what started it knows.
        state = "running" if stop_reason(JobFolder(folder)) is None else "stopping"
        fields |= {"reason": "", "exit_code": None, "error": None, "started": _started(folder, attempt)}
        fields |= {name: value for name, value in worker_fields(worker).items() if name != "worker"}
    devices = placement[0].devices if placement else ()
    return JobOnDisk(
        job=job, state=state, fields=fields, placed={"worker": worker, "placement": placement, "devices": devices}
    )


def _started(folder: Path, attempt: StartedAttempt) -> float:
    """Return when an attempt began: by its worker, once that has said so."""
    told = read_history(JobFolder(folder).events)[0].started
    return attempt.started if told is None else max(told.time, attempt.started)


def _has_ended_since(folder: Path, started: float) -> bool:
    return last_events(JobFolder(folder), since=started) is not None


def _read_version(folder: Path, record: JobRecord) -> JobOnDisk:
    """Return the job of a version of a dataset, which no worker made: it has no spec and no events of its own."""
    manifest, path = Manifest.load(folder), folder / MANIFEST_NAME
    created = record.created or path.stat().st_mtime
    parent = JobFolder(folder.parent / Path(record.parent).name).spec
    spec: dict[str, Any] = {}
    if manifest.spec:
        spec = parse_spec(manifest.spec, source=str(path), is_stored=True).model_dump(mode="json")
    elif parent.is_file():  # the manifest of merged datasets has no spec; the studio shows that of the first
        spec = load_spec(parent).model_dump(mode="json")
    given = _without_needs(record) | {"created": created, "name": record.name or manifest.name}
    job = NewJob(id=folder.name, kind="dataset", folder=str(folder.absolute()), spec=spec, **given)
    return JobOnDisk(job=job, state="done", fields={"ended": created})


def _job(folder: Path, spec: Spec, record: JobRecord, created: float) -> NewJob:
    said = _without_needs(record) | {"created": created, "name": record.name or spec.name or telling_name(spec)}
    return NewJob(
        id=folder.name,
        kind=spec.kind,
        folder=str(folder.absolute()),
        spec=spec.model_dump(mode="json"),
        needs=record.needs or needs_of(spec),
        framework=spec.backend if isinstance(spec, TrainSpec) else "",
        network=network_name(spec),
        **said,
    )


def _without_needs(record: JobRecord) -> dict[str, Any]:
    return {name: value for name, value in asdict(record).items() if name != "needs"}


def _fields(status: JobStatus, reason: str) -> dict[str, Any]:
    return {
        "reason": reason,
        "exit_code": status.exit_code,
        "error": status.error,
        "pid": status.pid,
        "host": status.host,
        "health": status.health if status.is_active else "",
    }


def studio_summary(settings: Settings, url: str | None = None) -> dict[str, Any]:
    """Return how the studio is, as JSON values: ``server`` (None where none runs), ``jobs`` by state, ``machine``.

    ``unlisted`` has the folders with jobs that are not in the database.

    A studio that was never opened has no jobs; nothing is made here.

    Raises:
        JobError: where a server of another version runs: opening could change the database under it.
        StorageError: where the database cannot be read.
    """
    server = running_server(settings.workspace)
    _refuse_other_version(server)
    counts: dict[str, int] = {}
    known: set[str] = set()
    chosen: dict[str, Any] = {}
    if url is not None or (settings.workspace / DATABASE).is_file():
        with _open_store(settings, url) as store:
            counts, chosen, known = store.jobs.counts(), store.settings.all(), store.jobs.ids()
    return {
        "workspace": str(settings.workspace),
        "server": None if server is None else asdict(server),
        "jobs": {state: count for state, count in counts.items() if count},
        "unlisted": [str(each) for each in unlisted_folders(settings.workspace, known)],
        "machine": Machine(
            settings.workspace, settings=lambda: chosen, disk_reserve_mib=settings.disk_reserve_mib
        ).strip(),
    }


def upgrade_database(settings: Settings, url: str | None = None) -> None:
    """Bring the schema of the studio's database up to date; a person says that it was backed up.

    Raises:
        StorageError: where it cannot be read or written, or its schema is newer.
    """
    with WorkspaceLock(settings.workspace), _open_store(settings, url, backup_made=True):
        pass


def _refuse_other_version(server: ServerState | None) -> None:
    if server is not None and server.version != __version__:
        raise JobError(
            f"The shell is of version {__version__}, and the studio that runs of {server.version}, in "
            f"process {server.pid} on {server.host}.",
            advice="Call `ziggurat down`, then `ziggurat up`; jobs go on meanwhile.",
        )


def _open_store(settings: Settings, url: str | None, *, backup_made: bool = False) -> Store:
    if url is not None:
        return Store.open(url, backup_made=backup_made, workspace=settings.workspace)
    path = settings.workspace / DATABASE
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)  # hashes of passwords are in it; one that is there keeps its rights
    return Store.open(path, workspace=settings.workspace)


def _logs(root: Path, name: str) -> Path:
    folder = root / _LOGS / name
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder
