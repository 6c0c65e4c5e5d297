"""Loaders: variables of a graph get values from checkpoints and files by their names, with a report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import CheckpointError, ConfigurationError, StateError
from ziggurat.tf import logger
from ziggurat.tf.sessions import SessionInit
from ziggurat.tf.varmanip import (
    StoredWeights,
    assign_variables,
    fitted,
    is_training_name,
    open_weights,
    report_mismatches,
)

__all__ = [
    "ChainInit",
    "DictRestore",
    "JustCurrentSession",
    "LoadReport",
    "SaverRestore",
    "SaverRestoreRelaxed",
    "SmartInit",
    "get_model_loader",
]

_SHOWN: Final = 20

Rename = Mapping[str, str] | Sequence[tuple[str, str]]
"""Stored name → name in the graph, or (regular expression, replacement) pairs, applied in their order."""


@dataclass(frozen=True)
class LoadReport:
    """What a loader did, by names of variables.

    Args:
        source: the file or folder.
        restored: variables that have the stored values.
        missing: variables of the graph that are not stored, and keep their first values.
        unexpected: stored names that no variable of the graph has.
        reshaped: of the restored ones, those whose array had another shape of the same size.
        mismatched: variables whose stored array is of another size or kind; they keep their first values.
        ignored: names that were left out on request.
        frozen: of the restored ones, those that are weights and not trained here.
        of_training: names of one side alone that belong to a training: rates, counters, slots of optimizers.
    """

    source: str
    restored: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    of_training: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether graph and file have the same weights, those that were ignored left aside."""
        return not (self.missing or self.unexpected or self.mismatched)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    def text(self) -> str:
        """Return it as lines of text."""
        lines = [f"{len(self.restored)} variables were loaded from {self.source}."]
        titles = {
            "missing": "not in the file, so they keep their first values",
            "unexpected": "in the file, and not in the graph",
            "reshaped": "reshaped",
            "mismatched": "of another size or kind, so they keep their first values",
            "ignored": "ignored, as requested",
            "frozen": "loaded, and not trained",
        }
        for field, title in titles.items():
            names: tuple[str, ...] = getattr(self, field)
            if names:
                more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
                lines.append(f"  {title}: {', '.join(names[:_SHOWN])}{more}")
        return "\n".join(lines)


class JustCurrentSession(SessionInit):
    """Changes nothing: every variable keeps its first value."""


