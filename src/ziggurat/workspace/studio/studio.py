"""Workspace over the database of a studio, with the parts that need a server."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ziggurat.entities.trash import Trash
from ziggurat.jobs import Supervisor
from ziggurat.services.inference_pool import InferencePool
from ziggurat.services.model_servers import ModelServers
from ziggurat.services.tensorboard import TensorBoards
from ziggurat.settings import Settings
from ziggurat.store import JobOnDisk, Store
from ziggurat.workspace.accounts import Accounts
from ziggurat.workspace.new_jobs import JobMaker
from ziggurat.workspace.signing_keys import SigningKeys
from ziggurat.workspace.studio.box_proposals import BoxProposals, EvaluationProposals, ModelProposals
from ziggurat.workspace.studio.dataset_maps import DatasetMaps
from ziggurat.workspace.studio.datasets import StudioDatasets
from ziggurat.workspace.studio.deleted import Deleted
from ziggurat.workspace.studio.demo import Demo
from ziggurat.workspace.studio.evaluations import Evaluations
from ziggurat.workspace.studio.exports import Exports
from ziggurat.workspace.studio.images import WebPictures
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.machine import Limits, Machine
from ziggurat.workspace.studio.measurements import MEASUREMENTS_FILE, Measurements
from ziggurat.workspace.studio.models import Models, Published
from ziggurat.workspace.studio.network_graphs import GraphCache, NetworkGraphs
from ziggurat.workspace.studio.networks import Networks
from ziggurat.workspace.studio.next_steps import NextSteps
from ziggurat.workspace.studio.notifications import Notifications
from ziggurat.workspace.studio.operating_points import OperatingPoints
from ziggurat.workspace.studio.paths import studio_paths
from ziggurat.workspace.studio.programs import Programs
from ziggurat.workspace.studio.retraining import Retrainings
from ziggurat.workspace.studio.saved_items import SavedItems
from ziggurat.workspace.studio.serving import Serving
from ziggurat.workspace.studio.training import Training
from ziggurat.workspace.studio.uploads import Uploads
from ziggurat.workspace.studio.weights_downloads import WeightsDownloads
from ziggurat.workspace.tasks import Tasks
from ziggurat.workspace.workspace import Workspace

__all__ = ["Studio", "StudioParts"]


@dataclass(frozen=True, kw_only=True)
class StudioParts:
    """What a studio is made of.

    Args:
        store: what is known.
        supervisor: carries out what changes.
        people: who may do it.
        inference: warm processes that predict.
        tensorboards: a TensorBoard for each job that is looked at.
        graphs: of networks that are not trained.
        graph_boards: a TensorBoard for each of those that is looked at.
        servers: of exported models.
        machine: devices, memory, disk.
        read_job: reads the folder of a job that is restored.
        remarks: what people should know of the workspace, one sentence each.
    """

    store: Store
    supervisor: Supervisor
    people: Accounts
    inference: InferencePool
    tensorboards: TensorBoards
    graphs: GraphCache
    graph_boards: TensorBoards
    servers: ModelServers
    machine: Machine
    read_job: Callable[[Path], JobOnDisk]
    remarks: tuple[str, ...] = ()


class Studio(Workspace[Jobs]):
    """Workspace whose jobs are in a database; pages and REST hold it.

    Args:
        settings: of this process.
        parts: what it is made of.
        close: ends the parts; workers go on.
        clock: seconds since 1970.

    Attributes:
        curves: of the jobs, in the store.
        deleted: what can be restored.
        datasets: datasets.
        training: trainings that are asked for.
        networks: that are not trained.
        models: that trainings made.
        graphs: of networks that are not trained, in TensorBoard.
        evaluations: models on whole splits and on many images.
        operating_points: thresholds that predictions of models obey.
        maps: features of the samples of datasets, and where they place them.
        box_proposals: boxes that models find in the images of datasets.
        next_steps: what to do after each result.
        demo: handwritten digits to try it with.
        programs: programs that are submitted.
        retrainings: trainings that are repeated on another version of their dataset.
        exports: trained models in formats of other programs.
        serving: servers of exports, which end with the studio.
        weights_downloads: public weights that are on their way.
        published: models that others start from.
        limits: numbers that an admin chooses.
        people: users, sessions, tokens, and the audit log.
        projects: of the store.
        saved: views, presets and drafts of users.
        notices: news for pages that are open.
        notifications: messages to receivers outside of the studio, such as a webhook.
        paths: that people may name.
        uploads: files that people sent.
        signing_keys: that sign exports.
        web_pictures: images that people name by their address.
        remarks: what people should know of the workspace, as it was when the studio was opened; one sentence each.
    """

    def __init__(
        self,
        settings: Settings,
        parts: StudioParts,
        *,
        close: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        store, supervisor, self._servers = parts.store, parts.supervisor, parts.servers
        root = settings.workspace.expanduser()
        trash = Trash(root)
        self.tensorboards, self.paths = parts.tensorboards, studio_paths(root, store.settings)
        jobs = Jobs(store, supervisor, clock, self._release)
        super().__init__(settings, jobs, offered=lambda: self.paths.roots, clock=clock)
        self._store = store
        self.people = parts.people
        self.deleted = Deleted(store, supervisor, parts.read_job, trash)
        self.projects = store.projects
        self.saved = SavedItems(store, trash, clock)
        self.curves = store.curves
        self.notices = supervisor.hub
        self.machine = parts.machine
        self.remarks = parts.remarks
        self.uploads = Uploads(root / "uploads", clock, trash)
        self.signing_keys = SigningKeys(root)
        self.web_pictures = WebPictures(settings.picture_hosts, is_on=settings.picture_urls)
        self.datasets = StudioDatasets(
            jobs, store, supervisor, Tasks(settings), root / "datasets", clock, lambda: self.paths.roots
        )
        kept = Measurements(root / MEASUREMENTS_FILE, clock)
        self.training = Training(jobs, supervisor, self.tasks, clock, parts.machine, kept, self.weights)
        self.networks = Networks(jobs, self.tasks, kept)
        self.models = Models(jobs, self.tasks, parts.inference, root / "jobs", clock)
        self.graphs = NetworkGraphs(parts.graphs, self.networks.describe, parts.graph_boards)
        maker = JobMaker(root / "jobs", supervisor.submit, clock, lambda: sum(supervisor.accelerators().values()))
        self.evaluations = Evaluations(jobs, maker, self.paths)
        self.operating_points = OperatingPoints(jobs, self.evaluations, clock)
        self.box_proposals = BoxProposals(
            [
                EvaluationProposals(jobs, self.evaluations, self.datasets),
                ModelProposals(jobs, self.models, self.datasets),
            ]
        )
        self.next_steps = NextSteps(jobs, store, self.training, self.evaluations)
        self.demo = Demo(jobs, self.datasets, self.training, parts.machine.frameworks, root / "uploads" / "demo-digits")
        self.maps = DatasetMaps(jobs, self.datasets, self.weights, maker)
        self.programs = Programs(jobs, maker, self.paths)
        self.retrainings = Retrainings(jobs, self.datasets, self.training, self.evaluations)
        self.published = Published(jobs, store.settings, clock)
        jobs.protect(self.published.refuse_deletion)
        self.weights_downloads = WeightsDownloads(self.weights, self.tell_of_weights, clock)
        self.exports = Exports(jobs, self.models.export, self._tell_of_job, clock)
        self.serving = Serving(self.exports, parts.servers, self._tell_of_job)
        self.limits = Limits(store.settings, parts.machine.resources)
        self.notifications = Notifications(
            root, jobs, self.notices, self._disk, webhook_hosts=settings.webhook_hosts, clock=clock
        )
        self._close = close

    def close(self) -> None:
        """End what belongs to this process, and give the workspace up; workers go on. Closing twice does nothing."""
        self.notifications.close()
        self.exports.close()
        self.weights_downloads.close()
        self._close()

    def change_numbers(self) -> tuple[int, int] | None:
        """Return numbers that differ after every change that lists show; None where the database does not tell."""
        stored = self._store.change_number()
        return None if stored is None else (stored, self.notices.number)

    def tell_of_weights(self) -> None:
        """Tell open pages that pretrained weights, or their downloads, have changed."""
        self.notices.publish("weights", "changed")

    def _release(self, job_id: str) -> None:
        """End the processes that use the folder of a job, which is going to be deleted."""
        self.tensorboards.release(job_id)
        self._servers.release(job_id)

    def _disk(self) -> tuple[int, int]:
        disk = self.machine.strip()["disk"]
        return disk["free_bytes"], disk["reserve_bytes"]

    def _tell_of_job(self, job_id: str) -> None:
        self.notices.publish(f"job:{job_id}", "changed", job_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
