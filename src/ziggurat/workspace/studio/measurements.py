"""Measurements of networks and trainings on this machine: descriptions, test batches, failures; stored in a file.

A description depends on the network's text, its input and its classes; a test batch also on the batch, the data and the
data loading. Other fields, such as the number of epochs, do not invalidate them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities.backend_info import backend_infos
from ziggurat.errors import ZigguratError
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.workspace.training_estimates import NetworkFacts, facts_of

__all__ = ["MEASUREMENTS_FILE", "Measurements", "key_of_spec", "network_key"]

MEASUREMENTS_FILE: Final = Path("temporary", "measurements.json")
"""Path of the file in a workspace."""

_LOG: Final = logging.getLogger(__name__)
_MOST: Final = 300
_FACTS: Final = "facts.json"

_IRRELEVANT: Final = frozenset(
    {
        "name",
        "seed",
        "epochs",
        "steps_per_epoch",
        "early_stopping",
        "learning_rate",
        "schedule",
        "validation",
        "checkpoints",
        "on_stop",
        "heartbeat_s",
        "hung_after_s",
        "shuffle",
        "monitors",
    }
)
"""Fields of a spec that change neither the memory of a training nor the time of its steps."""


class Measurements:
    """Measurements of a workspace; the oldest are dropped first. Any thread may call any method.

    Args:
        path: of the file; it need not exist.
        clock: seconds since 1970.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, dict[str, Any]] | None = None
        self._failures: OrderedDict[str, str] = OrderedDict()

    def facts(self, backend: str, network: str, shape: Sequence[int], classes: int | None) -> NetworkFacts | None:
        """Return the facts of a network; None if unknown.

        Args:
            backend: that builds it.
            network: see ``network_key``.
            shape: height, width and channels of its input.
            classes: number of classes.
        """
        found = self._get(_facts_key(backend, network, shape, classes))
        if found is not None:
            return NetworkFacts(**found["facts"])
        return _shipped(backend, network, shape, classes)

    def note_description(self, backend: str, network: str, described: Mapping[str, Any]) -> None:
        """Store the description of a network."""
        key = _facts_key(backend, network, described["input_shape"], described["classes"])
        with self._lock:
            self._failures.pop(key, None)
        self._put({key: {"facts": asdict(facts_of(described))}})

    def failure(self, backend: str, network: str, shape: Sequence[int], classes: int | None) -> str:
        """Return why the last attempt to build a network failed; empty if it succeeded, or there was none.

        The arguments are those of ``facts``.
        """
        with self._lock:
            return self._failures.get(_facts_key(backend, network, shape, classes), "")

    def note_failure(
        self, backend: str, network: str, shape: Sequence[int], classes: int | None, sentence: str
    ) -> None:
        """Remember in memory only that a network cannot be built: a package may be installed later."""
        with self._lock:
            self._failures[_facts_key(backend, network, shape, classes)] = sentence
            while len(self._failures) > _MOST:
                self._failures.popitem(last=False)

    def test_batch(self, spec: TrainSpec) -> Mapping[str, Any] | None:
        """Return the result of a test batch of this training; None if there is none."""
        found = self._get(_batch_key(spec))
        return None if found is None else found["found"]

    def note_test_batch(self, spec: TrainSpec, found: Mapping[str, Any]) -> None:
        """Store the result of a test batch, without the curve of its learning rates."""
        rate = found.get("rate")
        if rate is not None:
            rate = {name: value for name, value in rate.items() if name not in ("rates", "losses", "raw_losses")}
        earlier = self.test_batch(spec)
        if rate is None and earlier is not None:
            rate = earlier.get("rate")
        content = {"found": {**found, "rate": rate}}
        # The card of a network shows an estimate, whatever the other options are: its key leaves them out.
        card = _card_key(spec.backend, key_of_spec(spec), spec.data.source, spec.batch_size)
        base = {_base_key(spec.backend): {"bytes": found["start_bytes"]}} if "start_bytes" in found else {}
        self._put({_batch_key(spec): content, **base, card: content})

    def base_bytes(self, backend: str) -> int | None:
        """Return the memory of a framework alone: measured by the newest test batch here, or else the usual one.

        It is None for a backend of which neither is known.
        """
        found = self._get(_base_key(backend))
        if found is not None:
            return int(found["bytes"])
        info = backend_infos().get(backend)
        return None if info is None else info.start_bytes or None

    def like(self, backend: str, network: str, source: str, batch_size: int) -> Mapping[str, Any] | None:
        """Return the result of the newest test batch of a network on this data, with any options; None if none."""
        found = self._get(_card_key(backend, network, source, batch_size))
        return None if found is None else found["found"]

    def _get(self, key: str) -> dict[str, Any] | None:
        with self._lock:
            return self._read().get(key)

    def _put(self, contents: Mapping[str, Mapping[str, Any]]) -> None:
        with self._lock:
            kept = self._read()
            for key, content in contents.items():
                kept.pop(key, None)
                kept[key] = {**content, "time": self._clock()}
            while len(kept) > _MOST:
                kept.popitem(last=False)
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write_text(self._path, json.dumps(kept), "what was measured", durable=False)
            except (ZigguratError, OSError) as error:  # it is measured again where it is needed
                _LOG.warning("%s cannot be written: %s", self._path, error)

    def _read(self) -> OrderedDict[str, dict[str, Any]]:
        if self._kept is None:
            try:
                content = json.loads(self._path.read_text(encoding="utf-8"))
                found = content if isinstance(content, dict) else {}
                self._kept = OrderedDict((key, each) for key, each in found.items() if isinstance(each, dict))
            except (OSError, ValueError, RecursionError):
                self._kept = OrderedDict()
        return self._kept


