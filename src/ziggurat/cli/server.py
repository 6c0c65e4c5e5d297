"""Commands for the studio server: ``up``, ``down``, ``demo``, and ``status``, also of single jobs."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from ziggurat import __version__
from ziggurat.atomic import private_files
from ziggurat.cli.application import Application, studio_module
from ziggurat.cli.commands import Command
from ziggurat.cli.job_folders import status as job_status
from ziggurat.cli.job_places import JOB
from ziggurat.cli.output import Output
from ziggurat.errors import UsageError
from ziggurat.formatting import as_bytes, as_time
from ziggurat.settings import Secret, Settings, has_display
from ziggurat.workspace.server_process import (
    address_of,
    end_server,
    forget_server,
    make_process_private,
    make_server_state,
    refuse_second,
    start_detached_server,
    take_port,
    write_server,
)

__all__ = ["Place", "chosen_database", "database_option", "demo", "down", "status", "studio_text", "up"]

_BOOTSTRAP: Final = "ziggurat.workspace.studio.bootstrap"
_LOGS: Final = "logs"
_DEMO_HOST: Final = "127.0.0.1"


def database_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flag ``--database``; ``chosen_database`` says what counts."""
    text = "Database of the studio, such as postgresql://USER@HOST/NAME; else studio.db in the workspace."
    return click.option("--database", metavar="URL", help=text)(command)


def _take_workspace(context: click.Context, _parameter: click.Parameter, workspace: Path | None) -> None:
    if workspace is not None:
        application: Application = context.obj
        application.use_workspace(workspace.absolute())


_workspace_option = click.option(
    "--workspace",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    expose_value=False,
    callback=_take_workspace,
    help="Workspace of the studio; default: as configured.",
)


def chosen_database(application: Application, database: str | None) -> str | None:
    """Return the database that a flag or else a setting names; None for that of the workspace."""
    return database or application.settings.database.value or None


@dataclass(frozen=True)
class Place:
    """Where and how the studio shall listen, as the flags of ``up`` say."""

    host: str
    port: int
    prefix: str
    hosts: tuple[str, ...]
    database: str | None
    picture_urls: bool | None = None
    picture_hosts: str | None = None
    source_hosts: str | None = None
    ray: str | None = None

    def words(self) -> list[str]:
        """Return the words that say it again."""
        words = ["--host", self.host, "--port", str(self.port), "--prefix", self.prefix]
        for name in self.hosts:
            words += ["--allowed-host", name]
        return words if self.ray is None else [*words, "--ray", self.ray]

    def settings(self, settings: Settings) -> Settings:
        """Return the settings with the database as well: a password stands in no list of processes."""
        settings = self.with_addresses(settings)
        if self.database is None:
            return settings
        origins = {**settings.origins, "database": "--database"}
        return dataclasses.replace(settings, database=Secret(self.database), origins=origins)

    def with_addresses(self, settings: Settings) -> Settings:
        """Return the settings with what the flags say of what is fetched for others."""
        asked = {name: getattr(self, name) for name in ("picture_urls", "picture_hosts", "source_hosts")}
        given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        flags = {name: f"--{name.replace('_', '-')}" for name in given}
        if self.ray is not None:
            given["ray_address"], flags["ray_address"] = self.ray, "--ray"
        return dataclasses.replace(settings, **given, origins={**settings.origins, **flags})

    def in_force(self, settings: Settings, port: int) -> Settings:
        """Return the settings that the server of this process runs with, as its pages show them.

        Args:
            settings: as file, environment and common flags say.
            port: on which it listens; ``--port 0`` takes any free one.
        """
        found = self.with_addresses(settings)
        values: dict[str, Any] = {"host": self.host, "port": self.port}
        if self.database is not None:
            values["database"] = Secret(self.database)
        flags = {name: f"--{name}" for name, value in values.items() if value != getattr(settings, name)}
        return dataclasses.replace(found, **{**values, "port": port}, origins={**found.origins, **flags})


