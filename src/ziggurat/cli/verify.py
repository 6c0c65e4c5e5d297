"""Command ``verify``: whether the files of an export are those that were signed, and by whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.errors import UnknownSignerError, UnsignedExportError, UsageError
from ziggurat.serving.manifest import ExportCheck, check_export, public_key_of
from ziggurat.workspace.signing_keys import SigningKeys

__all__ = ["verify"]


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--key",
    "key_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Public key that is trusted (PEM); default: the keys of the workspace.",
)
@click.pass_obj
def verify(application: Application, folder: Path, key_file: Path | None) -> int:
    """Check that the export in FOLDER has exactly the files that were exported, and who signed it.

    The exit code is 0 if it is intact and signed by a known key; 12 if a file was changed, removed or added; 13 if it
    is intact and signed by an unknown key; 14 if it is intact but not signed.
    """
    found = check_export(folder, _known_keys(application, key_file))
    if not found.fingerprint:
        verdict, code = "intact; not signed", UnsignedExportError.exit_code
    elif found.is_known:
        verdict, code = f"intact; signed by {found.fingerprint}", 0
    else:
        verdict, code = "intact; signed by an unknown key", UnknownSignerError.exit_code
    content = {"verdict": verdict, "files": len(found.files), "signed_by": found.fingerprint, "known": found.is_known}
    lines = [verdict, *_provenance(found)]
    if code == UnknownSignerError.exit_code:
        lines.append(f"Its key: {found.fingerprint}. Compare this with what the sender tells you.")
    application.output.document({**content, "provenance": dict(found.provenance)}, "\n".join(lines))
    return code


def _known_keys(application: Application, key_file: Path | None) -> list[Any]:
    if key_file is None:
        return SigningKeys(application.settings.workspace.expanduser()).known()
    try:
        return [public_key_of(key_file.read_bytes(), str(key_file))]
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"`{key_file}` cannot be read: {reason}.", advice="Check the path.") from None


def _provenance(found: ExportCheck) -> list[str]:
    said = found.provenance
    dataset = said.get("dataset", {})
    data = dataset.get("name") or dataset.get("source", "")
    rows = [
        ("job", said.get("name") or said.get("job")),
        ("checkpoint", said.get("checkpoint")),
        ("dataset", f"{data} {dataset.get('id', '')[:12]}".strip()),
        ("made by", f"Ziggurat {said.get('ziggurat', '?')}, {said.get('framework', '?')}"),
    ]
    return [f"  {name}: {value}" for name, value in rows if value]
