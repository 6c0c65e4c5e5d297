"""Table of operations. It imports nothing of the studio, so that the client and the shell can read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from ziggurat.errors import UnknownNameError, UsageError

__all__ = ["OPERATIONS", "Operation", "find_operation"]

_FIELD: Final = re.compile(r"{(\w+)(:path)?}")


@dataclass(frozen=True)
class Operation:
    """Something that people can change in a studio.

    Args:
        name: what it is called everywhere, such as ``job.pause``.
        rest: its method, and its path below ``/api/v1``.
        client: its method of ``ziggurat.client.Client``; empty if only ``Client.call`` reaches it.
        command: words of its command; empty if only ``ziggurat call`` reaches it.
        role: the lowest role that is allowed.
        scope: the lowest scope that a token may have.
        audit: actions that it may leave in the audit log; its name if empty.
        query: fields that stand in the query of a request that has a body.
        gives_file: whether the answer is a file, which only its own method and command can save.
        sent_as: field → what the body calls it, where the path has a field of that name.
    """

    name: str
    rest: str
    client: str = ""
    command: str = ""
    role: str = "trainer"
    scope: str = "write"
    audit: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    gives_file: bool = False
    sent_as: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """Method of its REST route, such as ``POST``."""
        return self.rest.partition(" ")[0]

    @property
    def path(self) -> str:
        """Path of its REST route below ``/api/v1``, with its fields in braces."""
        return self.rest.partition(" ")[2]

    def request(self, fields: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Return the path below ``/api/v1``, the query and the body of a request with these fields.

        Raises:
            UsageError: if a field of the path is missing, or the answer is a file.
        """
        if self.gives_file:
            raise UsageError(
                f"`{self.name}` answers with a file, and not with JSON.",
                advice=f"Save it by `client.{self.client}` or `ziggurat {self.command}`.",
            )
        rest = dict(fields)
        named = {name: rest.pop(name, None) for name in (each[1] for each in _FIELD.finditer(self.path))}
        missing = [name for name, value in named.items() if value in (None, "")]
        if missing:
            raise UsageError(
                f"`{self.name}` misses {', '.join(f'`{name}`' for name in missing)}.",
                received=", ".join(f"`{name}`" for name in fields) or "no fields",
            )
        path = _FIELD.sub(lambda each: quote(str(named[each[1]]), safe="/" if each[2] else ""), self.path)
        query = rest if self.method == "DELETE" else {name: rest.pop(name) for name in self.query if name in rest}
        body = {} if self.method == "DELETE" else {self.sent_as.get(name, name): value for name, value in rest.items()}
        return path, query, body

    @property
    def actions(self) -> tuple[str, ...]:
        """Actions that it may leave in the audit log; the first one is usual."""
        return self.audit or (self.name,)


_BULK: Final = tuple(
    f"jobs.{action}" for action in ("stop", "stop_now", "pause", "resume", "retry", "delete", "change", "evaluate")
)
_ONE: Final = tuple(each.replace("jobs.", "job.", 1) for each in _BULK)

