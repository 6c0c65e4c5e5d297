"""Command ``ziggurat model import``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Verb
from ziggurat.cli.output import table
from ziggurat.compat.import_client import TIME_LIMIT_S, import_network

__all__ = ["IMPORT", "import_model"]

IMPORT: Final = Verb(
    "model.import",
    "ziggurat.compat.import_commands:import_model",
    "Import a network of Caffe or Torch.",
    "Networks and models",
)
_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("import", cls=Command)
@click.argument("source", metavar="NET", type=click.Path(path_type=Path, exists=True))
@click.argument("weights", metavar="[WEIGHTS]", required=False, type=_FILE)
@click.option("--mean", metavar="FILE", type=_FILE, help="Mean image (.binaryproto; of Torch also .jpg, .png).")
@click.option("--labels", metavar="FILE", type=_FILE, help="Class names, one in each line.")
@click.option("--solver", metavar="FILE", type=_FILE, help="solver.prototxt: optimizer, rate and schedule.")
@click.option("--until", metavar="LAYER", default="", help="Last imported layer, or several (A,B); default: all.")
@click.option("--input", "shape", metavar="CxHxW", default="", help="Size of the images, such as 1x28x28.")
@click.option(
    "--color",
    type=click.Choice(("BGR", "RGB")),
    help="Order in which the network takes colors; default: BGR for Caffe, RGB for Torch.",
)
@click.option(
    "--classes",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Number of classes, if the network leaves it open; default: the number of labels.",
)
@click.option("--out", metavar="FOLDER", required=True, type=click.Path(path_type=Path), help="New folder.")
@click.option(
    "--time-limit",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    default=TIME_LIMIT_S,
    show_default=True,
    help="Time limit in seconds.",
)
@click.pass_obj
def import_model(
    application: Application, source: Path, weights: Path | None, out: Path, time_limit: float, **given: Any
) -> int:
    """Write a network of Caffe or Torch as a network file for PyTorch, and compare the two.

    NET is a .prototxt, with WEIGHTS a .caffemodel; or a .lua file, with WEIGHTS a .t7, or a .t7 alone; or what DIGITS's
    Download Model gave (an archive or its folder), or a folder of a DIGITS job. FOLDER gets network.py,
    weights.safetensors, labels.txt, train.json (fields of a training) and report.json. The exit code is 7 if the two
    differ.
    """
    request = {"source": str(source.resolve()), "out": str(out.resolve()), "input": given.pop("shape"), **given}
    paths = {name: str(path.resolve()) for name, path in given.items() if isinstance(path, Path)}
    request |= paths | ({"weights": str(weights.resolve())} if weights else {})
    found = import_network(application.settings, request, time_limit_s=time_limit)
    application.output.document(found, _text(found, out))
    return 0 if found["parity"]["holds"] else 7


def _text(found: Mapping[str, Any], out: Path) -> str:
    apart = {row["layer"]: row["difference"] for row in found["parity"]["layers"]}
    rows = [
        (
            row["layer"],
            row["type"],
            " x ".join(map(str, row["output"])),
            f"{row['parameters']:,}" if row["parameters"] else "-",
            f"{apart[row['layer']]:.1e}" if row["layer"] in apart else "-",
        )
        for row in found["layers"]
    ]
    parts = [table(rows, ("layer", "type", "output", "parameters", "difference"))]
    parts += ["\n".join(f"- {note}" for note in found["done"])] if found["done"] else []
    parts += ["\n".join(f"Warning: {each}" for each in found["warnings"])] if found["warnings"] else []
    report = found["parity"]
    verdict = f"{'gives' if report['holds'] else 'does NOT give'} the same as {found['tool']}"
    weights = ", with random weights" if report["random_weights"] else ""
    parts.append(
        f"The network file {verdict}{weights}: largest difference {report['largest_difference']:.1e}, "
        f"allowed {report['tolerance']:.0e}."
    )
    parts.append(f"{out}: {', '.join(found['files'])}")
    return "\n\n".join(parts)
