"""Client of the one-shot processes: each runs alone, within a time limit, and answers in JSON.

A user's code runs there. Whatever it does, this process goes on: it gets a result or a ``ZigguratError``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from ziggurat.entities.leftovers import temporary_folder
from ziggurat.entities.processes import processor_s, start_here
from ziggurat.errors import JobError, MissingDependencyError, NetworkCodeError, error_of_family
from ziggurat.formatting import as_bytes
from ziggurat.layout import PLACE_FILE, workspace_of
from ziggurat.serving.manifest import SIGNATURE_NAME, sign_export
from ziggurat.settings import FOLDERS_VARIABLE, Settings
from ziggurat.workspace.frameworks import worker_environment
from ziggurat.workspace.job_folders import open_job
from ziggurat.workspace.signing_keys import SigningKeys

__all__ = ["TASK_COMMAND", "Tasks", "run_task"]

TASK_COMMAND: Final = (sys.executable, "-m", "ziggurat.worker.commands")
"""Starts a task; its name is added."""

_WATCH_S: Final = 0.1
_ENDS_WITHIN_S: Final = 15.0
_LEAST_SHARE: Final = 0.1
"""Part of its time limit that a loop without an end computes at least; a task with less processor time had to wait."""

_MOST_ANSWER_BYTES: Final = 64 << 20


class Tasks:
    """What a person can do around a training: evaluate, predict, export, describe, debug, use models of others.

    Every method returns the JSON values of its command (see ``ziggurat.worker.commands``), takes ``time_limit_s`` (None
    for no limit), and raises what ``run_task`` raises.

    Args:
        settings: of this process; tasks get the same.
        command: what starts a task.
        offered: returns the folders below which tasks may read files for others; None for all.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        command: Sequence[str] = TASK_COMMAND,
        offered: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        self._environment = worker_environment(settings)
        self._workspace = Path(os.path.abspath(settings.workspace.expanduser()))
        self._command = tuple(command)
        self._offered = offered

    def evaluate(
        self,
        folder: Path,
        *,
        split: str = "val",
        checkpoint: str | None = None,
        time_limit_s: float | None = None,
    ) -> dict[str, Any]:
        """Evaluate a job's network on every sample of a split.

        Args:
            folder: the job folder.
            split: ``val``, ``test`` or ``train``.
            checkpoint: its name, a given name, ``best`` or ``latest``; None for the best, or else the latest.
            time_limit_s: how long it may take.
        """
        request = {"folder": str(open_job(folder).path), "split": split, "checkpoint": checkpoint}
        return self._run("evaluate", request, time_limit_s)

    def predict(
        self,
        folder: Path,
        images: Sequence[str],
        *,
        top: int = 5,
        checkpoint: str | None = None,
        time_limit_s: float | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Predict for image files; those that cannot be read are among the ``failures``.

        Args:
            folder: the job folder.
            images: paths.
            top: how many classes are named.
            checkpoint: as for ``evaluate``.
            time_limit_s: how long it may take.
            options: ``count``, ``seed`` and ``inputs`` of a network that generates; ``pictures``, a folder for
                predictions that are images.
        """
        request = {
            "folder": str(open_job(folder).path),
            "images": list(images),
            "top": top,
            "checkpoint": checkpoint,
            **options,
        }
        return self._run("predict", request, time_limit_s)

    def export(
        self,
        folder: Path,
        export_format: str,
        out: Path | None = None,
        *,
        preprocessing: str = "inside",
        checkpoint: str | None = None,
        time_limit_s: float | None = None,
    ) -> dict[str, Any]:
        """Write a job's network in a format of other programs, with the proof that it gives the same.

        The key of the workspace signs it. ``signed_by`` of the result is the fingerprint of that key; it is empty for a
        job that lies in no workspace, and without the package `cryptography`: then ``unsigned`` says why.

        Args:
            folder: the job folder.
            export_format: such as ``onnx``.
            out: a folder that is not there yet; in the current folder, named after job and format, where it is left
                out.
            preprocessing: ``inside`` the model or ``beside`` it.
            checkpoint: as for ``evaluate``.
            time_limit_s: how long it may take.
        """
        request = {
            "folder": str(open_job(folder).path),
            "format": export_format,
            "out": str(out or f"{folder.resolve().name}-{export_format}"),
            "preprocessing": preprocessing,
            "checkpoint": checkpoint,
        }
        found = self._run("export", request, time_limit_s)
        signed = self._signed(folder, Path(request["out"]))
        files = [SIGNATURE_NAME] if signed["signed_by"] else []
        return {**found, "files": sorted([*found["files"], *files]), **signed}

    def _signed(self, folder: Path, out: Path) -> dict[str, str]:
        """Sign an export here: the process that wrote it runs code of users, and never gets the key."""
        workspace = workspace_of(folder)
        if workspace is None or not self._is_workspace(workspace):
            return {"signed_by": "", "unsigned": "The job lies in no workspace, so there is no key."}
        try:
            return {"signed_by": sign_export(out, SigningKeys(workspace).private())}
        except MissingDependencyError as error:
            return {"signed_by": "", "unsigned": str(error)}

    def _is_workspace(self, folder: Path) -> bool:
        return folder == self._workspace or (folder / PLACE_FILE).is_file()

    def describe(self, network: str, *, time_limit_s: float | None = None, **options: Any) -> dict[str, Any]:
        """Describe a network; options: ``backend``, ``input_shape``, ``task``, ``classes``, ``tensorboard``."""
        return self._run("describe", {"network": network, **options}, time_limit_s)

    def debug(
        self, network: str, *, time_limit_s: float | None = None, output: IO[Any] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Run a network eagerly on one real batch; options: ``backend``, ``data``, ``batch_size``.

        What it prints goes to ``output``, or to standard error.
        """
        return self._run("debug", {"network": network, **options}, time_limit_s, output)

    def inspect_model(self, model: Path, *, time_limit_s: float | None = None, **options: Any) -> dict[str, Any]:
        """List the inputs and outputs of a foreign model; option: ``backend``."""
        return self._run("inspect_model", {"model": str(model), **options}, time_limit_s)

    def predict_with_model(
        self, model: Path, files: Sequence[str], *, time_limit_s: float | None = None, **options: Any
    ) -> dict[str, Any]:
        """Run a foreign model; options: ``backend``, ``input``, ``outputs``, ``scale``, ``feeds``."""
        request = {"model": str(model), "files": list(files), **options}
        return self._run("predict_with_model", request, time_limit_s)

    def video_frames(
        self, file: Path, folder: Path, name: str, most: int, *, time_limit_s: float | None = None
    ) -> dict[str, Any]:
        """Write frames of a video into a folder as JPEG files.

        Args:
            file: the video.
            folder: gets them.
            name: stands for the video in the names of the frames, and in errors.
            most: how many at most.
            time_limit_s: how long it may take.
        """
        request = {"file": str(file), "folder": str(folder), "name": name, "most": most}
        return self._run("video_frames", request, time_limit_s)

    def augmented(
        self, spec: Mapping[str, Any], *, time_limit_s: float | None = None, **options: Any
    ) -> dict[str, Any]:
        """Show images as a training's network gets them; options: ``row``, ``split``, ``count``, ``seed``."""
        return self._run("augmented", {"spec": spec, **options}, time_limit_s)

    def loading(self, spec: Mapping[str, Any], *, time_limit_s: float | None = None) -> dict[str, Any]:
        """Measure the data of a training: its size, and how fast its images can be made ready."""
        return self._run("loading", {"spec": spec}, time_limit_s)

    def test_batch(
        self,
        spec: Mapping[str, Any],
        *,
        time_limit_s: float | None = None,
        watch: Callable[[int], None] | None = None,
        output: IO[Any] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Train some steps of a job and measure them; no files are kept.

        Args:
            spec: of a training, complete.
            time_limit_s: how long it may take.
            watch: as for ``run_task``.
            output: where its messages and the prints of the network go; to standard error where it is not given.
            options: ``find_rate``, ``rate_budget_s`` and ``free_bytes``.
        """
        with temporary_folder("test") as folder:
            request = {"spec": spec, "began": time.time(), "folder": str(folder), **options}
            return self._run("test_batch", request, time_limit_s, output, watch)

    def weights(
        self, action: str, paths: Sequence[Path], *, time_limit_s: float | None = None, **options: Any
    ) -> dict[str, Any]:
        """List, strip, compare or average weights in files.

        Args:
            action: ``list``, ``strip``, ``diff`` or ``average``.
            paths: TensorFlow checkpoints, npz files, checkpoints of Ziggurat or folders of jobs.
            time_limit_s: how long it may take.
            options: ``out``, ``meta`` and ``keep``; see ``ziggurat.worker.commands.weights``.
        """
        return self._run("weights", {"action": action, "paths": [str(path) for path in paths], **options}, time_limit_s)

    def convert_weights(
        self, file: Path, out: Path, *, network: str = "", time_limit_s: float | None = None
    ) -> dict[str, Any]:
        """Write the weights in a file of PyTorch (``.pth``, ``.pt``) as safetensors; its code is not run."""
        return self._run("convert_weights", {"file": str(file), "out": str(out), "network": network}, time_limit_s)

    def preview_dataset(self, request: Mapping[str, Any], *, time_limit_s: float | None = None) -> dict[str, Any]:
        """Look at a source before a dataset is made of it; see ``ziggurat.workspace.previews``."""
        return self._run("preview_dataset", request, time_limit_s)

    def _run(
        self,
        name: str,
        request: Mapping[str, Any],
        time_limit_s: float | None,
        output: IO[Any] | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        return run_task(
            name,
            request,
            time_limit_s=time_limit_s,
            environment=self._environment | self._folders(),
            output=output,
            command=self._command,
            watch=watch,
        )

    def _folders(self) -> dict[str, str]:
        return {} if self._offered is None else {FOLDERS_VARIABLE: json.dumps(list(self._offered()))}


def run_task(
    name: str,
    request: Mapping[str, Any],
    *,
    time_limit_s: float | None = None,
    environment: Mapping[str, str] | None = None,
    output: IO[Any] | None = None,
    command: Sequence[str] = TASK_COMMAND,
    watch: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Perform a task in a process of its own, and end whatever it leaves behind.

    Args:
        name: of the task.
        request: JSON values.
        time_limit_s: how long it may take; None for as long as it likes.
        environment: of the process; that of this one where it is not given.
        output: where its messages and the prints of user code go; to standard error where it is not given.
        command: what starts a task.
        watch: called several times a second with the process id; an error that it raises ends the task.

    Raises:
        ZigguratError: of the family of the task's own error.
        NetworkCodeError: where it took longer, ended without an answer, or with one of more than 64 MiB.
        JobError: where it was killed.
    """
    with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as answer:
        question.write(json.dumps(request).encode())
        question.seek(0)
        pid, shim = start_here(
            [*command, "--end-with", str(os.getpid()), name], environment, answer, question=question, errors=output
        )
        try:
            code = _watched(name, shim, answer, time_limit_s, None if watch is None else lambda: watch(pid))
        except subprocess.TimeoutExpired:
            raise _too_long(name, time_limit_s, processor_s(pid)) from None
        finally:
            _end(pid, shim)
        _check_length(name, answer)
        answer.seek(0)
        return _result(name, code, answer.read())


def _watched(
    name: str,
    process: subprocess.Popen[bytes],
    answer: IO[bytes],
    time_limit_s: float | None,
    watch: Callable[[], None] | None,
) -> int:
    """Wait for a process, and look at its answer and call ``watch`` meanwhile; return the exit code.

    Raises:
        TimeoutExpired: if it takes longer.
        NetworkCodeError: if its answer is too long.
    """
    last = None if time_limit_s is None else time.monotonic() + time_limit_s
    while True:
        left_s = _WATCH_S if last is None else min(_WATCH_S, last - time.monotonic())
        try:
            return process.wait(max(0.0, left_s))
        except subprocess.TimeoutExpired:
            if last is not None and time.monotonic() >= last:
                raise
        _check_length(name, answer)
        if watch is not None:
            watch()


def _check_length(name: str, answer: IO[bytes]) -> None:
    """Refuse an answer that would not fit into the memory of this process.

    Raises:
        NetworkCodeError: if it is too long.
    """
    size = os.fstat(answer.fileno()).st_size
    if size > _MOST_ANSWER_BYTES:
        raise NetworkCodeError(
            f"The answer of the task `{name}` has {as_bytes(size)}; at most {as_bytes(_MOST_ANSWER_BYTES)} are read.",
            advice="Look in the network file for code that writes to descriptors which it did not open.",
        )


def _result(name: str, code: int, text: bytes) -> dict[str, Any]:
    if code < 0:
        raise JobError(
            f"The process of the task `{name}` was killed by {signal.Signals(-code).name}.",
            advice="Out of memory is the usual reason: use fewer or smaller samples, or free memory.",
        )
    try:
        content = json.loads(text)
    except ValueError:
        raise _ended_by_itself(name, code) from None
    if code:
        raise error_of_family(content, code)
    return content


def _too_long(name: str, time_limit_s: float | None, used_s: float | None) -> NetworkCodeError:
    """Return the error for a task that used so much processor time, None where that is not known."""
    limit_s = time_limit_s or 0.0
    rule = f"The task `{name}` must end within its time limit: it ran longer than {limit_s:g} s."
    details = {"time_limit_s": time_limit_s}
    if used_s is not None and used_s < limit_s * _LEAST_SHARE:
        advice = "The machine is full, or the network file waits for something: try it again when less is running, or "
        advice += "give it more time with --time-limit."
        return NetworkCodeError(rule, received=f"{used_s:.1f} s of processor time", advice=advice, details=details)
    advice = "Look for a loop without an end in the network file, or give it more time with --time-limit."
    return NetworkCodeError(rule, advice=advice, details=details)


def _ended_by_itself(name: str, code: int) -> NetworkCodeError:
    return NetworkCodeError(
        f"The task `{name}` must give an answer: the process ended by itself (exit code {code}).",
        advice="Look for `os._exit` and the like in the network file; what it wrote stands above.",
        details={"exit_code": code},
    )


def _end(pid: int, shim: subprocess.Popen[bytes]) -> None:
    """End a task; its shim ends what it started, also what left its process group and session."""
    if shim.poll() is not None:
        return
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        shim.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:  # a disk or a driver holds something
        os.killpg(shim.pid, signal.SIGKILL)
        shim.wait()