@click.command(cls=Command)
@click.option("--host", help="Address to listen on; default 127.0.0.1; 0.0.0.0 for all networks.")
@click.option("--port", type=int, help="Port to listen on; default 5000; 0 for any free one.")
@click.option("--prefix", default="", metavar="PATH", help="Path prefix behind a proxy, such as /ziggurat.")
@click.option("--allowed-host", "hosts", multiple=True, metavar="NAME", help="Allowed host name; repeatable.")
@_workspace_option
@database_option
@click.option("--picture-urls/--no-picture-urls", default=None, help="Allow images by URL; default: as configured.")
@click.option(
    "--picture-hosts", metavar="HOSTS", help="Local hosts allowed for images: NAME or NAME:PORT, separated by commas."
)
@click.option("--source-hosts", metavar="HOSTS", help="Local hosts allowed for datasets, likewise.")
@click.option("--ray", metavar="ADDRESS", help="Run jobs on this Ray cluster, too: HOST:PORT, or auto.")
@click.option("--open/--no-open", "browser", default=None, help="Whether to open a browser; default: if possible.")
@click.option("--detach", is_flag=True, help="Serve in the background; stop with `ziggurat down`.")
@click.option("--new-token", is_flag=True, help="Print a token for logging in as an admin.")
@click.option("--backup-made", is_flag=True, help="Confirms a backup of the PostgreSQL database, and migrates it.")
@click.pass_obj
def up(
    application: Application, browser: bool | None, detach: bool, new_token: bool, backup_made: bool, **place: Any
) -> None:
    """Serve the studio of the workspace until Ctrl-C; jobs keep running without it."""
    with private_files(application.settings.workspace):
        _up(application, browser, detach, new_token, backup_made, _asked_place(application, **place))


def _up(
    application: Application, browser: bool | None, detach: bool, new_token: bool, backup_made: bool, asked: Place
) -> None:
    refuse_second(application.settings.workspace)
    if backup_made:
        studio_module(_BOOTSTRAP).upgrade_database(application.settings, asked.database)
    with take_port(asked.host, asked.port) as listener:
        token, is_open = _check_people(application, asked, new_token)
        if not detach:
            serve_studio(application, asked, listener, token=token, browser=browser)
            return
    state = start_detached_server(asked.settings(application.settings), asked.words())
    _show_start(application, state.address, state.pid, token, state.remarks, is_open=is_open)
    _open_browser(application, state.address, browser)


@click.command(cls=Command)
@_workspace_option
@click.pass_obj
def down(application: Application) -> None:
    """Stop the studio of the workspace; jobs keep running."""
    state = end_server(application.settings.workspace)
    text = f"The studio at {state.address} has ended. Jobs that run go on; `ziggurat up` finds them again."
    application.output.document({"address": state.address, "pid": state.pid}, text)


@click.command(cls=Command)
@click.argument("folders", nargs=-1, type=JOB, metavar="[JOB]...")
@_workspace_option
@database_option
@click.pass_context
def status(context: click.Context, folders: tuple[Path, ...], database: str | None) -> None:
    """Show the status of the studio or, with JOBs, of those; with --json, one line each."""
    if folders:
        context.invoke(job_status, folders=folders)
        return
    application: Application = context.obj
    summary = studio_module(_BOOTSTRAP).studio_summary(application.settings, chosen_database(application, database))
    application.output.document(summary, studio_text(summary, application.output))


def _asked_place(
    application: Application, *, host: str | None, port: int | None, database: str | None, **rest: Any
) -> Place:
    settings = application.settings
    return Place(
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
        database=chosen_database(application, database),
        **rest,
    )


def _check_people(application: Application, place: Place, new_token: bool) -> tuple[str, bool]:
    """Return a new token if one is asked for, and whether the studio is open to this machine without a login.

    Raises:
        UsageError: if other machines could reach a studio that needs no login.
    """
    binding = studio_module("ziggurat.workspace.accounts")
    with studio_module(_BOOTSTRAP).open_people(application.settings, place.database) as people:
        token = binding.first_token(people) if new_token else ""
        binding.check_bind(place.host, people)
        return token, not people.has_accounts()


