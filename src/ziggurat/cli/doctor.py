"""``ziggurat doctor``; a module of its own because it reads the studio's store, which is slow to import."""

from __future__ import annotations

import dataclasses

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.settings import Secret
from ziggurat.workspace.doctor import examine

__all__ = ["doctor"]


@click.command(cls=Command)
@click.option("--database", metavar="URL", help="Database of the studio; default: as configured.")
@click.pass_obj
def doctor(application: Application, database: str | None) -> int:
    """Diagnose problems of this machine, with remedies; exit code 1 if there is one."""
    findings, output, settings = [], application.output, application.settings
    if database:
        settings = dataclasses.replace(settings, database=Secret(database))
    for finding in examine(settings):
        findings.append(finding)
        if not application.as_json:
            advice = f"\n{'':20}{finding.advice}" if finding.advice else ""
            line = f"{finding.section:<11}{output.word(finding.level):<9}{finding.name}: {finding.text}{advice}"
            output.line(None, line)
    if application.as_json:
        output.document([finding.as_dict() for finding in findings], "")
    return int(any(finding.level == "problem" for finding in findings))
