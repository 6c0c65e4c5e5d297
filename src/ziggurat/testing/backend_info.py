"""Conformance suite for descriptions of backends: what a ``BackendInfo`` says is so, and reading it loads nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from ziggurat.engine import capabilities
from ziggurat.engine.backend import Backend
from ziggurat.engine.capabilities import SupportsCheckpoints, SupportsExport, SupportsInference
from ziggurat.entities.backend_info import BackendInfo, backend_info, open_backend, open_capability
from ziggurat.zoo.network_task import kinds_of

__all__ = ["BackendInfoConformance", "backend_problems", "capability_problems", "written_formats"]

_OF_NETWORKS: Final = frozenset({"GivesFeatures", "SupportsGradients"})
"""Capabilities of trained networks, for which a description names what opens them."""

_WITHIN_S: Final = 300.0


class BackendInfoConformance(ABC):
    """Subclass it in a test file and return the name under which the backend is installed.

    What imports a framework runs in a process of its own, as in the studio.
    """

    @abstractmethod
    def name(self) -> str:
        """Return the name of the entry point in the group ``ziggurat.backends``."""

    def test_reading_it_imports_no_framework(self) -> None:
        """Pages read it in the process of the studio."""
        assert _said(_LOADED, self.name()) == []

    def test_the_backend_is_one(self) -> None:
        """It names an object that holds the contract of backends, or says why this version has none."""
        info = self._info()
        assert info.title
        if info.unavailable:
            assert not info.backend
            assert not info.capabilities
        else:
            assert _in_process(backend_problems, self.name()) == []

    def test_each_standard_network_has_its_file(self) -> None:
        """The source of a network is shown, and copied to be changed."""
        info = self._info()
        assert len(set(info.network_names)) == len(info.networks)
        assert all(network.title and kinds_of(network) for network in info.networks)
        if info.zoo is not None:
            assert [name for name in info.network_names if not (info.zoo / f"{name}.py").is_file()] == []

    def test_what_it_names_implements_its_capabilities(self) -> None:
        """Each is opened first in its process: one that starts a framework in another way needs that."""
        named = self._info().capabilities
        others = [each for each in named if each != "SupportsDebug"]
        for part in (others, [each for each in named if each == "SupportsDebug"]):
            assert not part or _in_process(capability_problems, self.name(), *part) == []

    def test_export_formats_are_those_it_writes(self) -> None:
        """The formats that pages offer are those that the backend writes."""
        info = self._info()
        assert ("SupportsExport" in info.capabilities) == bool(info.export_formats)
        if info.export_formats:
            listed = sorted(each.name for each in info.export_formats)
            assert _in_process(written_formats, self.name()) == listed

    def _info(self) -> BackendInfo:
        return backend_info(self.name())


def backend_problems(name: str) -> list[str]:
    """Return what is wrong with the object that a description names; this imports its framework."""
    info = backend_info(name)
    found = open_backend(name)
    problems = [] if isinstance(found, Backend) else [f"{type(found).__name__} is no `Backend`"]
    if isinstance(found, SupportsCheckpoints) != bool(info.checkpoint_suffix or info.weight_suffixes):
        problems.append("`checkpoint_suffix` or `weight_suffixes` go together with `SupportsCheckpoints`")
    return problems


def capability_problems(name: str, *named: str) -> list[str]:
    """Return those of the named capabilities that are none, or that a backend does not implement."""
    problems = []
    for each in named:
        protocol = vars(capabilities).get(SupportsInference.__name__ if each in _OF_NETWORKS else each)
        if protocol is None or not isinstance(open_capability(name, each), protocol):
            problems.append(each)
    return problems


def written_formats(name: str) -> list[str]:
    """Return the export formats that a backend itself knows, sorted."""
    found = open_capability(name, SupportsExport.__name__)
    assert isinstance(found, SupportsExport)
    return sorted(found.export_formats())


_LOADED: Final = """
import json, sys
from ziggurat.entities.backend_info import backend_info, backend_infos
backend_info(sys.argv[1])
print(json.dumps(sorted({module for info in backend_infos().values() for module in info.requires} & set(sys.modules))))
"""


def _in_process(question: Callable[..., list[str]], *words: str) -> list[str]:
    """Return what a function of this module gives in a new process."""
    name = question.__name__
    return _said(f"import json, sys\nfrom {__name__} import {name}\nprint(json.dumps({name}(*sys.argv[1:])))", *words)


def _said(code: str, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=_WITHIN_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