def network_key(name: str, text: str | None = None) -> str:
    """Return the key of a network: the name of a standard network, else a digest of its text."""
    return name if text is None else f"text:{hashlib.sha256(text.encode()).hexdigest()}"


def key_of_spec(spec: TrainSpec) -> str:
    """Return the key of the network of a spec."""
    network = spec.network
    if not isinstance(network, FileNetwork):
        return network_key(network.name)
    if network.text is not None:
        return network_key("", network.text)
    try:
        return network_key("", Path(network.path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return f"file:{network.path}"


def _facts_key(backend: str, network: str, shape: Sequence[int], classes: int | None) -> str:
    return f"facts {backend} {network} {'x'.join(map(str, shape))} {classes}"


def _base_key(backend: str) -> str:
    return f"base {backend}"


def _card_key(backend: str, network: str, source: str, batch_size: int) -> str:
    return f"card {backend} {network} {batch_size} {source}"


def _batch_key(spec: TrainSpec) -> str:
    content = {name: value for name, value in spec.model_dump(mode="json").items() if name not in _IRRELEVANT}
    content["network"] = key_of_spec(spec)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"batch {digest}"


def _shipped(backend: str, network: str, shape: Sequence[int], classes: int | None) -> NetworkFacts | None:
    """Return the facts of a standard network that come with the program, for common input sizes."""
    known = _shipped_facts(backend).get(network, {}).get("x".join(map(str, shape)))
    if known is None or (classes is None and known[1]):  # of data without classes, those whose size needs none
        return None
    parameters, per_class, other, per_sample, multiply_adds = known
    trained = parameters + per_class * (classes or 0)
    return NetworkFacts(
        parameters=trained,
        variables=trained + other,
        per_sample=per_sample,
        outputs=classes if per_class else None,
        multiply_adds=multiply_adds,
    )


@functools.cache
def _shipped_facts(backend: str) -> Mapping[str, Mapping[str, Sequence[int]]]:
    """Return network → ``HxWxC`` → parameters without classes, parameters of a class, other variables, numbers
    and multiply-adds of a sample, of the standard networks of a backend.
    """
    info = backend_infos().get(backend)
    if info is None or info.zoo is None:
        return {}
    try:
        return json.loads((info.zoo / _FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a backend of another package has none
        return {}
