"""Exception hierarchy: every error that Ziggurat raises on purpose is a ``ZigguratError``.

A message begins with one sentence of the rule and what came instead, and goes on with what to do. The tree, with the
exit code of each family::

    ZigguratError 1
    ├── UsageError 2              wrong use of a command or a call
    │   └── MissingEntryError     a user, token, project or upload does not exist
    ├── ConfigurationError 3
    │   ├── SpecError             a spec.json is not valid
    │   ├── SettingsError         a settings file, a ZIGGURAT_* variable or a flag is not valid
    │   └── UnknownNameError      an unregistered name; lists the nearest and the known names
    ├── DataError 4
    │   ├── DatapointError        one datapoint cannot be read or mapped (carries its key)
    │   └── DataWorkerError       a worker of the data pipeline died or raised (carries its traceback)
    ├── NetworkCodeError 5        the user's network file failed (carries file and line)
    │   └── ProgramCodeError      a submitted program failed, or cannot be run (carries file and line)
    ├── TrainingError 6
    │   ├── NonFiniteError        a watched value is NaN or infinite
    │   └── StateError            an object was used in the wrong order
    ├── CheckpointError 7         a checkpoint is missing, damaged, or of another network
    │   └── MissingCheckpointError  it does not exist
    ├── MissingDependencyError 8  an optional package is not installed
    ├── PluginError 9             a plugin does not load or violates its interface
    ├── JobError 10               a job folder is missing, in use, or of another version
    │   └── MissingJobError       it does not exist
    ├── StorageError 11           the disk is full or not writable
    ├── ChangedExportError 12     a file of an export is not the one that its manifest lists
    ├── UnknownSignerError 13     an export is intact, and signed by a key that is not known here
    ├── UnsignedExportError 14    an export is intact but not signed
    └── NotThereError             the named object does not exist; each such error is also of another family
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

__all__ = [
    "ChangedExportError",
    "CheckpointError",
    "ConfigurationError",
    "DataError",
    "DataWorkerError",
    "DatapointError",
    "JobError",
    "MissingCheckpointError",
    "MissingDependencyError",
    "MissingEntryError",
    "MissingJobError",
    "NetworkCodeError",
    "NonFiniteError",
    "NotThereError",
    "OutdatedError",
    "PluginError",
    "ProgramCodeError",
    "SettingsError",
    "SpecError",
    "StateError",
    "StorageError",
    "TrainingError",
    "UnknownNameError",
    "UnknownSignerError",
    "UnsignedExportError",
    "UsageError",
    "ZigguratError",
    "broken_rule",
    "error_of_family",
    "install_advice",
    "memory_error",
    "nearest_names",
]

_NOTHING = object()

_PACKAGES: Final = {
    **{name: name for name in ("matplotlib", "torchvision", "tabulate", "pandas", "transformers", "lightning", "gym")},
    "sklearn": "scikit-learn",
    "cv2": "opencv-python-headless",
    "pytorch_lightning": "pytorch-lightning",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "datasets": "datasets",
    "timm": "timm",
    "tqdm": "tqdm",
}
"""Module → package that brings it, of packages that programs need and Ziggurat does not."""
_BETWEEN_SENTENCES: Final = re.compile(r"([.!?])\s+(?=[A-Z`])")
_SHOWN = 40


class ZigguratError(Exception):
    """Base of all errors that Ziggurat raises on purpose.

    Args:
        rule: what must hold, as a full sentence.
        received: what came instead; see ``broken_rule``. Leave it out where the rule names it.
        advice: what to do, as a full sentence.
        details: further values for machines (JSON), such as ``{"key": "img/7.jpg"}``.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        rule: str,
        *,
        received: Any = _NOTHING,
        advice: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.rule = rule
        self.received = None if received is _NOTHING else str(received)
        self.advice = advice
        self.details: dict[str, Any] = dict(details or {})
        super().__init__(self._text())

    def _text(self) -> str:
        return f"{broken_rule(self.rule, self.received)} {self.advice}".rstrip()

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders; keyword-only arguments need help to be pickled.
        return (_rebuild, (type(self), self.__dict__.copy()))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape that the API, the events and ``--json`` share."""
        shape: dict[str, Any] = {"error": self.code, "message": str(self), "rule": self.rule}
        if self.received is not None:
            shape["received"] = self.received
        if self.advice:
            shape["advice"] = self.advice
        if self.details:
            shape["details"] = self.details
        return shape


def broken_rule(rule: str, received: str | None) -> str:
    """Return a rule whose first sentence says what came: "`epochs` must be at least 1 (received: 0)."

    What came stands behind the rule as sentences of its own where it has several of them, or lines.
    """
    if received is None or received == "":
        return rule
    came = received.rstrip().removesuffix(".")
    if "\n" in came or _BETWEEN_SENTENCES.search(came):
        return f"{rule} Received: {came}."
    end = _BETWEEN_SENTENCES.search(rule)
    first, rest = (rule[: end.end(1)], rule[end.end(1) :]) if end else (rule, "")
    return f"{first.removesuffix('.')} (received: {came}).{rest}"


def _rebuild(cls: type[ZigguratError], fields: dict[str, Any]) -> ZigguratError:
    error = cls.__new__(cls)
    error.__dict__.update(fields)
    Exception.__init__(error, error._text())
    return error


def error_of_family(shape: Mapping[str, Any], exit_code: int) -> ZigguratError:
    """Return the error of a JSON shape that another process sent, in the family of its exit code.

    Args:
        shape: what ``as_dict`` gave there.
        exit_code: of the family; of an unknown one, the error is a plain ``ZigguratError``.
    """
    families = [each for each in ZigguratError.__subclasses__() if "exit_code" in vars(each)]
    family = next((each for each in families if each.exit_code == exit_code), ZigguratError)
    if shape.get("not_there"):
        family = next((each for each in family.__subclasses__() if issubclass(each, NotThereError)), family)
    error = family.__new__(family)
    options = {"received": shape["received"]} if "received" in shape else {}
    # The families have constructors of their own; the shape holds what these would make.
    ZigguratError.__init__(
        error, shape["rule"], advice=shape.get("advice", ""), details=shape.get("details"), **options
    )
    error.__dict__["code"] = shape["error"]
    return error


class NotThereError(ZigguratError):
    """What was named is not there: a job, a checkpoint, a user, a project.

    Each such error has the code and the exit code of the family that it is of besides, and ``"not_there": true`` in its
    JSON shape.
    """

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape, marked."""
        return {**super().as_dict(), "not_there": True}


