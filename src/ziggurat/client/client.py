"""Python client of a studio: jobs, previews of jobs, and access to datasets, models and evaluations."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

from ziggurat.client.connection import Connection, given, notices
from ziggurat.client.datasets import DatasetClient
from ziggurat.client.models import EvaluationClient, ModelClient
from ziggurat.client.programs import ProgramClient
from ziggurat.client.weights import WeightsClient
from ziggurat.errors import JobError
from ziggurat.operations import find_operation
from ziggurat.settings import load_settings

__all__ = [
    "Client",
]


_ENDED: Final = ("done", "failed", "stopped")
_PAGE: Final = 200
"""Jobs that one request returns at most, where many are asked for."""

_USUAL_URL: Final = "http://127.0.0.1:5000"


class Client:
    """A studio, asked from a program; use it in a ``with`` statement, or close it.

    Answers are JSON values, as the reference of the REST API says. Every method raises the errors of
    ``ziggurat.errors`` that the studio raised; ``details["status"]`` has the status of HTTP.

    Args:
        url: address of the studio, as ``ziggurat up`` prints it; else that of ``ZIGGURAT_SERVER`` or the settings
            file, or else ``http://127.0.0.1:5000``.
        token: secret of a token; empty for a studio on this machine without accounts. Where it is not given, it is
            that of ``ZIGGURAT_TOKEN`` or the settings file, which is never sent to another studio than theirs.
        timeout_s: how long the studio may be silent.

    Attributes:
        datasets: datasets, and uploads for them.
        models: networks and trained models.
        evaluations: models on whole splits and on many images.
        programs: programs that are submitted.
        weights: pretrained weights.
        previews: what is shown before a job is made.
        saved: views, presets and drafts of the user.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout_s: float = 600.0) -> None:
        self._connection = Connection(*_chosen(url, token), timeout_s)
        self.datasets = DatasetClient(self._connection)
        self.models = ModelClient(self._connection)
        self.evaluations = EvaluationClient(self._connection)
        self.programs = ProgramClient(self._connection)
        self.weights = WeightsClient(self._connection)
        self.previews = PreviewClient(self._connection)
        self.saved = SavedItemClient(self._connection)

    @property
    def url(self) -> str:
        """Address of the studio."""
        return self._connection.url

    def close(self) -> None:
        """Close the connection; closing twice does nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def call(self, operation: str, /, **fields: Any) -> Any:
        """Do an operation by its name, also one that has no method of its own here.

        Args:
            operation: such as ``project.rename``; the reference page on operations lists them.
            fields: of its path, its query and its body, as the reference of the REST API says.

        Returns:
            The answer; None if it has no content.

        Raises:
            UnknownNameError: if there is no such operation.
            UsageError: if a field of the path is missing, or the answer is a file.
        """
        found = find_operation(operation)
        path, query, body = found.request(fields)
        options = {} if found.method == "DELETE" else {"json": body}
        return self._connection.ask(found.method, path, params=query, **options)

    # ---- looking

    def jobs(self, **chosen: Any) -> Iterator[dict[str, Any]]:
        """Yield all jobs that a filter leaves, page by page.

        Args:
            chosen: ``kind``, ``state`` (one or several), ``project``, ``text``, ``tag``, ``group``, ``owner``,
                ``where`` (conditions such as ``learning_rate > 0.01``), ``sort`` (such as ``-created``).
        """
        yield from self._pages("/jobs", given(chosen))

    def job(self, job_id: str) -> dict[str, Any]:
        """Return a job."""
        return self._connection.ask("GET", f"/jobs/{job_id}")

    def page_url(self, job_id: str) -> str:
        """Return the address of a job's page."""
        return f"{self._connection.url}/jobs/{job_id}"

    def queue(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the jobs that wait, so many at most, the next one first; ``reason`` says why."""
        size = {} if limit is None else {"limit": min(limit, _PAGE)}
        return list(islice(self._pages("/queue", size), limit))

    def _pages(self, path: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the jobs of a list, page by page."""
        offset = 0
        while True:
            page = self._connection.ask("GET", path, params={"limit": _PAGE, **params, "offset": offset})
            yield from page["jobs"]
            offset += len(page["jobs"])
            if not page["jobs"] or offset >= page["total"]:
                return

    def log(self, job_id: str, *, whole: bool = False) -> str:
        """Return the end of the worker's log, or all of it."""
        place = f"/jobs/{job_id}/log"
        part = self._connection.ask("GET", place)
        texts = [part["text"]]
        while whole and part["start"]:
            part = self._connection.ask("GET", place, params={"before": part["start"], "at_most_bytes": 1 << 20})
            texts.append(part["text"])
        return "".join(reversed(texts))

    def messages(self, job_id: str) -> list[dict[str, Any]]:
        """Return what the worker said to people."""
        return self._connection.ask("GET", f"/jobs/{job_id}/messages")["messages"]

    def attempts(self, job_id: str) -> list[dict[str, Any]]:
        """Return the attempts of a job, the oldest first."""
        return self._connection.ask("GET", f"/jobs/{job_id}/attempts")

    def checkpoints(self, job_id: str) -> list[dict[str, Any]]:
        """Return the checkpoints of a job, the oldest step first."""
        return self._connection.ask("GET", f"/jobs/{job_id}/checkpoints")

    def curves(
        self,
        job_id: str,
        tags: Sequence[str] = (),
        *,
        since_step: int = -1,
        max_points: int = 2000,
        digits: int | None = None,
    ) -> dict[str, dict[str, list[float]]]:
        """Return tag → ``steps``, ``values``, ``epochs`` and ``times`` of curves; all where no tag is given.

        NaN and infinities are floats here. With ``digits``, values have so many significant ones, and the answer is
        shorter.
        """
        params: dict[str, Any] = {"tag": list(tags), "since_step": since_step, "max_points": max_points}
        if digits is not None:
            params["digits"] = digits
        found = self._connection.ask("GET", f"/jobs/{job_id}/curves", params=params)
        return {each["tag"]: {**each, "values": [float(value) for value in each["values"]]} for each in found}

    def machine_load(self, job_id: str) -> dict[str, Any]:
        """Return the load of the machine while a training ran: ``machine``, ``times``, ``steps`` and ``curves``."""
        return self._connection.ask("GET", f"/jobs/{job_id}/machine-load")

    def sample_predictions(self, job_id: str) -> dict[str, Any]:
        """Return the predictions for a few validation samples after each validation: ``samples`` and ``records``."""
        return self._connection.ask("GET", f"/jobs/{job_id}/sample-predictions")

    def last_batches(self, job_id: str) -> dict[str, Any]:
        """Return the last ``steps`` before a loss became NaN or infinite, and the ``rows`` of the last batch."""
        return self._connection.ask("GET", f"/jobs/{job_id}/last-batches")

    def timeline(self, job_id: str) -> list[dict[str, Any]]:
        """Return the events of a training, the oldest first; those with a number are the flags on the charts."""
        return self._connection.ask("GET", f"/jobs/{job_id}/timeline")

    def early_stopping(self, job_id: str) -> dict[str, Any] | None:
        """Return the state of early stopping of a training; None if it is off."""
        return self._connection.ask("GET", f"/jobs/{job_id}/early-stopping")

    def compare(self, *job_ids: str) -> dict[str, Any]:
        """Return where the specs of jobs differ, and what their curves came to."""
        return self._connection.ask("GET", "/compare", params={"job": job_ids})

    # ---- doing

    def train(self, spec: Mapping[str, Any], **request: Any) -> list[dict[str, Any]]:
        """Put a training, or a sweep of several, into the queue; return the jobs.

        Args:
            spec: of a training, such as ``{"network": "lenet", "backend": "tensorflow"}``.
            request: ``sweep``, ``dataset``, ``model``, ``checkpoint``, ``project``, ``tags``, ``notes``, ``priority``.
        """
        whole = {"kind": "train", "version": 1, **spec}
        return self._connection.ask("POST", "/trainings", json={"spec": whole, **given(request)})["jobs"]

    def request_of(self, job_id: str) -> dict[str, Any]:
        """Return what would make a job again, to be changed and given to ``train``."""
        return self._connection.ask("GET", f"/jobs/{job_id}/request")

    def change(self, job_id: str, **changes: Any) -> dict[str, Any]:
        """Change ``name``, ``notes``, ``project``, ``tags`` or ``priority`` of a job."""
        return self._connection.ask("PATCH", f"/jobs/{job_id}", json=given(changes))

    def stop(self, job_id: str, *, now: bool = False) -> dict[str, Any]:
        """Ask the worker to save and end, or take the job out of the queue; with ``now``, kill the worker."""
        return self._connection.ask("POST", f"/jobs/{job_id}/stop", params={"now": True} if now else {})

    def pause(self, job_id: str) -> dict[str, Any]:
        """Save, and free the device; ``resume`` goes on with the same state and data."""
        return self._connection.ask("POST", f"/jobs/{job_id}/pause")

    def resume(self, job_id: str) -> dict[str, Any]:
        """Put a job that was stopped, paused or failed back into the queue."""
        return self._connection.ask("POST", f"/jobs/{job_id}/resume")

    def retry(self, job_id: str) -> dict[str, Any]:
        """Put a job that failed back into the queue."""
        return self._connection.ask("POST", f"/jobs/{job_id}/retry")

    def delete(self, job_id: str, *, force: bool = False, forever: bool = False) -> None:
        """Delete a job, which can be restored for some days.

        Args:
            job_id: id or name of the job.
            force: end it first where it runs.
            forever: remove its folder from the disk at once; also of one that is deleted already.
        """
        self._connection.ask("DELETE", f"/jobs/{job_id}", params={"force": force, "forever": forever})

    def restore(self, job_id: str) -> dict[str, Any]:
        """Put a deleted job, named by id or name, back as it was, and return it."""
        return self._connection.ask("POST", f"/trash/{job_id}/restore")

    def trash(self) -> list[dict[str, Any]]:
        """Return what can be restored, the newest first: ``id``, ``kind``, ``name``, ``deleted``, ``size_bytes``.

        Besides kinds of jobs there are ``weights`` (restored by ``weights.restore``), ``upload``
        (``datasets.restore_upload``), ``view`` and ``preset`` (``saved.restore``).
        """
        return self._connection.ask("GET", "/trash")

    def empty_trash(self) -> list[str]:
        """Remove everything that was deleted from the disk now; return the ids. Views of others stay."""
        return self._connection.ask("DELETE", "/trash")

    def reorder(self, job_id: str, before: str | None = None) -> list[dict[str, Any]]:
        """Place a job of the queue before another one, or last; return the beginning of the queue."""
        return self._connection.ask("POST", f"/jobs/{job_id}/reorder", json={"before": before})["jobs"]

    def remove_checkpoint(self, job_id: str, name: str) -> None:
        """Remove a checkpoint of a job that is not running."""
        self._connection.ask("DELETE", f"/jobs/{job_id}/checkpoints/{name}")

    def marks(self, job_id: str) -> list[dict[str, Any]]:
        """Return the moments that explain a job's curves: interventions, new attempts, a divergence."""
        return self._connection.ask("GET", f"/jobs/{job_id}/marks")

    def set_hyperparameter(self, job_id: str, name: str, value: float, *, force: bool = False) -> dict[str, Any]:
        """Set a hyperparameter of a running training; it holds until another value is set, or it is unset.

        A learning rate of more than ten times the present one needs ``force``.
        """
        asked = {"name": name, "value": value, "force": force}
        return self._connection.ask("POST", f"/jobs/{job_id}/hyperparameters", json=asked)

    def unset_hyperparameter(self, job_id: str, name: str) -> dict[str, Any]:
        """Give a hyperparameter of a running training that was set by hand back to its schedule."""
        return self._connection.ask("DELETE", f"/jobs/{job_id}/hyperparameters/{name}")

    def act(self, action: str, *, ids: Sequence[str] | None = None, **body: Any) -> list[dict[str, Any]]:
        """Do the same with many jobs, by ``ids`` or ``filter``; return ``id``, ``done`` and ``error`` of each."""
        content = {"action": action, "ids": None if ids is None else list(ids), **body}
        return self._connection.ask("POST", "/jobs/actions", json=given(content))["results"]

    def download(self, job_id: str, target: Path, *, checkpoint: str = "") -> Path:
        """Write an archive of a job's files to ``target``, whose name says the kind: .tar, .tar.gz, .tar.bz2, .zip."""
        kind = next((each for each in ("tar.gz", "tar.bz2", "tar") if target.name.endswith(f".{each}")), "zip")
        params = {"format": kind, "checkpoint": checkpoint}
        return self._connection.save("GET", f"/jobs/{job_id}/download", target, params=params)

    # ---- waiting

    def follow(self, job_id: str) -> Iterator[dict[str, Any]]:
        """Yield a job as it is now, and again whenever it has news, until it has ended.

        A connection that breaks is made again. What a job in the queue waits for is in its ``reason``.
        """
        job_id = self.job(job_id)["id"]  # notices have no names
        for notice in notices(self._connection, [f"job:{job_id}", "jobs"]):
            if notice.kind != "reload" and notice.id != job_id:
                continue
            job = self.job(job_id)
            yield job
            if job["state"] in _ENDED:
                return

    def wait(self, job_id: str, *, timeout_s: float | None = None, every_s: float = 1.0) -> dict[str, Any]:
        """Return a job when it is done.

        Args:
            job_id: of the job.
            timeout_s: how long to wait at most; None for as long as it takes.
            every_s: seconds between looks.

        Raises:
            JobError: where it failed, was stopped, or is not done in time; ``details["job"]`` has it.
        """
        last = None if timeout_s is None else time.monotonic() + timeout_s
        while (job := self.job(job_id))["state"] not in _ENDED:
            if last is not None and time.monotonic() >= last:
                raise _not_done(job, f"still {job['state']} after {timeout_s:g} s")
            time.sleep(every_s)
        if job["state"] != "done":
            raise _not_done(job, f"{job['state']}: {job['reason'] or 'no reason is known'}")
        return job

    # ---- the studio

    def projects(self) -> list[dict[str, Any]]:
        """Return all projects by name, each with how many jobs it has."""
        return self._connection.ask("GET", "/projects")

    def paths(self, query: str = "") -> list[str]:
        """Return what a path of the studio's machine that is being typed may become."""
        return self._connection.ask("GET", "/paths", params={"query": query})["suggestions"]

    def machine(self) -> dict[str, Any]:
        """Return what the machine has, and the jobs that run and wait."""
        return self._connection.ask("GET", "/machine")

    def version(self) -> dict[str, str]:
        """Return the versions of Ziggurat and of Python over there."""
        return self._connection.ask("GET", "/version")


def _chosen(url: str | None, token: str | None) -> tuple[str, str]:
    """Return address and secret; what is not given comes from the settings."""
    if url is not None and token is not None:
        return url, token
    settings = load_settings()
    address = url if url is not None else settings.server or _USUAL_URL
    return address, settings.token_for(address) if token is None else token


def _not_done(job: Mapping[str, Any], state: str) -> JobError:
    said = state if state.startswith("failed") else f"is {state}"
    return JobError(f"{job['name'] or job['id']} ({job['id']}) {said.rstrip('.')}.", details={"job": job})


_TEST_BATCH_S: Final = 300.0
_ANSWER_S: Final = 30.0
"""Time limit of a test batch where none is given, and how much longer its answer may take."""


class PreviewClient:
    """Looks at trainings and datasets that do not exist yet.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rate_curve(
        self, spec: Mapping[str, Any], *, points: int = 300, steps_per_epoch: int | None = None
    ) -> dict[str, Any]:
        """Return the learning rate over a training: ``epochs``, ``rates``, ``sentence``."""
        body = {"spec": dict(spec), "points": points, **given({"steps_per_epoch": steps_per_epoch})}
        return self._connection.ask("POST", "/trainings/rate-curve", json=body)

    def augmented(self, dataset: str, spec: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """Return images as the network will get them; options: ``row``, ``split``, ``count``, ``seed``."""
        body = {"dataset": dataset, "spec": dict(spec), **given(options)}
        return self._connection.ask("POST", "/trainings/augmented", json=body)

    def preflight(self, spec: Mapping[str, Any], *, describe: bool = True, **request: Any) -> dict[str, Any]:
        """Return what a training will take: ``findings``, ``steps``, ``steps_per_epoch``, ``parameters``.

        Args:
            spec: of the training.
            describe: whether the data is measured and the network built; takes seconds.
            request: as for ``Client.train``.
        """
        body = {"spec": _whole(spec), "describe": describe, **given(request)}
        return self._connection.ask("POST", "/trainings/preflight", json=body)

    def test_batch(self, spec: Mapping[str, Any], **request: Any) -> dict[str, Any]:
        """Train some steps in a separate process; return the measurements.

        These are ``total_s``, ``epoch_s``, ``memory_bytes``, ``largest_batch``, ``rate`` and more.

        Args:
            spec: of the training.
            request: as for ``Client.train``; also ``find_rate`` (default true), ``ticket`` (by which
                ``cancel_test_batch`` ends it) and ``time_limit_s``.
        """
        body = {"spec": _whole(spec), **given(request)}
        limit_s = float(request.get("time_limit_s") or _TEST_BATCH_S)
        return self._connection.ask("POST", "/trainings/test-batch", json=body, timeout=limit_s + _ANSWER_S)

    def cancel_test_batch(self, ticket: str) -> None:
        """Cancel a running test batch; its request is answered with an error."""
        self._connection.ask("DELETE", f"/trainings/test-batch/{ticket}")

    def recipe(self, dataset: str = "digits", *, network: str | None = None) -> dict[str, Any] | None:
        """Return the recommended recipe of a dataset: ``network``, ``fields``, ``summary``, ``reason``, or None.

        Args:
            dataset: its id, or ``digits``.
            network: that is chosen already, as ``framework/name``, ``framework/`` or ``name``; empty for a file.
        """
        return self._connection.ask("GET", f"/datasets/{dataset}/recipe", params=given({"network": network}))

    def networks(self, dataset: str = "digits", *, batch_size: int = 64) -> list[dict[str, Any]]:
        """Return the standard networks with their memory and time on a dataset, the recommended one first."""
        return self._connection.ask("GET", f"/datasets/{dataset}/networks", params={"batch_size": batch_size})

    def text(self, spec: Mapping[str, Any], **request: Any) -> dict[str, str]:
        """Return a training in other words: ``cli``, ``json``, ``python``; arguments as for ``Client.train``."""
        return self._connection.ask("POST", "/trainings/text", json={"spec": _whole(spec), **given(request)})

    def dataset(self, spec: Mapping[str, Any], **limits: Any) -> dict[str, Any]:
        """Return what is in a source, boxes and masks too; limits: ``samples``, ``time_limit_s``."""
        return self._connection.ask("POST", "/datasets/preview", json={"spec": dict(spec), **given(limits)})


def _whole(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "train", "version": 1, **spec}


class SavedItemClient:
    """Saved items of the user: ``view``, ``preset`` and ``draft`` are their kinds.

    Args:
        connection: to the studio.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Return the items of a kind by name: ``name``, ``content``, ``changed``, …"""
        return self._connection.ask("GET", f"/saved/{kind}")

    def put(self, kind: str, name: str, content: Any) -> dict[str, Any]:
        """Save any JSON value under a name; an item of that kind and name is replaced."""
        return self._connection.ask("PUT", f"/saved/{kind}/{name}", json={"content": content})

    def delete(self, kind: str, name: str, *, forever: bool = False) -> None:
        """Delete an item; a view or preset can be restored for some days.

        Args:
            kind: of the item.
            name: of the item; with ``forever`` also the name or id of a deleted one.
            forever: whether it cannot be restored.
        """
        self._connection.ask("DELETE", f"/saved/{kind}/{name}", params={"forever": forever})

    def restore(self, kind: str, name: str) -> dict[str, Any]:
        """Put a deleted view or preset, named by name or id, back, and return it."""
        return self._connection.ask("POST", f"/saved/{kind}/{name}/restore")
