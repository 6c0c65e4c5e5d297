"""Settings: the only reader of the environment. File < ``ZIGGURAT_*`` variables < flags; origins are kept.

The file is ``$XDG_CONFIG_HOME/ziggurat/settings.toml``, or the one that ``--settings`` or ``ZIGGURAT_SETTINGS``
names.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TextIO

from ziggurat.errors import SettingsError, nearest_names

__all__ = [
    "FOLDERS_VARIABLE",
    "OUTPUT_IS_LOG_VARIABLE",
    "WORKER_VARIABLES",
    "Secret",
    "SettingDescription",
    "Settings",
    "child_environment",
    "describe_settings",
    "has_display",
    "load_settings",
]

_PREFIX: Final = "ZIGGURAT_"
_FILE_VARIABLE: Final = "ZIGGURAT_SETTINGS"
FOLDERS_VARIABLE: Final = "ZIGGURAT_OFFERED_FOLDERS"
"""Told to the workers of a studio, as a JSON list: the folders below which they may read for its people."""

_OTHERS_VARIABLE: Final = "ZIGGURAT_FOR_OTHERS"
"""Passed to the workers of a studio; not set by users."""


OUTPUT_IS_LOG_VARIABLE: Final = "ZIGGURAT_OUTPUT_IS_LOG"
"""Told to a worker whose output goes to the log of its job, so that it logs nothing twice; users do not set it."""

THREADS_VARIABLE: Final = "ZIGGURAT_MOST_THREADS"
"""Told to the worker of a studio: the most threads that a training may choose; users do not set it."""

RESUMED_ON_VARIABLE: Final = "ZIGGURAT_RESUMED_ON"
"""Told to the workers of a training that resumes on fewer processes than its spec asks for: a sentence that says on how
many and why. Users do not set it."""

_OF_WORKERS: Final = (OUTPUT_IS_LOG_VARIABLE, THREADS_VARIABLE, RESUMED_ON_VARIABLE)
_INTERNAL: Final = (_FILE_VARIABLE, _OTHERS_VARIABLE, FOLDERS_VARIABLE, *_OF_WORKERS)
"""Variables that are no settings."""

WORKER_VARIABLES: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR", "TMPDIR", "TMP", "TEMP"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_*", "MALLOC_*", "GLIBC_TUNABLES", "VIRTUAL_ENV", "CONDA_*", "PYTHON*"),
    *("XDG_*", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "MPLBACKEND", "MPLCONFIGDIR", "OPENCV_*"),
    *("CUDA_*", "CUDNN_*", "CUBLAS_*", "NVIDIA_*", "NCCL_*", "ROCR_*", "ROCM_*", "HIP_*", "HSA_*", "MIOPEN_*"),
    *("GPU_DEVICE_ORDINAL", "ONEAPI_*", "ONEDNN_*", "DNNL_*", "OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*"),
    *("BLIS_*", "VECLIB_*", "NUMEXPR_*", "NUMBA_*", "TBB_*", "GRPC_*"),
)
"""Patterns of the environment variables that the workers of a studio get, beside those of the frameworks."""

_PROXIES: Final = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_LOOKS_SECRET: Final = re.compile("KEY|TOKEN|SECRET|PASSW|CREDENTIAL|TF_VAR", re.IGNORECASE)
"""Names that look like those of secrets: other programs use the same beginnings, such as Terraform ``TF_``."""

_PORTS: Final = (0, 65535)
_DAY_S: Final = 24 * 3600


def _about(
    help: str,  # noqa: A002
    *choices: str,
    kind: type = str,
    verb: str = "",
    has_flag: bool = True,
    bounds: tuple[int, int] = _PORTS,
) -> dict[str, Any]:
    return {"help": help, "choices": choices, "kind": kind, "verb": verb, "has_flag": has_flag, "bounds": bounds}


@dataclass(frozen=True, repr=False)
class Secret:
    """A value that no message shows: as text, it is stars, or a URL with stars for its password.

    Args:
        value: what it is; empty for none.
    """

    value: str = ""

    def __bool__(self) -> bool:
        return bool(self.value)

    def __str__(self) -> str:
        if "://" in self.value:
            return re.sub(r"://([^:/@?]*):.*@", r"://\1:***@", self.value, flags=re.DOTALL)
        return "***" if self.value else ""

    __repr__ = __str__


@dataclass(frozen=True)
class Settings:
    """What a person set once for all commands on this machine.

    ``origins`` says for each setting where its value came from: ``default``, a file, a variable or a flag.
    ``is_for_others`` is no setting: it says that this process works for the people of a studio, and not for who
    started it. The studio says so to its workers. Nor is ``offered_folders``: the folders of this machine below which
    it may read for them; None for all. Nor is ``output_is_log``: whether the output goes to the log of its job. Nor is
    ``most_threads``: the most threads that a training may choose for its operations; 0 for all cores.
    """

    workspace: Path = field(default=Path("~/ziggurat"), metadata=_about("Folder of new jobs.", kind=Path))
    log_level: str = field(
        default="info",
        metadata=_about("Minimum level of shown messages.", "debug", "info", "warning", "error"),
    )
    color: str = field(
        default="auto",
        metadata=_about("Whether text is colored; `auto` colors a terminal.", "auto", "always", "never"),
    )
    progress: str = field(
        default="auto",
        metadata=_about(
            "How progress is shown; `auto` is a bar in a terminal and lines elsewhere.",
            *("auto", "bar", "lines", "none"),
        ),
    )
    browser: bool = field(
        default=True, metadata=_about("Whether a browser may be opened where there is a display.", kind=bool)
    )
    debug: bool = field(default=False, metadata=_about("Whether errors show their traceback.", kind=bool))
    server: str = field(
        default="",
        metadata=_about("URL of the studio; default: the one that serves the workspace."),
    )
    token: Secret = field(
        default=Secret(),
        metadata=_about("API token for that studio; visible to other users on a command line.", kind=Secret),
    )
    host: str = field(
        default="127.0.0.1",
        metadata=_about("Address on which the studio listens; 0.0.0.0 for all networks.", verb="up"),
    )
    port: int = field(
        default=5000, metadata=_about("Port on which the studio listens; 0 for any free one.", kind=int, verb="up")
    )
    database: Secret = field(
        default=Secret(),
        metadata=_about(
            "Database of the studio, such as postgresql://USER@HOST/NAME; else studio.db in the workspace.",
            kind=Secret,
            verb="up",
        ),
    )
    picture_urls: bool = field(
        default=True,
        metadata=_about("Whether test images may be given by URL.", kind=bool, verb="up"),
    )
    picture_hosts: str = field(
        default="",
        metadata=_about("Local hosts allowed for test images: NAME or NAME:PORT, separated by commas.", verb="up"),
    )
    source_hosts: str = field(
        default="",
        metadata=_about(
            "Local hosts allowed for datasets: NAME or NAME:PORT, separated by commas.",
            verb="up",
        ),
    )
    webhook_hosts: str = field(
        default="",
        metadata=_about(
            "Local hosts allowed for webhooks of notifications: NAME or NAME:PORT, separated by commas.",
            has_flag=False,
        ),
    )
    executor: str = field(
        default="local",
        metadata=_about(
            "Executor that starts the workers of the studio: local, slurm, or the name of a plugin.", has_flag=False
        ),
    )
    ray_address: str = field(
        default="",
        metadata=_about(
            "Ray cluster on which jobs run too: HOST:PORT, or auto for the one of this machine; `up --ray` sets it.",
            has_flag=False,
        ),
    )
    cache_gib: int = field(
        default=50,
        metadata=_about(
            "Largest size in GiB of the copies of datasets on a Ray node that does not see the workspace.",
            kind=int,
            has_flag=False,
            bounds=(1, 1_000_000),
        ),
    )
    slurm_options: str = field(
        default="",
        metadata=_about(
            "Options of sbatch for each job, such as --partition=gpu --time=12:00:00; for the executor slurm.",
            has_flag=False,
        ),
    )
    stop_grace_s: int = field(
        default=120,
        metadata=_about(
            "Seconds without progress after a stop request until a worker gets SIGTERM; typical: 30 to 600.",
            kind=int,
            has_flag=False,
            bounds=(1, _DAY_S),
        ),
    )
    kill_grace_s: int = field(
        default=30,
        metadata=_about(
            "Seconds without progress after SIGTERM until a worker is killed; typical: 10 to 120.",
            kind=int,
            has_flag=False,
            bounds=(1, _DAY_S),
        ),
    )
    build_limit_s: int = field(
        default=600,
        metadata=_about(
            "Seconds that building a network may take before its job fails; 0 for no limit.",
            kind=int,
            has_flag=False,
            bounds=(0, _DAY_S),
        ),
    )
    log_limit_mib: int = field(
        default=64,
        metadata=_about(
            "Maximum size of a job log in MiB; beyond it, only its beginning and end are kept.",
            kind=int,
            has_flag=False,
            bounds=(1, 1 << 20),
        ),
    )
    disk_reserve_mib: int | None = field(
        default=None,
        metadata=_about(
            "Free disk space in MiB below which no job starts; default: 2 % of the disk, 1 to 5 GiB.",
            kind=int,
            has_flag=False,
            bounds=(0, 1 << 20),
        ),
    )
    trash_days: int = field(
        default=30,
        metadata=_about(
            "Days for which what was deleted can be restored; if the disk is full, it is removed sooner. 0: at once.",
            kind=int,
            has_flag=False,
            bounds=(0, 3650),
        ),
    )
    worker_environment: str = field(
        default="",
        metadata=_about(
            "Additional environment variables passed to workers, such as HF_HOME or AWS_*.",
            kind=tuple,
            has_flag=False,
        ),
    )
    origins: Mapping[str, str] = field(default_factory=dict)
    is_for_others: bool = False
    offered_folders: tuple[str, ...] | None = None
    output_is_log: bool = False
    most_threads: int = 0

    def token_for(self, server: str) -> str:
        """Return the secret to send to a studio; empty where ``server`` says that the token is another one's."""
        is_for_it = not self.server or self.server.rstrip("/") == server.rstrip("/")
        return self.token.value if is_for_it else ""

    def use_color(self, stream: TextIO) -> bool:
        """Return whether text that goes to ``stream`` is colored."""
        return self.color == "always" or (self.color == "auto" and stream.isatty())


