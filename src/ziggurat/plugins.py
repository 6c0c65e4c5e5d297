"""Plugin discovery: entry-point groups, listed without importing anything and loaded one by one.

Built-ins are in the same groups (in Ziggurat's own ``pyproject.toml``), so they get no special treatment. When a
plugin of another distribution takes the name of a built-in, the built-in wins. Compatibility with other tools is
reached only so: by ``routers`` of the REST API, ``verbs`` of the shell, ``network_tabs`` of the new-model page, and
``redirects`` from modules that have moved.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ziggurat.errors import PluginError, UnknownNameError, ZigguratError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ["GROUPS", "Plugin", "PluginCatalogue", "available", "load"]

GROUPS: Final = {
    "backends": "backend",
    "callbacks": "callback",
    "commands": "command",
    "executors": "executor",
    "importers": "importer",
    "monitors": "monitor",
    "network_tabs": "network tab",
    "redirects": "redirect",
    "routers": "router",
    "schedules": "schedule",
    "tasks": "task",
    "verbs": "verb",
    "views": "view",
}
"""Every group, with the word for one of its members; the entry-point group is ``ziggurat.<group>``."""

_OWN_DISTRIBUTION: Final = "ziggurat"


@dataclass(frozen=True)
class Plugin:
    """One entry of a group.

    Args:
        group: ``backends``, ``callbacks``, …
        name: name by which it is asked for.
        target: what it stands for, as ``module:attribute``.
        distribution: name of the installed package that brings it.
        version: version of that package.
    """

    group: str
    name: str
    target: str
    distribution: str
    version: str

    @property
    def is_built_in(self) -> bool:
        """Whether Ziggurat itself brings it."""
        return self.distribution == _OWN_DISTRIBUTION


class PluginCatalogue:
    """What is installed.

    Args:
        path: folders to look for distributions in; those of ``sys.path`` where it is not given.
    """

    def __init__(self, path: list[str] | None = None) -> None:
        self._path = path

    def available(self, group: str) -> list[Plugin]:
        """Return the plugins of a group by name, importing none of them.

        Raises:
            UnknownNameError: where there is no such group.
        """
        _member_word(group)
        return [entry for entry in self._entries if entry.group == group]

    def load(self, group: str, name: str, *, target: str = "") -> Any:
        """Return the object that a name stands for.

        Args:
            group: ``backends``, ``callbacks``, …
            name: of the plugin.
            target: another object to load in its place, as ``module:attribute``; errors name the plugin.

        Raises:
            UnknownNameError: if the name is not registered.
            PluginError: where it does not load, or two packages claim the name; it names them.
        """
        word = _member_word(group)
        candidates = [entry for entry in self.available(group) if entry.name == name]
        if not candidates:
            raise UnknownNameError(word, name, [entry.name for entry in self.available(group)])
        built_in = [entry for entry in candidates if entry.is_built_in]
        if len(candidates) > 1 and not built_in:
            owners = " and ".join(f"{entry.distribution} {entry.version}" for entry in candidates)
            raise PluginError(
                f"The {word} `{name}` must come from one package.",
                received=owners,
                advice="Uninstall one of them.",
            )
        chosen = (built_in or candidates)[0]
        return _loaded(replace(chosen, target=target) if target else chosen, word)

    @functools.cached_property
    def _entries(self) -> list[Plugin]:
        return sorted(self._found(), key=lambda entry: (entry.group, entry.name, entry.distribution))

    def _found(self) -> Iterator[Plugin]:
        from importlib.metadata import distributions  # most commands look for no plugin

        seen: set[str] = set()
        prefix = "ziggurat."
        for distribution in distributions() if self._path is None else distributions(path=self._path):
            if prefix not in (distribution.read_text("entry_points.txt") or ""):
                continue  # reading the name of every installed package would take longer than all the rest
            owner = _name(distribution)
            if owner in seen:  # the first on the path is the one that Python imports
                continue
            seen.add(owner)
            for entry in distribution.entry_points:
                if entry.group.startswith(prefix):
                    group = entry.group.removeprefix(prefix)
                    yield Plugin(group, entry.name, entry.value, owner, distribution.version)


def available(group: str) -> list[Plugin]:
    """Return the installed plugins of a group; see ``PluginCatalogue.available``."""
    return _installed().available(group)


def load(group: str, name: str, *, target: str = "") -> Any:
    """Return the object of an installed plugin; see ``PluginCatalogue.load``."""
    return _installed().load(group, name, target=target)


@functools.cache
def _installed() -> PluginCatalogue:
    return PluginCatalogue()


def _member_word(group: str) -> str:
    if group not in GROUPS:
        raise UnknownNameError("plugin group", group, GROUPS)
    return GROUPS[group]


def _name(distribution: Distribution) -> str:
    return (distribution.metadata["Name"] or "unknown").lower().replace("_", "-")


def _loaded(entry: Plugin, word: str) -> Any:
    module_name, _, attribute = entry.target.partition(":")
    try:
        found: Any = import_module(module_name)
        for part in attribute.split(".") if attribute else ():
            found = getattr(found, part)
    except ZigguratError:
        raise
    except Exception as error:  # whatever a stranger's module raises must not end more than this plugin
        raise PluginError(
            f"The {word} `{entry.name}` of {entry.distribution} {entry.version} does not load.",
            received=f"{type(error).__name__}: {error}",
            advice=f"Update or uninstall {entry.distribution}; everything else goes on working.",
            details={"distribution": entry.distribution, "target": entry.target},
        ) from error
    return found