class UsageError(ZigguratError):
    """A command or a call was made wrongly."""

    code = "usage"
    exit_code = 2


class MissingEntryError(UsageError, NotThereError):
    """A user, token, project or upload is not there."""


class OutdatedError(UsageError):
    """What is to be changed was changed meanwhile; ``details["current"]`` has it as it is now."""

    code = "outdated"


class ConfigurationError(ZigguratError):
    """What was asked for is not valid."""

    code = "configuration"
    exit_code = 3


class SpecError(ConfigurationError):
    """A spec is not valid, or is of a version that this release does not know."""

    code = "spec"


class SettingsError(ConfigurationError):
    """A settings file, a ``ZIGGURAT_*`` variable or a flag is not valid."""

    code = "settings"


class UnknownNameError(ConfigurationError):
    """A name that is not registered.

    Args:
        kind: what the name stands for, in the singular ("schedule").
        name: the name that came.
        known: all names that would have been right.
    """

    code = "unknown_name"

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(set(known))
        nearest = nearest_names(name, known)
        advice = f"Did you mean {' or '.join(f'`{n}`' for n in nearest)}? " if nearest else ""
        shown = ", ".join(known[:_SHOWN]) + (f", … ({len(known)} in all)" if len(known) > _SHOWN else "")
        advice += f"Known: {shown}." if known else "None is registered."
        super().__init__(
            f"`{name}` is not a known {kind}.",
            advice=advice,
            details={"kind": kind, "name": name, "known": known, "nearest": nearest},
        )


class DataError(ZigguratError):
    """The data is not what it must be."""

    code = "data"
    exit_code = 4


class DatapointError(DataError):
    """One datapoint cannot be read or mapped.

    Args:
        key: what names the datapoint: a path, a record key, or an index.
        reason: why, in one sentence.
    """

    code = "datapoint"

    def __init__(self, key: Any, reason: str, *, advice: str = "") -> None:
        super().__init__(f"Datapoint {key!r} cannot be used: {reason}", advice=advice, details={"key": str(key)})
        self.key = key
        self.reason = reason


