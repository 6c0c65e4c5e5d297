"""``ziggurat job predict``: predictions of a studio's model for local images, and a Grad-CAM map."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_reach import JobId, reaches_studio, studio_client
from ziggurat.errors import DataError, StorageError, UsageError

__all__ = ["job_predict"]


@click.command("predict", cls=Command)
@click.argument("job_id", metavar="ID", type=JobId())
@click.argument("images", nargs=-1, metavar="[IMAGE]...", type=click.Path(path_type=Path))
@click.option("--url", metavar="ADDRESS", default="", help="An image that the studio fetches: http:// or https://.")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Classes shown.")
@click.option("--checkpoint", metavar="NAME", default="", help="Such as best or latest; else the best, or the latest.")
@click.option(
    "--grad-cam",
    "target",
    metavar="FILE.png",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the one image there, in color where it speaks for its class (Grad-CAM).",
)
@click.option("--grad-cam-class", metavar="CLASS", default="", help="Number or name; else the likeliest.")
@click.option("--grad-cam-layer", metavar="LAYER", default="", help="With maps; else that of the last convolution.")
@reaches_studio
@click.pass_obj
def job_predict(
    application: Application, job_id: str, images: tuple[Path, ...], url: str, target: Path | None, **options: Any
) -> int:
    """Send IMAGEs of this machine to the model of the job ID; exit code 4 where one cannot be read there."""
    asked = {name: options.pop(name) for name in ("top", "checkpoint", "grad_cam_class", "grad_cam_layer")}
    _check(images, url, target, asked)
    asked["grad_cam"] = None if target is None else True
    with studio_client(application, options) as client:
        found = client.models.predict(job_id, images, url=url, **asked)
    lines = [_prediction_text(each) for each in found["predictions"]]
    lines += [f"Not read: {each['message']}" for each in found["failures"]]
    if target is not None and found["grad_cam"] is not None:
        lines.append(_save(found["grad_cam"], target))
    application.output.document(found, "\n".join(lines))
    return DataError.exit_code if found["failures"] else 0


def _check(images: Sequence[Path], url: str, target: Path | None, asked: Mapping[str, Any]) -> None:
    """Refuse what cannot be asked."""
    if not images and not url:
        raise UsageError("An image is named: IMAGE, or --url with its address.", received="none")
    missing = next((image for image in images if not image.is_file()), None)
    if missing is not None:
        raise UsageError("An image to send is a file of this machine.", received=str(missing))
    if target is None and (asked["grad_cam_class"] or asked["grad_cam_layer"]):
        raise UsageError("A class or layer of Grad-CAM goes with `--grad-cam FILE.png`.", received="no such file")


def _save(heat: Mapping[str, Any], target: Path) -> str:
    """Write the image with its heat; return what is said of it."""
    try:
        target.write_bytes(base64.b64decode(heat["png"]))
    except OSError as error:
        raise StorageError(
            "The image of Grad-CAM must be written to a folder that is there.", received=str(error)
        ) from error
    found = f"{target}: where it looked for {heat['class']}, at the layer {heat['layer']}"
    return found if heat["largest"] else f"{found}; nothing speaks for this class there"


def _prediction_text(prediction: Mapping[str, Any]) -> str:
    if "classes" in prediction:
        named = "  ".join(f"{each['class']} {each['probability']:.2%}" for each in prediction["classes"])
        return f"{prediction['file']}: {named}"
    shapes = (f"{name} {tuple(each['shape'])}" for name, each in prediction["outputs"].items())
    return f"{prediction['file']}: {', '.join(shapes)}; --json shows the values"