@dataclass(frozen=True)
class SettingDescription:
    """One setting, as the command line and the docs show it.

    Args:
        name: its key in the file.
        variable: its environment variable.
        flag: its command-line flag, behind the verb that takes it where that is one alone, as in ``up --port``; empty
            where it has none.
        help: one sentence.
        choices: the values it may have; empty where it is free.
        default: the value if not set.
        kind: type of the value.
        bounds: the smallest and the largest value of a whole number.
    """

    name: str
    variable: str
    flag: str
    help: str
    choices: tuple[str, ...]
    default: Any
    kind: type
    bounds: tuple[int, int] = _PORTS


def describe_settings() -> list[SettingDescription]:
    """Return all settings in the order of their declaration."""
    return [
        SettingDescription(
            name=part.name,
            variable=_PREFIX + part.name.upper(),
            flag=_flag(part.name, part.metadata["verb"]) if part.metadata["has_flag"] else "",
            help=part.metadata["help"],
            choices=part.metadata["choices"],
            default=part.default,
            kind=part.metadata["kind"],
            bounds=part.metadata["bounds"],
        )
        for part in fields(Settings)
        if part.metadata
    ]


def _flag(name: str, verb: str) -> str:
    return " ".join(filter(None, (verb, "--" + name.replace("_", "-"))))


