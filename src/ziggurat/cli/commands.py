"""Base classes of all commands: ``--json``, lazy loading of verbs, and suggestions for mistyped words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import click

from ziggurat.errors import PluginError, UsageError, ZigguratError, nearest_names
from ziggurat.plugins import PluginCatalogue

__all__ = ["Command", "Group", "LazyGroup", "OpenGroup", "Verb"]


_SAME_WORDS: Final = (
    ("list", "ls"),
    ("show", "info", "inspect"),
    ("delete", "remove", "rm"),
    ("check", "validate"),
    ("create", "new", "add"),
)
"""Words for the same, the usual one first; each command of a group is found by all of them."""


class Command(click.Command):
    """A command that takes ``--json`` and ``--debug``; ``main`` reads them: they hold for errors of parsing as well."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for flag, text in (("--json", "Show JSON on standard output."), ("--debug", "Show the traceback of errors.")):
            self.params.append(click.Option([flag], is_flag=True, expose_value=False, help=text))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an error knows of which command it is, also where click's does not."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


class Group(click.Group):
    """A group whose unknown commands name the nearest ones; alone, it shows its help."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without any, ask for help, and for that of a command as ``help COMMAND``."""
        if args[:1] == ["help"] and "help" not in self.list_commands(ctx):
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises:
            UsageError: where there is none; it names the nearest.
        """
        known = self.list_commands(ctx)
        if args[0] not in known:
            same = next((words for words in _SAME_WORDS if args[0] in words), ())
            args = [next((word for word in same if word in known), args[0]), *args[1:]]
        if args[0] not in known and not ctx.resilient_parsing:
            raise self.unknown(ctx, args[0], known)
        return super().resolve_command(ctx, args)

    def unknown(self, ctx: click.Context, name: str, known: Sequence[str]) -> UsageError:
        """Return the error for a word that is no command here."""
        usual = {word: each for words in _SAME_WORDS for each in words if each in known for word in words}
        near = dict.fromkeys(usual.get(each, each) for each in nearest_names(name, {*known, *usual}))
        nearest = " or ".join(f"`{ctx.command_path} {each}`" for each in near)
        advice = f"Did you mean {nearest}?" if nearest else f"Known: {', '.join(known)}."
        return UsageError(f"`{ctx.command_path} {name}` is not a command.", advice=advice)


@dataclass(frozen=True)
class Verb:
    """A command that is imported when it is used; a package offers one in the entry-point group ``ziggurat.verbs``.

    Args:
        name: the word; ``GROUP.WORD`` for a command of an ``OpenGroup``.
        target: the click command, as ``module:attribute``.
        help: one line for the list of commands.
        heading: heading under which it is listed.
    """

    name: str
    target: str
    help: str
    heading: str


class LazyGroup(Group):
    """The top group: its help imports no command, so that it answers at once.

    Args:
        verbs: built-in commands.
        catalog: where further commands are installed.
    """

    def __init__(
        self,
        *arguments: Any,
        verbs: Sequence[Verb],
        catalog: PluginCatalogue,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._verbs = {verb.name: verb for verb in verbs}
        self._catalog = catalog

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, built-in ones first."""
        return [*self._verbs, *self._offered("verbs"), *self._offered("commands")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of that name.

        Raises:
            PluginError: where an entry point brings it and it does not load.
        """
        if cmd_name in self._verbs:
            module, _, attribute = self._verbs[cmd_name].target.partition(":")
            return getattr(import_module(module), attribute)
        if cmd_name in self._offered("verbs"):
            return self._catalog.load("verbs", cmd_name, target=self._loaded(cmd_name).target)
        return self._catalog.load("commands", cmd_name) if cmd_name in self._offered("commands") else None

    def verbs(self) -> list[Verb]:
        """Return the built-in verbs, then those of entry points; one that does not load only has its name there."""
        return [*self._verbs.values(), *(self._listed(name) for name in self._offered("verbs"))]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, importing none of them."""
        verbs = self.verbs()
        for heading in dict.fromkeys(verb.heading for verb in verbs):
            with formatter.section(heading):
                rows = [(verb.name, verb.help) for verb in verbs if verb.heading == heading]
                formatter.write_dl(rows, col_max=20)
        added = self._offered("commands")
        if added:
            with formatter.section("From other packages"):
                formatter.write_dl(list(added.items()))

    def _offered(self, group: str) -> dict[str, str]:
        """Return name → distribution of what entry points offer besides the built-in verbs, importing nothing."""
        return {
            plugin.name: plugin.distribution
            for plugin in self._catalog.available(group)
            if plugin.name not in self._verbs and "." not in plugin.name  # those with a dot are of an ``OpenGroup``
        }

    def _loaded(self, name: str) -> Verb:
        return _loaded_verb(self._catalog, name)

    def _listed(self, name: str) -> Verb:
        return _listed_verb(self._catalog, name)


def _loaded_verb(catalog: PluginCatalogue, name: str) -> Verb:
    verb = catalog.load("verbs", name)
    if not isinstance(verb, Verb):
        raise PluginError(f"The verb `{name}` must be a `ziggurat.cli.commands.Verb`.", received=repr(verb))
    return verb


def _listed_verb(catalog: PluginCatalogue, name: str) -> Verb:
    try:
        return _loaded_verb(catalog, name)
    except ZigguratError:  # the verb itself says why; the others must be found all the same
        return Verb(name, "", f"does not load: `ziggurat {name.replace('.', ' ')}` says why", "Broken")


class OpenGroup(Group):
    """A group to which packages add commands: verbs of entry points whose names are ``GROUP.WORD``.

    Args:
        catalog: where they are installed.
    """

    def __init__(self, *arguments: Any, catalog: PluginCatalogue, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._catalog = catalog

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, built-in ones first."""
        return [*super().list_commands(ctx), *self._added()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of that name.

        Raises:
            PluginError: where an entry point brings it and it does not load.
        """
        if cmd_name not in self._added():
            return super().get_command(ctx, cmd_name)
        name = f"{self.name}.{cmd_name}"
        return self._catalog.load("verbs", name, target=_loaded_verb(self._catalog, name).target)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; those that were added are not imported."""
        rows = [(name, command.get_short_help_str(60)) for name, command in self.commands.items()]
        rows += [(word, _listed_verb(self._catalog, f"{self.name}.{word}").help) for word in self._added()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _added(self) -> list[str]:
        prefix = f"{self.name}."
        names = (plugin.name for plugin in self._catalog.available("verbs"))
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