class DataWorkerError(DataError):
    """A worker of the data pipeline died or raised; ``worker_traceback`` holds its own traceback, if it had one."""

    code = "data_worker"

    def __init__(
        self,
        rule: str,
        *,
        received: Any = _NOTHING,
        advice: str = "",
        worker_traceback: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(rule, received=received, advice=advice, details=details)
        self.worker_traceback = worker_traceback


class NetworkCodeError(ZigguratError):
    """The user's network file failed; ``details`` has ``file`` and ``line`` of the user's own code."""

    code = "network_code"
    exit_code = 5


class ProgramCodeError(NetworkCodeError):
    """A submitted program failed, or cannot be run; ``details`` has ``file`` and ``line`` of the user's own code."""

    code = "program_code"


class TrainingError(ZigguratError):
    """Training cannot go on."""

    code = "training"
    exit_code = 6


class NonFiniteError(TrainingError):
    """A watched value is NaN or infinite; ``details`` has step, tag, batch keys and the last good checkpoint."""

    code = "not_finite"


class StateError(TrainingError):
    """An object was used in the wrong order, such as a callback added after training began."""

    code = "state"


class CheckpointError(ZigguratError):
    """A checkpoint is missing, damaged, or of another network."""

    code = "checkpoint"
    exit_code = 7


class MissingCheckpointError(CheckpointError, NotThereError):
    """A checkpoint is not there."""


class MissingDependencyError(ZigguratError):
    """An optional package is not installed.

    Args:
        package: the name under which it is installed.
        extra: the extra of Ziggurat that brings it; empty where none does.
        purpose: what it is needed for, to end the sentence "… is needed for …".
    """

    code = "missing_dependency"
    exit_code = 8

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        wanted = f"'ziggurat[{extra}]'" if extra else package
        super().__init__(
            f"The package `{package}` is needed for {purpose}, and it is not installed.",
            advice=f"Install it with: pip install {wanted}.",
            details={"package": package, "extra": extra},
        )


class PluginError(ZigguratError):
    """A plugin does not load or does not hold its contract."""

    code = "plugin"
    exit_code = 9


class JobError(ZigguratError):
    """A job folder is not there, is in use, or is of another version."""

    code = "job"
    exit_code = 10


class MissingJobError(JobError, NotThereError):
    """A job is not there."""


class StorageError(ZigguratError):
    """The disk is full, or a file or folder cannot be written."""

    code = "storage"
    exit_code = 11


class ChangedExportError(ZigguratError):
    """A file of an export is not the one that its manifest lists; ``details`` has ``file`` and ``folder``."""

    code = "changed_export"
    exit_code = 12


class UnknownSignerError(ZigguratError):
    """An export is intact, and signed by a key that is not known here; ``details`` has ``fingerprint``."""

    code = "unknown_signer"
    exit_code = 13


class UnsignedExportError(ZigguratError):
    """An export is intact but not signed."""

    code = "unsigned_export"
    exit_code = 14


class LostDatabaseError(StorageError):
    """The file of the studio's database was removed or replaced while the studio runs."""

    code = "lost_database"


_NO_MEMORY: Final = re.compile(
    "cannot allocate memory|failed to map segment|can't start new thread|can't allocate lock|threading failure"
    "|memory allocation error",
    re.IGNORECASE,
)
"""What the loader of libraries, the interpreter and the hashing of passwords say where memory is limited."""


def install_advice(error: BaseException) -> str:
    """Return how to install the package that a program misses; empty for other errors and unknown packages."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return f"Install it with: pip install {_PACKAGES[name]}." if name in _PACKAGES else ""


def memory_error(error: BaseException) -> ZigguratError | None:
    """Return what is said where memory or threads ran out, as below ``ulimit -v``; None for any other error."""
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        is_refused = isinstance(cause, OSError) and cause.errno == errno.ENOMEM
        if isinstance(cause, MemoryError) or is_refused or _NO_MEMORY.search(str(cause)):
            return ZigguratError(
                "The machine must have enough free memory, and threads, for Ziggurat.",
                received=f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__,
                advice="End other programs, or raise the limit of the shell (`ulimit -v`, `ulimit -u`) or container.",
            )
        cause = cause.__cause__ or cause.__context__
    return None


def nearest_names(name: str, known: Iterable[str], *, at_most: int = 3) -> list[str]:
    """Return up to ``at_most`` of ``known`` that look like ``name``, best first."""
    folded = {candidate.lower(): candidate for candidate in known}
    return [folded[match] for match in difflib.get_close_matches(name.lower(), list(folded), n=at_most, cutoff=0.6)]