_LISTED: Final = (
    # Datasets
    Operation("dataset.create", "POST /datasets", "datasets.create", "job dataset"),
    Operation("dataset.again", "POST /datasets/{job_id}/again", "datasets.create_again", "dataset again"),
    Operation("dataset.relabel", "POST /datasets/{job_id}/relabel", "datasets.relabel", "dataset relabel"),
    Operation("dataset.exclude", "POST /datasets/{job_id}/exclude", "datasets.exclude", "dataset exclude"),
    Operation(
        "dataset.corrections", "POST /datasets/{job_id}/corrections", "datasets.correct", audit=("dataset.edits",)
    ),
    Operation("dataset.classes", "POST /datasets/{job_id}/classes", "datasets.change_classes", "dataset classes"),
    Operation("dataset.merge", "POST /dataset-merges", "datasets.merge", "dataset merge"),
    Operation(
        "dataset.boxes",
        "POST /datasets/{job_id}/boxes/versions",
        "datasets.make_boxes_version",
        "dataset boxes version",
    ),
    Operation("dataset.map", "POST /datasets/{job_id}/maps", "datasets.create_map", "dataset map"),
    Operation("dataset.export", "POST /datasets/{job_id}/export", "datasets.export", "dataset export", gives_file=True),
    # Jobs
    Operation("job.act", "POST /jobs/actions", "act", audit=(*_BULK, *_ONE)),
    Operation("job.change", "PATCH /jobs/{job_id}", "change"),
    Operation("job.delete", "DELETE /jobs/{job_id}", "delete", "job delete"),
    Operation("job.restore", "POST /trash/{job_id}/restore", "restore", "job restore"),
    Operation("trash.empty", "DELETE /trash", "empty_trash", "trash empty"),
    Operation(
        "job.stop", "POST /jobs/{job_id}/stop", "stop", "job stop", audit=("job.stop", "job.stop_now"), query=("now",)
    ),
    Operation("job.pause", "POST /jobs/{job_id}/pause", "pause", "job pause"),
    Operation("job.resume", "POST /jobs/{job_id}/resume", "resume", "job resume"),
    Operation("job.retry", "POST /jobs/{job_id}/retry", "retry", "job retry"),
    Operation("job.reorder", "POST /jobs/{job_id}/reorder", "reorder", "job move"),
    Operation(
        "job.set_hyperparameter",
        "POST /jobs/{job_id}/hyperparameters",
        "set_hyperparameter",
        "job rate",
        audit=("job.hyperparameter",),
    ),
    Operation(
        "job.unset_hyperparameter",
        "DELETE /jobs/{job_id}/hyperparameters/{name}",
        "unset_hyperparameter",
        "job rate",
        audit=("job.hyperparameter",),
    ),
    Operation("checkpoint.delete", "DELETE /jobs/{job_id}/checkpoints/{name}", "remove_checkpoint"),
    # Trainings, programs, and what is done with models
    Operation("training.create", "POST /trainings", "train", "job train"),
    Operation("training.demo", "POST /demo", audit=("training.create",)),
    Operation(
        "training.retrain",
        "POST /models/{job_id}/retrain",
        "evaluations.retrain",
        "job retrain",
        audit=("training.create",),
    ),
    Operation("program.create", "POST /programs", "programs.create", "submit"),
    Operation("evaluation.create", "POST /models/{job_id}/evaluations", "evaluations.create", "job evaluate"),
    Operation("inference.create", "POST /models/{job_id}/inferences", "evaluations.create_many", "job infer"),
    Operation("model.export", "POST /models/{job_id}/export", "models.export", "export", gives_file=True),
    Operation(
        "operating-point.set", "PUT /models/{job_id}/operating-point", "models.set_operating_point", "job threshold"
    ),
    Operation(
        "operating-point.clear",
        "DELETE /models/{job_id}/operating-point",
        "models.clear_operating_point",
        "job threshold",
    ),
    Operation("export.create", "POST /models/{job_id}/exports", "models.start_export", audit=("model.export",)),
    Operation("export.delete", "DELETE /models/{job_id}/exports/{name}"),
    Operation("serving.start", "POST /models/{job_id}/exports/{name}/server", "models.start_serving"),
    Operation("serving.stop", "DELETE /models/{job_id}/exports/{name}/server", "models.stop_serving"),
    Operation("model.publish", "POST /pretrained", "models.publish"),
    Operation("model.withdraw", "DELETE /pretrained/{name:path}", "models.withdraw"),
    # Pretrained weights
    Operation("weights.add", "POST /weights", "weights.add", "weights add"),
    Operation("weights.delete", "DELETE /weights/{name}", "weights.remove", "weights remove"),
    Operation("weights.restore", "POST /weights/{name}/restore", "weights.restore", "weights restore"),
    Operation("weights.download", "POST /weights-downloads/{name}", "weights.download", "weights download"),
    Operation("weights.cancel", "DELETE /weights-downloads/{name}", "weights.cancel"),
    Operation("features.delete", "DELETE /features"),
    # The studio
    Operation("project.create", "POST /projects"),
    Operation("project.rename", "PATCH /projects/{name:path}", sent_as={"new_name": "name"}),
    Operation("project.delete", "DELETE /projects/{name:path}"),
    Operation("folders.choose", "PUT /roots", role="admin", scope="admin", audit=("settings.roots",)),
    Operation(
        "folders.allow", "POST /roots", command="settings allow", role="admin", scope="admin", audit=("settings.roots",)
    ),
    Operation(
        "folders.remove",
        "DELETE /roots",
        command="settings disallow",
        role="admin",
        scope="admin",
        audit=("settings.roots",),
    ),
    Operation(
        "signing-key.rotate",
        "POST /signing-key",
        command="settings rotate-key",
        role="admin",
        scope="admin",
        audit=("settings.signing_key",),
    ),
    Operation("limits.choose", "PUT /limits", role="admin", scope="admin", audit=("settings.limits",)),
    Operation(
        "notifications.set", "PUT /notifications", role="admin", scope="admin", audit=("settings.notifications",)
    ),
    Operation(
        "notifications.test",
        "POST /notifications/test",
        role="admin",
        scope="admin",
        audit=("settings.notifications_test",),
    ),
)

OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType({each.name: each for each in _LISTED})
"""Name → operation, by subject."""


def find_operation(name: str) -> Operation:
    """Return the operation of a name.

    Raises:
        UnknownNameError: if there is none; it lists the nearest.
    """
    if name not in OPERATIONS:
        raise UnknownNameError("operation", name, OPERATIONS)
    return OPERATIONS[name]
