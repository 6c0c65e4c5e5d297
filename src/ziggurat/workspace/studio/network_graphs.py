"""TensorBoard graph of an untrained network, written while the network is described."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ziggurat.errors import StorageError
from ziggurat.services.tensorboard import TensorBoards
from ziggurat.workspace.studio.graph_cache import GraphCache

__all__ = ["NetworkGraphs"]

_RUN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_PROBLEM: Final = 500


class NetworkGraphs:
    """Graphs of networks that are described. Any thread may call any method.

    Args:
        kept: where they are.
        describe: describes a network; see ``ziggurat.workspace.studio.networks.Networks.describe``.
        tensorboards: a TensorBoard for each graph that somebody looks at.
    """

    def __init__(self, kept: GraphCache, describe: Callable[..., dict[str, Any]], tensorboards: TensorBoards) -> None:
        self._kept = kept
        self._describe = describe
        self.tensorboards = tensorboards

    def describe(self, network: str = "", **options: Any) -> dict[str, Any]:
        """Describe a network, and keep its graph for TensorBoard.

        Args:
            network: name of a standard network; unused where there is a text.
            options: as for ``Networks.describe``.

        Returns:
            What that returns, and ``tensorboard``: ``graph`` (its name; empty where there is none to show) and
            ``problem`` (why, as full sentences).
        """
        try:
            name = self._kept.begin()
        except StorageError as error:  # what is said of the network needs no disk
            found = self._describe(network, **options)
            return {**found, "tensorboard": {"graph": "", "problem": str(error)}}
        is_kept = False
        try:
            run = network if _RUN.fullmatch(network) and not options.get("text") else "network"
            found = self._describe(network, **options, tensorboard=str(self._kept.events(name) / run))
            written = found.get("tensorboard")
            problem = str(written["problem"])[:_LONGEST_PROBLEM] if isinstance(written, Mapping) else ""
            is_kept = not problem and self._kept.keep(name)
            if not is_kept:
                problem = problem or "The process that built the network wrote no graph that can be kept."
        finally:
            if not is_kept:
                self._kept.drop(name)
        return {**found, "tensorboard": {"graph": name if is_kept else "", "problem": problem}}

    def check(self, name: str) -> None:
        """See that a graph is there; it counts as looked at.

        Raises:
            MissingEntryError: where it is not kept any more.
        """
        self._kept.folder(name)