class _WeightLoader(SessionInit):
    """Base of the loaders by name.

    Args:
        prefix: start of names in the graph that the stored names lack.
        ignore: names in the graph to leave out.
        rename: changes stored names before they are looked up.
        keeps_shape: whether an array of another shape fits not, even where it is of the same size.
        ignore_mismatch: leave a variable out, with a warning, whose array fits not.
        strict: raise where graph and file do not have the same weights.
    """

    def __init__(
        self,
        prefix: str | None,
        ignore: Sequence[str],
        rename: Rename,
        *,
        keeps_shape: bool,
        ignore_mismatch: bool,
        strict: bool,
    ) -> None:
        self._prefix = f"{prefix.rstrip('/')}/" if prefix else ""
        self._ignored = {name.removesuffix(":0") for name in ignore}
        self._rename = rename
        self._keeps_shape = keeps_shape
        self._ignore_mismatch = ignore_mismatch
        self._strict = strict
        self._stored: StoredWeights | None = None
        self._values: dict[Any, np.ndarray] = {}
        self._report: LoadReport | None = None

    @property
    def report(self) -> LoadReport:
        """What was loaded; there once the training has begun.

        Raises:
            StateError: before that.
        """
        if self._report is None:
            raise StateError(
                "The loader has loaded nothing yet to report on.", advice="Read it once the training has begun."
            )
        return self._report

    def _weights(self) -> StoredWeights:
        raise NotImplementedError

    def setup_graph(self) -> None:
        """Look at names and shapes, so that what does not fit is an error before the session is made."""
        self._stored = self._weights()
        self._match(self._stored)
        (logger.info if self.report.is_complete else logger.warning)("%s", self.report.text())
        super().setup_graph()

    def init(self, sess: Any) -> None:
        """Give the variables their values."""
        assign_variables(sess, self._values)
        self._values = {}
        super().init(sess)

    def _match(self, stored: StoredWeights) -> None:
        names = self._renamed(stored)
        found: dict[str, list[str]] = {
            key: [] for key in ("restored", "missing", "reshaped", "mismatched", "ignored", "of_training")
        }
        problems: list[str] = []
        used: set[str] = set()
        for variable in tf.global_variables():
            name = str(variable.op.name)
            key = name.removeprefix(self._prefix)
            if name in self._ignored:
                found["ignored"].append(name)
                used.add(key)
            elif key not in names:
                found["of_training" if is_training_name(name) else "missing"].append(name)
            else:
                used.add(key)
                self._take(variable, stored, names[key], found, problems)
        left = [key for key in names if key not in used]
        found["of_training"] += [key for key in left if is_training_name(key)]
        found["unexpected"] = [key for key in left if not is_training_name(key)]
        found["frozen"] = _frozen(found["restored"])
        self._report = LoadReport(stored.source, **{field: tuple(kept) for field, kept in found.items()})
        report_mismatches(problems, self._ignore_mismatch)
        if self._strict and not self._report.is_complete:
            raise CheckpointError(
                "The weights in the graph and in the file differ, and a strict loader finds the same ones.",
                received=self._report.text(),
                advice="Rename what has another name, name in `ignore` what shall be trained anew, or be less strict.",
                details=self._report.as_dict(),
            )

    def _take(
        self, variable: Any, stored: StoredWeights, key: str, found: dict[str, list[str]], problems: list[str]
    ) -> None:
        name, shape = str(variable.op.name), stored.shapes[key]
        is_same_shape = variable.shape.is_compatible_with(shape)
        array = stored.get(key) if is_same_shape or not self._keeps_shape else None
        fit = None if array is None else fitted(array, variable)
        if fit is None:
            found["mismatched"].append(name)
            problems.append(f"{name} of shape {variable.shape} and type {variable.dtype.name}, stored {shape}")
            return
        self._values[variable] = fit
        found["restored"].append(name)
        if not is_same_shape:
            found["reshaped"].append(name)

    def _renamed(self, stored: StoredWeights) -> dict[str, str]:
        """Return name to look up → stored name."""
        if isinstance(self._rename, Mapping):
            exact = {old.removesuffix(":0"): new.removesuffix(":0") for old, new in self._rename.items()}
            pairs = [(exact.get(name, name), name) for name in stored.shapes]
        else:
            pairs = []
            for name in stored.shapes:
                new = name
                for pattern, replacement in self._rename:
                    new = re.sub(pattern, replacement, new)
                pairs.append((new, name))
        renamed = dict(pairs)
        if len(renamed) < len(pairs):
            taken = [new for new in renamed if sum(each == new for each, _ in pairs) > 1]
            raise ConfigurationError(
                f"Several arrays get the same name by renaming: {', '.join(taken[:5])}.",
                advice="Make the rules more specific.",
            )
        return renamed


class SaverRestore(_WeightLoader):
    """Loads a checkpoint: every variable of the graph whose name is stored gets the stored value.

    What is on one side only is a warning; names of optimizers, rates and counters are not worth one.

    Args:
        model_path: a TensorFlow checkpoint by its prefix, its ``.index``, its ``checkpoint`` file or its folder; an npz
            or npy file; a checkpoint of Ziggurat or the folder of a job.
        prefix: start of names in the graph that the stored names lack.
        ignore: names in the graph to leave out.
        rename: stored name → name in the graph, or (regular expression, replacement) pairs.
        strict: raise where graph and file do not have the same weights.

    Raises:
        MissingCheckpointError: from the training, where there is no such checkpoint.
        CheckpointError: from the training, where it is damaged, or an array is of another shape than its variable.
    """

    _is_relaxed = False

    def __init__(
        self,
        model_path: str | Path,
        prefix: str | None = None,
        ignore: Sequence[str] = (),
        *,
        rename: Rename = (),
        strict: bool = False,
    ) -> None:
        relaxed = self._is_relaxed
        super().__init__(prefix, ignore, rename, keeps_shape=not relaxed, ignore_mismatch=relaxed, strict=strict)
        self.path = str(model_path)

    def _weights(self) -> StoredWeights:
        return open_weights(self.path)


class SaverRestoreRelaxed(SaverRestore):
    """A ``SaverRestore`` that reshapes arrays of the same size, and only warns of those of another size or kind."""

    _is_relaxed = True