def serve_studio(
    application: Application,
    place: Place,
    listener: Any,
    *,
    token: str = "",
    browser: bool | None = None,
    begin: Callable[[Any, str], str] = lambda _studio, address: address,
) -> None:
    """Serve the studio of the workspace until a signal comes.

    Args:
        application: this call.
        place: where and how.
        listener: what ``take_port`` gave.
        token: a new one that people are told.
        browser: whether one is opened; None for where it can be.
        begin: called with studio and address once requests are answered; returns the address of what is shown first.
    """
    make_process_private()  # jobs run as the same user, and could read the server's secrets in /proc
    serving = studio_module("ziggurat.server.serving")
    is_public = not studio_module("ziggurat.workspace.accounts").is_loopback(place.host)
    prefix = studio_module("ziggurat.server.middleware").checked_prefix(place.prefix)
    address = address_of(listener, place.host, prefix)
    opening, workspace = studio_module(_BOOTSTRAP), application.settings.workspace
    settings = place.in_force(application.settings, listener.getsockname()[1])

    with opening.open_studio(settings, url=place.database, prefix=prefix) as studio:
        server = studio_module("ziggurat.app").create_studio(
            studio, prefix=prefix, hosts=place.hosts, public_bind=is_public
        )

        def ready() -> None:
            state = make_server_state(
                address, __version__, now=time.time(), workspace=workspace, remarks=studio.remarks
            )
            write_server(workspace, state)
            _show_start(application, address, None, token, studio.remarks, is_open=not studio.people.has_accounts())
            threading.Thread(target=_greet, args=(application, studio, address, browser, begin), daemon=True).start()

        try:
            ended_by = serving.serve(server, listener, logs=workspace / _LOGS, ready=ready)
        finally:
            forget_server(workspace)
        running = len(studio.jobs.running())
    going_on = {0: "no job runs", 1: "1 job goes on"}.get(running, f"{running} jobs go on")
    application.output.note(f"The studio has ended ({ended_by}); {going_on}.")


def _show_start(
    application: Application, address: str, pid: int | None, token: str, remarks: Sequence[str], *, is_open: bool
) -> None:
    workspace = str(application.settings.workspace)
    content: dict[str, Any] = {"address": address, "workspace": workspace, "login": not is_open}
    content |= ({"pid": pid} if pid else {}) | _given(token)
    content |= {"remarks": list(remarks)} if remarks else {}
    how_to_end = "`ziggurat down` ends it" if pid else "Ctrl-C ends it"
    lines = [f"The studio is at {address}", f"Its workspace is {workspace}; {how_to_end}, and jobs go on.", *remarks]
    if is_open:
        lines.append(
            "No login is needed: only this machine reaches the studio, and everyone who uses this machine is an admin. "
            "`ziggurat user add NAME --role admin` adds accounts."
        )
    if token:
        lines.append(f"Log in with this token, which is shown only now: {token}")
    application.output.line(content, "\n".join(lines))


def _given(token: str) -> dict[str, str]:
    return {"token": token} if token else {}


def _greet(
    application: Application, studio: Any, address: str, browser: bool | None, begin: Callable[[Any, str], str]
) -> None:
    """Do what takes a while once the server answers: open a browser, look for the frameworks."""
    _open_browser(application, begin(studio, address), browser)
    for framework in studio.machine.frameworks.find():
        if framework.sentence:
            application.output.note(framework.sentence)


def _open_browser(application: Application, address: str, asked: bool | None) -> None:
    usual = application.settings.browser and has_display() and sys.stdout.isatty()
    if usual if asked is None else asked:
        webbrowser.open(address)


