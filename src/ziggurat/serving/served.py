"""The models of a server: each with its queue and the version that answers, which follows an alias."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.errors import UsageError, ZigguratError, nearest_names
from ziggurat.serving.batcher import Batcher, BatchLimits
from ziggurat.serving.manifest import require_export
from ziggurat.serving.model import ServedModel, open_model
from ziggurat.serving.versions import ModelVersions

__all__ = ["ModelSource", "ServedName", "model_source"]

_LOG: Final = logging.getLogger(__name__)

_FOLLOW_S: Final = 1.0
"""How often an alias is looked at."""


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a model comes from.

    Args:
        name: under which it is served.
        locate: returns the version as text, and its folder; called again to follow an alias.
        follows: whether what it returns may change.
        text: the same for people, such as ``alias champion``.
    """

    name: str
    locate: Callable[[], tuple[str, Path]]
    follows: bool
    text: str


def model_source(word: str, workspace: Path) -> ModelSource:
    """Return what a word of the command line names: the folder of an export, or a model of the workspace.

    Args:
        word: a path; or ``NAME``, ``NAME:ALIAS`` or ``NAME:VERSION``.
        workspace: its folder.

    Raises:
        UsageError: if it is neither.
        ConfigurationError: if the folder is no export.
        UnknownNameError: if the model has no such version or alias.
    """
    folder, versions = Path(word), ModelVersions(workspace)
    name, _, which = word.partition(":")
    if "/" in word or folder.is_dir() or (folder.exists() and name not in versions.names()):
        require_export(folder)
        name = folder.resolve().name
        return ModelSource(name=name, locate=lambda: ("1", folder), follows=False, text=f"the folder {folder}")
    if not name:
        raise UsageError(f"`{word}` names no model before its colon.", advice="Such as NAME:champion.")
    if not versions.versions(name):
        near = " or ".join(f"`{each}`" for each in nearest_names(name, versions.names()))
        raise UsageError(
            f"`{word}` is neither the folder of an export nor a model of the workspace.",
            advice=f"Did you mean {near}?"
            if near
            else "Export one by `ziggurat export JOB --format onnx`; `ziggurat model add NAME FOLDER` names it.",
        )
    versions.resolve(name, which)  # an unknown one is an error of the command, not of a request

    def locate() -> tuple[str, Path]:
        found = versions.resolve(name, which)
        return str(found.version), found.folder

    is_pinned = which.isdecimal()
    text = f"version {which}" if is_pinned else f"alias {which}" if which else "the champion, else the newest version"
    return ModelSource(name=name, locate=locate, follows=not is_pinned, text=text)


class ServedName:
    """A model under its name. The event loop uses it; files are read in a thread.

    Args:
        source: where it comes from.
        limits: of its queue.
        threads: of ONNX Runtime for one batch.
        keys: that must have signed it; None for any export.
        batched: called with the size of each batch.

    Attributes:
        model: that answers; None while the first one is loading.
        version: of it.
        refused: why the newest version does not answer; empty if it does.
    """

    def __init__(
        self,
        source: ModelSource,
        limits: BatchLimits,
        threads: int,
        keys: Sequence[Any] | None,
        batched: Callable[[int], None],
    ) -> None:
        self.source = source
        self.model: ServedModel | None = None
        self.version = ""
        self.refused = ""
        self._limits = limits
        self._threads = threads
        self._keys = keys
        self._batched = batched
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"model-{source.name}")
        self._batcher: Batcher | None = None
        self._tried: tuple[str, Path] | None = None

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.source.name

    @property
    def queue(self) -> Batcher | None:
        """The queue; None while the first version is loading."""
        return self._batcher

    async def load(self) -> None:
        """Load the version that answers now.

        Raises:
            ZigguratError: if it cannot be served.
        """
        found = self.source.locate()
        self._tried = found
        version, folder = found
        began = asyncio.get_running_loop().time()
        model = await asyncio.to_thread(open_model, folder, threads=self._threads, keys=self._keys)
        self._switch(model, version)
        took_s = asyncio.get_running_loop().time() - began
        samples = model.self_test
        _LOG.info("%s version %s ready in %.1f s, self-test %d of %d", self.name, version, took_s, samples, samples)

    async def follow(self) -> None:
        """Switch to another version whenever the alias names one that passes; never returns."""
        while True:
            await asyncio.sleep(_FOLLOW_S)
            try:
                if await asyncio.to_thread(self.source.locate) == self._tried:
                    continue
                await self.load()
                self.refused = ""
            except ZigguratError as error:
                self.refused = str(error)
                named = "" if self._tried is None else self._tried[0]
                _LOG.warning("%s version %s not switched to: %s", self.name, named, error)
                _LOG.warning("%s version %s still answers", self.name, self.version)
            except Exception:  # a folder that vanished: the version in memory must go on to answer
                _LOG.exception("%s: the alias cannot be followed", self.name)

    def close(self) -> None:
        """End the thread of the queue."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _switch(self, model: ServedModel, version: str) -> None:
        if self._batcher is None:
            self._batcher = Batcher(model.run, self._limits, model.run_s, self._executor, self._batched)
        else:
            self._batcher.exchange(model.run, model.run_s)
        self.model, self.version = model, version