def load_settings(
    environment: Mapping[str, str] | None = None,
    *,
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings of this process.

    Args:
        environment: the environment variables; those of the process where it is not given.
        file: a settings file that must be there; else the usual one, which need not.
        flags: setting → value from the command line; a value of None was not given.

    Raises:
        SettingsError: where a key or variable is unknown or a value is not valid; it says where it stands.
    """
    variables = os.environ if environment is None else environment
    found = _from_file(variables, file) | _from_terminal(variables) | _from_variables(variables) | _from_flags(flags)
    known = {setting.name: setting for setting in describe_settings()}
    values = {name: _checked(known[name], value, origin) for name, (value, origin) in found.items()}
    values["workspace"] = _expanded(values.get("workspace", Settings.workspace), variables)
    origins = {name: found[name][1] if name in found else "default" for name in known}
    return Settings(
        **values,
        origins=origins,
        is_for_others=bool(variables.get(_OTHERS_VARIABLE)),
        offered_folders=_folders(variables),
        output_is_log=bool(variables.get(OUTPUT_IS_LOG_VARIABLE)),
        most_threads=int(variables.get(THREADS_VARIABLE) or 0),
    )


def child_environment(
    settings: Settings,
    environment: Mapping[str, str] | None = None,
    *,
    with_secrets: bool = False,
    patterns: Sequence[str] = (),
) -> dict[str, str]:
    """Return the environment for a child process that shall have the same settings.

    Where it works for the users of a studio, it gets the variables in ``WORKER_VARIABLES``, those of ``patterns``, and
    those that the setting ``worker_environment`` names, and no others: the environment of a server may hold the
    credentials of other programs.

    Args:
        settings: of this process.
        environment: the environment variables; those of the process where it is not given.
        with_secrets: whether it gets token and database too: workers run the code of networks, and do not.
        patterns: of further variables; those that look like secrets are not passed on.
    """
    variables = dict(os.environ if environment is None else environment)
    if settings.is_for_others and not with_secrets:
        named = settings.worker_environment.split(",")
        variables = {name: value for name, value in variables.items() if _is_for_workers(name, value, named, patterns)}
    for name in _OF_WORKERS:
        variables.pop(name, None)
    for setting in describe_settings():
        if setting.kind is Secret and not with_secrets:
            variables.pop(setting.variable, None)
        elif settings.origins.get(setting.name, "default") != "default":
            value = getattr(settings, setting.name)
            variables[setting.variable] = _as_variable(value)
    if settings.is_for_others:
        variables[_OTHERS_VARIABLE] = "1"
    if settings.offered_folders is not None:
        variables[FOLDERS_VARIABLE] = json.dumps(settings.offered_folders)
    return variables


def _folders(variables: Mapping[str, str]) -> tuple[str, ...] | None:
    text = variables.get(FOLDERS_VARIABLE)
    return tuple(json.loads(text)) if text else None


def _is_for_workers(name: str, value: str, named: Sequence[str], patterns: Sequence[str]) -> bool:
    """Return whether the worker of a studio gets a variable.

    Args:
        name: of the variable.
        value: of the variable.
        named: patterns of the setting ``worker_environment``; what they name is passed on whatever it holds.
        patterns: beside ``WORKER_VARIABLES``.
    """
    if name.startswith(_PREFIX) or any(fnmatchcase(name, pattern) for pattern in named):
        return True
    if _LOOKS_SECRET.search(name) or (name.lower() in _PROXIES and "@" in value):
        return False
    return name.lower() in _PROXIES or any(fnmatchcase(name, pattern) for pattern in (*WORKER_VARIABLES, *patterns))


def _as_variable(value: Any) -> str:
    if isinstance(value, Secret):
        return value.value
    return str(value).lower() if isinstance(value, bool) else str(value)


_Found = dict[str, tuple[Any, str]]
"""Setting → its value as it came, and where it came from."""


def has_display(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether there is a display on which a browser can open."""
    variables = os.environ if environment is None else environment
    return bool(variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY"))


def _from_file(variables: Mapping[str, str], file: Path | None) -> _Found:
    asked = file or (Path(variables[_FILE_VARIABLE]) if variables.get(_FILE_VARIABLE) else None)
    usual = Path(variables.get("XDG_CONFIG_HOME") or "~/.config") / "ziggurat" / "settings.toml"
    path = _expanded(asked or usual, variables)
    content = _read_toml(path, must_exist=asked is not None)
    known = [setting.name for setting in describe_settings()]
    for name in content:
        if name not in known:
            raise _unknown(f"`{name}` in {path}", name, known)
    return {name: (value, str(path)) for name, value in content.items()}


def _read_toml(path: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not must_exist:
            return {}
        raise SettingsError(
            f"The settings file {path} must exist.", advice="Check the path, or leave `--settings` out."
        ) from None
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"The settings file {path} is not readable TOML: {str(error).rstrip('.')}.", advice="Mend the file there."
        ) from None


def _from_terminal(variables: Mapping[str, str]) -> _Found:
    # https://no-color.org: any text that is not empty; an explicit choice for this program still wins.
    if variables.get("NO_COLOR"):
        return {"color": ("never", "NO_COLOR")}
    if variables.get("TERM") == "dumb":
        return {"color": ("never", "TERM=dumb")}
    return {}


def _from_variables(variables: Mapping[str, str]) -> _Found:
    names = {setting.variable: setting.name for setting in describe_settings()}
    found = {}
    for variable, value in variables.items():
        if not variable.startswith(_PREFIX) or variable in _INTERNAL:
            continue
        if variable not in names:
            raise _unknown(f"The environment variable `{variable}`", variable, [*names, _FILE_VARIABLE])
        found[names[variable]] = (value, variable)
    return found


def _unknown(what: str, name: str, known: list[str]) -> SettingsError:
    short = {each.removeprefix(_PREFIX): each for each in known}  # the prefix alone would make all of them alike
    nearest = " or ".join(f"`{short[each]}`" for each in nearest_names(name.removeprefix(_PREFIX), short))
    advice = f"Did you mean {nearest}? " if nearest else ""
    return SettingsError(f"{what} is not a setting of this release.", advice=f"{advice}Known: {', '.join(known)}.")


def _from_flags(flags: Mapping[str, Any] | None) -> _Found:
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    return {name: (value, f"--{name.replace('_', '-')}") for name, value in given.items()}


def _checked(setting: SettingDescription, value: Any, origin: str) -> Any:
    parsed = _parsed(setting, value)
    if parsed is not None:
        return parsed
    nearest = nearest_names(str(value), setting.choices)
    hint = f"Did you mean `{nearest[0]}`? " if nearest else ""
    raise SettingsError(
        f"The setting `{setting.name}` must be {_rule(setting)}.",
        received=f"{'something else' if setting.kind is Secret else repr(value)} from {origin}",
        advice=f"{hint}{setting.help}",
    )


def _parsed(setting: SettingDescription, value: Any) -> Any:
    """Return the value in the setting's type, or None where it is not valid."""
    if setting.kind is bool:
        return _WORDS.get(str(value).lower())
    if setting.kind is Path:
        return Path(value) if isinstance(value, str | Path) and str(value) else None
    if setting.kind is int:
        return _whole_number(value, setting.bounds)
    if setting.kind is tuple:
        return _names(value)
    if setting.choices:
        return value if value in setting.choices else None
    return setting.kind(value) if isinstance(value, str) else None


def _whole_number(value: Any, bounds: tuple[int, int]) -> int | None:
    text = str(value)
    is_one = not isinstance(value, bool) and text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if is_one and bounds[0] <= int(text) <= bounds[1] else None


def _names(value: Any) -> str | None:
    """Return a list, or a text with commas between, as such a text; None where one is no name of a variable."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [None]
    names = [part.strip() if isinstance(part, str) else "?" for part in parts]
    return ",".join(filter(None, names)) if all(re.fullmatch(r"[\w*]*", name) for name in names) else None


_WORDS: Final[dict[str, bool]] = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def _rule(setting: SettingDescription) -> str:
    if setting.kind is bool:
        return "`true` or `false`"
    if setting.kind is Path:
        return "a path"
    if setting.kind is int:
        return f"a whole number from {setting.bounds[0]} to {setting.bounds[1]}"
    if setting.kind is tuple:
        return "a list of names of environment variables, in which `*` stands for anything"
    if not setting.choices:
        return "a text"
    return ", ".join(f"`{choice}`" for choice in setting.choices[:-1]) + f" or `{setting.choices[-1]}`"


def _expanded(path: Path, variables: Mapping[str, str]) -> Path:
    parts = path.parts
    return Path(variables.get("HOME") or "/", *parts[1:]) if parts and parts[0] == "~" else path