@click.command(cls=Command)
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Workspace of the demo.",
)
@click.option("--port", default=5000, show_default=True, help="Port to listen on; another one if it is taken.")
@click.option("--epochs", default=30, show_default=True, help="Number of epochs.")
@click.option("--open/--no-open", "browser", default=None, help="Whether to open a browser; default: if possible.")
@click.pass_obj
def demo(application: Application, out: Path, port: int, epochs: int, browser: bool | None) -> None:
    """Start a studio and train LeNet on handwritten digits in it; its page opens in the browser."""
    if epochs < 1:
        raise UsageError(f"`--epochs` is {epochs}; it must be at least 1.")
    application.use_workspace(out.absolute())
    refuse_second(application.settings.workspace)
    place = Place(host=_DEMO_HOST, port=port, prefix="", hosts=(), database=None)

    def begin(studio: Any, address: str) -> str:
        studio.machine.frameworks.find()
        job = studio.demo.start(epochs=epochs)
        page = f"{address}models/{job.id}"
        application.output.note(f"{job.name} trains; watch and test it at {page}")
        return page

    with private_files(out), _demo_port(port) as listener:
        serve_studio(application, place, listener, browser=browser, begin=begin)


def _demo_port(port: int) -> Any:
    try:
        return take_port(_DEMO_HOST, port)
    except UsageError:  # the port is in use, perhaps by a studio: a demo need not fail for that
        return take_port(_DEMO_HOST, 0)


def studio_text(summary: Mapping[str, Any], output: Output) -> str:
    """Return how the studio is in a few lines; ``summary`` is that of ``studio_summary``."""
    machine = summary["machine"]
    disk, memory = machine["disk"], machine["memory"]
    rows = [
        ("studio", _server(summary)),
        ("workspace", summary["workspace"]),
        ("jobs", _jobs(summary["jobs"], output)),
        *_unlisted(summary["unlisted"]),
        *(("device" if index == 0 else "", text) for index, text in enumerate(_devices(machine))),
        ("processor", f"{machine['cpu']['cores']} cores, {machine['cpu']['load']:.0%} busy"),
        ("memory", f"{as_bytes(memory['free_bytes'])} of {as_bytes(memory['total_bytes'])} free"),
        ("disk", f"{as_bytes(disk['free_bytes'])} of {as_bytes(disk['total_bytes'])} free{_warning(disk)}"),
    ]
    return "\n".join(f"{title:<11}{text}" for title, text in rows)


def _server(summary: Mapping[str, Any]) -> str:
    server = summary["server"]
    if server is None:
        return "does not run; start it with: ziggurat up"
    since = as_time(server["started"])
    return f"{server['address']} (process {server['pid']} on {server['host']} since {since}, {server['version']})"


def _unlisted(folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    if folders:
        what = "1 job folder" if len(folders) == 1 else f"{len(folders)} job folders"
        yield "not listed", f"{what}; list them with: ziggurat reindex"


def _jobs(counts: Mapping[str, int], output: Output) -> str:
    return ", ".join(f"{count} {output.word(state)}" for state, count in counts.items()) or "none"


def _devices(machine: Mapping[str, Any]) -> Iterator[str]:
    if not machine["devices"]:
        yield f"none: {machine['why_no_devices']}"
    for device in machine["devices"]:
        if device["error"]:
            yield f"GPU {device['index']} cannot be used: {device['error']}"
            continue
        used = device["memory_bytes"] - device["free_bytes"]
        yield (
            f"GPU {device['index']} {device['name']}: {as_bytes(used)} of {as_bytes(device['memory_bytes'])} used"
            f"{_said(device)}{_processes(device['processes'])}"
        )


def _said(device: Mapping[str, Any]) -> str:
    load = "" if device["load"] is None else f", {device['load']:.0%} busy"
    warmth = "" if device["temperature_c"] is None else f", {device['temperature_c']} °C"
    return load + warmth


def _processes(processes: Iterable[Mapping[str, Any]]) -> str:
    named = [f"process {each['pid']}" + (f" of {each['user']}" if each["user"] else "") for each in processes]
    return f", used by {', '.join(named)}" if named else ""


def _warning(disk: Mapping[str, Any]) -> str:
    if disk["free_bytes"] >= disk["reserve_bytes"]:
        return ""
    return f"; no job starts below {as_bytes(disk['reserve_bytes'])}"