class DictRestore(_WeightLoader):
    """Loads a mapping: every variable of the graph whose name it has gets that value, reshaped where the sizes agree.

    Args:
        variable_dict: name → array.
        ignore_mismatch: leave a variable out, with a warning, whose array is of another size or kind.
        prefix: start of names in the graph that the given names lack.
        ignore: names in the graph to leave out.
        rename: given name → name in the graph, or (regular expression, replacement) pairs.
        strict: raise where graph and mapping do not have the same weights.

    Raises:
        ConfigurationError: where it is no mapping.
        CheckpointError: from the training, where an array does not fit and mismatches are not ignored.
    """

    def __init__(
        self,
        variable_dict: Mapping[str, Any],
        ignore_mismatch: bool = False,
        *,
        prefix: str | None = None,
        ignore: Sequence[str] = (),
        rename: Rename = (),
        strict: bool = False,
        source: str = "a dict",
    ) -> None:
        if not isinstance(variable_dict, Mapping):
            raise ConfigurationError(
                f"`DictRestore` got a {type(variable_dict).__name__}, not a mapping from name to array.",
                advice="Use `SmartInit` for a path.",
            )
        super().__init__(prefix, ignore, rename, keeps_shape=False, ignore_mismatch=ignore_mismatch, strict=strict)
        self._given = StoredWeights.of(variable_dict, source)

    def _weights(self) -> StoredWeights:
        return self._given


class ChainInit(SessionInit):
    """Loads by several loaders, one after the other: a later one wins.

    Args:
        sess_inits: the loaders.
    """

    def __init__(self, sess_inits: Sequence[SessionInit]) -> None:
        self.inits = list(sess_inits)

    def setup_graph(self) -> None:
        """Set all of them up."""
        for each in self.inits:
            each.setup_graph()

    def init(self, sess: Any) -> None:
        """Let all of them give values, in their order."""
        for each in self.inits:
            each.init(sess)

    @property
    def reports(self) -> list[LoadReport]:
        """What each of them loaded, as far as it loads anything."""
        return [each.report for each in self.inits if isinstance(each, _WeightLoader)]

    @property
    def report(self) -> LoadReport:
        """What they loaded together: missing is what none of them had."""
        reports = self.reports
        restored = dict.fromkeys(name for each in reports for name in each.restored)
        fields = {
            field: tuple(dict.fromkeys(name for each in reports for name in getattr(each, field)))
            for field in ("missing", "unexpected", "reshaped", "mismatched", "ignored", "frozen", "of_training")
        }
        for field in ("missing", "mismatched"):
            fields[field] = tuple(name for name in fields[field] if name not in restored)
        return LoadReport(", ".join(each.source for each in reports), tuple(restored), **fields)


def SmartInit(  # noqa: N802 - Tensorpack's name
    obj: Any, *, ignore_mismatch: bool = False, **options: Any
) -> SessionInit:
    """Return the loader for whatever is given.

    Args:
        obj: None or empty text for nothing to load; a path (see ``SaverRestore``; npz and npy files as
            ``DictRestore``); a mapping from name to array; a loader; or a list of these, loaded in their order.
        ignore_mismatch: leave variables out, with a warning, whose arrays are of another size or kind.
        options: ``prefix``, ``ignore``, ``rename`` and ``strict`` of the loaders.

    Raises:
        ConfigurationError: for anything else.
        MissingCheckpointError: where there is no such npz or npy file.
    """
    if obj is None or (isinstance(obj, str) and not obj):
        return JustCurrentSession()
    if isinstance(obj, SessionInit):
        return obj
    if isinstance(obj, list | tuple):
        return ChainInit([SmartInit(each, ignore_mismatch=ignore_mismatch, **options) for each in obj])
    if isinstance(obj, Mapping):
        return DictRestore(obj, ignore_mismatch, **options)
    if not isinstance(obj, str | Path):
        raise ConfigurationError(
            f"Weights cannot be loaded from a {type(obj).__name__}: give a path, a mapping, a loader, "
            "or a list of these.",
            advice="Give the path of a checkpoint or of an npz file.",
        )
    if Path(obj).suffix in (".npz", ".npy"):
        return DictRestore(open_weights(obj).all(), ignore_mismatch, source=str(obj), **options)
    return (SaverRestoreRelaxed if ignore_mismatch else SaverRestore)(obj, **options)


get_model_loader = SmartInit


def _frozen(restored: Sequence[str]) -> list[str]:
    """Return those of some variables that are weights, and not trained in this graph."""
    kinds = (tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.MODEL_VARIABLES)
    others = {variable.op.name for kind in kinds for variable in tf.get_collection(kind)}
    return [name for name in restored if name not in others and not is_training_name(name)]
