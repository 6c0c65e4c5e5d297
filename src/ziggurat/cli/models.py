"""Commands for trained models: ``evaluate``, ``predict``, ``export``, and ``model`` for third-party models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, OpenGroup
from ziggurat.cli.job_folders import open_workspace
from ziggurat.cli.job_places import JOB
from ziggurat.cli.output import table
from ziggurat.cli.value_completion import complete_checkpoint, complete_framework
from ziggurat.cli.word_completion import complete_among, complete_in_workspace
from ziggurat.errors import DataError, UsageError
from ziggurat.plugins import PluginCatalogue
from ziggurat.serving.manifest import check_export
from ziggurat.serving.versions import ModelVersions
from ziggurat.zoo.backends import AUTO

__all__ = ["evaluate", "export", "model", "predict", "prediction_text"]

_MATRIX_CLASSES: Final = 20
_COMPLETE_MODEL: Final = complete_in_workspace(lambda root: ModelVersions(root).names())
_EXPORTS: Final = ("checkpoint", "pb", "savedmodel", "onnx", "tflite", "pt2", "safetensors")
_SHOWN_VALUES: Final = 10
_COUNTS: Final = ("step", "epoch", "samples", "skipped", "test_openings", "openings", "count", "threshold")
_FOLDER = click.argument("folder", metavar="JOB", type=JOB)
_CHECKPOINT = click.option(
    "--checkpoint",
    metavar="NAME",
    shell_complete=complete_checkpoint,
    help="Checkpoint, such as step-00000042, best or latest; default: the best, else the latest.",
)
_MODEL = click.argument("file", type=click.Path(path_type=Path))
_FRAMEWORK = click.option(
    "--framework",
    default=AUTO,
    show_default=True,
    shell_complete=complete_framework,
    help="Backend that opens it; auto: told by the file.",
)


def _time_limit(default_s: float | None) -> Any:
    kind = click.FloatRange(min=0, min_open=True)
    text = "Time limit in seconds."
    return click.option("--time-limit", metavar="S", type=kind, default=default_s, show_default=True, help=text)


@click.command(cls=Command)
@_FOLDER
@click.option(
    "--split",
    default="val",
    shell_complete=complete_among(lambda: ("train", "val", "test")),
    show_default=True,
    help="val, test or train.",
)
@_CHECKPOINT
@_time_limit(None)
@click.pass_obj
def evaluate(
    application: Application, folder: Path, split: str, checkpoint: str | None, time_limit: float | None
) -> None:
    """Test the network of JOB on every sample of a split."""
    tasks = open_workspace(application).tasks
    found = tasks.evaluate(folder, split=split, checkpoint=checkpoint, time_limit_s=time_limit)
    application.output.document(found, _evaluation_text(found))


@click.command(cls=Command)
@_FOLDER
@click.argument("images", nargs=-1, metavar="[FILE...]")
@click.option("--top", metavar="N", type=click.IntRange(min=1), default=5, show_default=True, help="Classes shown.")
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="Predictions of a network that takes no FILEs.")
@click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), help="Seed of the noise that a network is given.  [default: own]"
)
@click.option(
    "--input",
    "inputs",
    metavar="NAME=NUMBERS",
    multiple=True,
    help="Numbers of an input that a network takes beside FILEs, such as noise=0.5,-1,2; can be repeated.",
)
@click.option(
    "--pictures",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="New folder for predictions that are images, as PNG files.",
)
@_CHECKPOINT
@_time_limit(None)
@click.pass_obj
def predict(
    application: Application,
    folder: Path,
    images: tuple[str, ...],
    inputs: tuple[str, ...],
    pictures: Path | None,
    time_limit: float | None,
    **given: Any,
) -> int:
    """Predict for FILEs with the model of JOB.

    FILEs are images, or short videos, of which up to 100 frames are taken; of a model for tables CSV or JSON files,
    each row of which is predicted for; of a model for texts files with a text in each line. A file that cannot be read
    is named, the others are predicted all the same, and the exit code is 4. A model that generates takes --count and no
    FILE.
    """
    if not images and given["count"] is None:
        raise UsageError(
            "No FILE and no --count is given, so there is nothing to predict.",
            advice="Name files; of a model that generates, say how many with --count.",
        )
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if inputs:
        options["inputs"] = dict(_named_numbers(each) for each in inputs)
    if pictures is not None:
        options["pictures"] = str(pictures)
    tasks = open_workspace(application).tasks
    found = tasks.predict(folder, images, time_limit_s=time_limit, **options)
    return _show_predictions(application, found)


def _named_numbers(text: str) -> tuple[str, list[float]]:
    """Return name and numbers of ``NAME=NUMBERS``."""
    name, _, numbers = text.partition("=")
    try:
        found = [float(each) for each in numbers.split(",")]
    except ValueError:
        found = []
    if not name or not found:
        raise UsageError(
            f"`{text[:80]}` is not NAME=NUMBERS with commas between the numbers.",
            advice="Such as: --input noise=0.5,-1,2.",
        )
    return name.strip(), found


@click.command(cls=Command)
@_FOLDER
@click.option(
    "--format",
    "export_format",
    required=True,
    metavar="NAME",
    shell_complete=complete_among(lambda: _EXPORTS),
    help="TensorFlow: checkpoint, pb, savedmodel, onnx or tflite; PyTorch: pt2, onnx or safetensors.",
)
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), help="New folder; default: JOB-FORMAT here.")
@click.option(
    "--preprocessing",
    type=click.Choice(("inside", "beside")),
    default="inside",
    show_default=True,
    help="Whether crop, mean and whitening are part of the model.",
)
@_CHECKPOINT
@_time_limit(None)
@click.pass_obj
def export(
    application: Application,
    folder: Path,
    export_format: str,
    out: Path | None,
    preprocessing: str,
    checkpoint: str | None,
    time_limit: float | None,
) -> int:
    """Write the network of JOB for other programs, and prove on real samples that it gives the same.

    The folder gets the model, its parity report, a model card, and a predict.py that needs no Ziggurat. The exit code
    is 1 where the exported model does not give the same.
    """
    options = {"preprocessing": preprocessing, "checkpoint": checkpoint, "time_limit_s": time_limit}
    found = open_workspace(application).tasks.export(folder, export_format, out, **options)
    application.output.document(found, _export_text(found))
    return 0 if found["parity"]["holds"] else 1


def _chosen(framework: str) -> str:
    """Return the backend that was asked for; empty where the file tells."""
    return "" if framework == AUTO else framework


@click.group(cls=OpenGroup, catalog=PluginCatalogue())
def model() -> None:
    """Inspect models that were trained elsewhere, and predict with them; keep versions of models for `serve`.

    FILE is TensorFlow's: a frozen graph (.pb), a checkpoint (its .meta file, prefix or folder), or a SavedModel; an
    ONNX model (.onnx); or PyTorch's: an exported program (.pt2), or TorchScript (.pt).
    """


@model.command()
@_MODEL
@_FRAMEWORK
@_time_limit(120.0)
@click.pass_obj
def inspect(application: Application, file: Path, framework: str, time_limit: float) -> None:
    """List the inputs and outputs of the model in FILE, likely outputs first."""
    found = open_workspace(application).tasks.inspect_model(file, backend=_chosen(framework), time_limit_s=time_limit)
    application.output.document(found, _model_text(found))


@model.command("add")
@click.argument("name", shell_complete=_COMPLETE_MODEL)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--alias", metavar="ALIAS", help="Name of this version, such as candidate; the first is the champion.")
@click.pass_obj
def add_version(application: Application, name: str, folder: Path, alias: str | None) -> None:
    """Copy the export in FOLDER into the workspace, as the next version of the model NAME.

    `ziggurat serve NAME` answers by the version that has the alias champion.
    """
    versions = ModelVersions(application.settings.workspace.expanduser())
    made = versions.add(name, folder)
    if alias is not None:
        versions.set_alias(name, alias, made.version)
    _show_versions(application, versions, name)


@model.command("versions")
@click.argument("name", required=False, shell_complete=_COMPLETE_MODEL)
@click.pass_obj
def list_versions(application: Application, name: str | None) -> None:
    """List the versions of the model NAME with their aliases, or of all models of the workspace."""
    versions = ModelVersions(application.settings.workspace.expanduser())
    if name is not None:
        versions.resolve(name)  # an unknown name is an error
    _show_versions(application, versions, *([name] if name is not None else versions.names()))


@model.command("alias")
@click.argument("name", shell_complete=_COMPLETE_MODEL)
@click.argument("alias", shell_complete=complete_among(lambda: ("champion", "candidate")))
@click.argument("version", type=click.IntRange(min=1), required=False)
@click.pass_obj
def set_alias(application: Application, name: str, alias: str, version: int | None) -> None:
    """Let ALIAS name a VERSION of the model NAME; without a VERSION, remove the alias.

    A running server that follows the alias switches within seconds, if the version passes its self-test there.
    """
    versions = ModelVersions(application.settings.workspace.expanduser())
    versions.set_alias(name, alias, version)
    _show_versions(application, versions, name)


def _show_versions(application: Application, versions: ModelVersions, *names: str) -> None:
    rows, content = [], []
    for name in names:
        aliases = versions.aliases(name)
        for each in versions.versions(name):
            said = check_export(each.folder).provenance
            own = [alias for alias, version in aliases.items() if version == each.version]
            source = f"{said.get('name') or said.get('job', '')}, {said.get('checkpoint', '')}".strip(", ")
            rows.append((name, str(each.version), " ".join(own) or "-", source))
            content.append({"name": name, "version": each.version, "aliases": own, "provenance": dict(said)})
    application.output.document(content, table(rows, ("model", "version", "aliases", "from")))


@model.command("predict")
@_MODEL
@click.argument("files", nargs=-1, required=True, metavar="IMAGE|ARRAY.npy...")
@click.option("--input", "input_name", metavar="NAME", help="Input; optional if there is only one.")
@click.option("--output", "output_names", metavar="NAME", multiple=True, help="Output; repeatable.")
@click.option("--scale", metavar="X", type=float, default=1.0, help="Factor of an image's 0 to 255.  [default: 1]")
@click.option("--feed", "feeds", metavar="NAME=X", multiple=True, help="Value of another input; repeatable.")
@_FRAMEWORK
@_time_limit(120.0)
@click.pass_obj
def predict_with(
    application: Application,
    file: Path,
    files: tuple[str, ...],
    framework: str,
    time_limit: float,
    **options: Any,
) -> int:
    """Predict images, or arrays written by numpy.save, with the model in FILE.

    `ziggurat model inspect` lists the names of inputs and outputs.
    """
    chosen = {"input": options["input_name"], "outputs": list(options["output_names"]), "scale": options["scale"]}
    chosen |= {
        "feeds": _numbers(options["feeds"]),
        "backend": _chosen(framework),
        "time_limit_s": time_limit,
    }
    return _show_predictions(application, open_workspace(application).tasks.predict_with_model(file, files, **chosen))


def _numbers(feeds: Sequence[str]) -> dict[str, float]:
    numbers = {}
    for feed in feeds:
        name, _, text = feed.partition("=")
        try:
            numbers[name] = float(text)
        except ValueError:
            raise UsageError(
                f"`{feed}` is not NAME=X with a number X, which `--feed` takes.",
                advice="Write it as in: --feed keep_prob=1.",
            ) from None
    return numbers


def _show_predictions(application: Application, found: dict[str, Any]) -> int:
    """Show what was predicted and which files were bad; return the exit code."""
    output, failures = application.output, found["failures"]
    if found["predictions"] or output.as_json:
        output.document(found, "\n".join(prediction_text(each) for each in found["predictions"]))
    if not output.as_json:
        if "checkpoint" in found:
            output.note(f"Predicted by {found['checkpoint']}: step {found['step']}, epoch {found['epoch']}.")
        pictures = [each["picture"] for each in found["predictions"] if "picture" in each]
        if pictures:
            written = sum(each is not None for each in pictures)
            output.note(f"{_files(written)} written." if written else "No prediction of this network is an image.")
        if problem := found.get("operating_point", {}).get("problem"):
            output.note(f"Note: {problem}")
        for note in found.get("notes", ()):
            output.note(f"Left out: {note}")
        for failure in failures:
            output.note(f"Error: {failure['message']}")
    return DataError.exit_code if failures else 0


def prediction_text(prediction: Mapping[str, Any]) -> str:
    """Return a prediction of any task in one line, a note in another; unknown outputs in several."""
    if note := prediction.get("note"):
        rest = {name: value for name, value in prediction.items() if name != "note"}
        return f"{prediction_text(rest)}\n  Note: {note}"
    if "classes" in prediction and all("probability" in each for each in prediction["classes"]):
        found = "  ".join(f"{each['class']} {each['probability']:.2%}" for each in prediction["classes"])
        return f"{prediction['file']}: {_decision(prediction)}{found}"
    if "outputs" not in prediction:
        said = {name: value for name, value in prediction.items() if name != "file" and value is not None}
        return f"{prediction['file']}: {'  '.join(_said(name, value) for name, value in said.items())}"
    lines = [
        f"{name} {_shape(each['shape'])}: {_values(each['values'])}" for name, each in prediction["outputs"].items()
    ]
    drawn = [f"image {prediction['picture']}"] if prediction.get("picture") else []
    return "\n  ".join([f"{prediction['file']}:", *lines, *drawn])


def _decision(prediction: Mapping[str, Any]) -> str:
    """Return which class an operating point decides for; empty if there is none."""
    decision = prediction.get("decision")
    return "" if decision is None else f"{decision['class'] or 'undecided'} (threshold {decision['threshold']:g}):  "


def _evaluation_text(found: Mapping[str, Any]) -> str:
    head = f"{found['folder']}, {found['checkpoint']} (step {found['step']}): "
    head += f"{found['samples']} samples of {found['split']}"
    if found["skipped"]:
        head += f", {_files(found['skipped'])} could not be read"
    known = {**found, **found.get("metrics", {})}
    figures = {**found["scalars"], **{name: value for name, value in known.items() if _is_metric(name, value)}}
    parts = [head, "\n".join(f"  {name:<12} {value:.6g}" for name, value in figures.items())]
    if found["unreadable"]:
        parts.insert(1, _unreadable_text(found["unreadable"], found["skipped"]))
    if found["classifier"]:
        rows = [
            (each["class"], str(each["samples"]), _percent(each["precision"]), _percent(each["recall"]))
            for each in found["classes"]
        ]
        parts.append(table(rows, ("class", "samples", "precision", "recall")))
        parts.append(_matrix_text(found))
    elif not found.get("is_measured", True):
        parts.append("This network gives no class scores: its figures are the means over all samples.")
    else:
        parts += [_rows_text(rows) for rows in known.values() if _is_table(rows)]
    if found.get("baselines") and found["split"] == "val":
        parts.append(f"Validation: {found['baselines']}")
    return "\n\n".join(parts)


def _is_metric(name: str, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and name not in _COUNTS


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _rows_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of a table that a metric gave: of each class, or of each value."""
    names = [name for name in rows[0] if not isinstance(rows[0][name], list | dict)]
    return table([[_text(row[name]) for name in names] for row in rows], names)


def _unreadable_text(unreadable: Sequence[Mapping[str, str]], count: int) -> str:
    lines = [f"  {each['file']}: {each['reason']}" for each in unreadable]
    more = count - len(lines)
    return "\n".join(["Unreadable:", *lines, *([f"  and {_files(more)} more"] if more else [])])


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _matrix_text(found: Mapping[str, Any]) -> str:
    """Return the confusion matrix as a table; of many classes the most frequent errors, which is all that is known of
    them where there are too many for a matrix."""
    if "confusion" not in found:
        return _confused_text([(each["class"], each["predicted"], each["samples"]) for each in found["confused"]])
    names, matrix = [each["class"] for each in found["classes"]], found["confusion"]
    if len(names) > _MATRIX_CLASSES:
        wrong = [
            (count, names[row], names[column])
            for row, line in enumerate(matrix)
            for column, count in enumerate(line)
            if row != column and count
        ]
        worst = sorted(wrong, reverse=True)[:_MATRIX_CLASSES]
        return _confused_text([(label, taken, count) for count, label, taken in worst])
    rows = [(name, *(str(count) for count in line)) for name, line in zip(names, matrix)]
    return "Rows: the class; columns: what it was taken for.\n" + table(rows, ("", *names))


def _confused_text(errors: Sequence[tuple[str, str, int]]) -> str:
    return table([(label, taken, str(count)) for label, taken, count in errors], ("class", "taken for", "samples"))


def _export_text(found: Mapping[str, Any]) -> str:
    report = found["parity"]
    rows = [(name.replace("_", " "), _text(value)) for name, value in report.items()]
    verdict = "The exported model gives the same." if report["holds"] else "The exported model does NOT give the same."
    source = f"{report['samples']} samples of {found['split']}"
    signer = f"Signed by the key {found['signed_by']}." if found["signed_by"] else f"Not signed. {found['unsigned']}"
    parts = [f"{found['out']}: {', '.join(found['files'])}", table(rows, ("parity", source)), f"{verdict}\n{signer}"]
    if point := found.get("operating_point"):
        shown = ", ".join(f"{name} {value:g}" for name, value in point["thresholds"].items())
        parts.append(point["problem"] or f"Predictions obey the operating point: {shown}.")
    return "\n\n".join(parts)


def _model_text(found: Mapping[str, Any]) -> str:
    signatures = found["signatures"]
    named = {name for signature in signatures.values() for name in signature["outputs"].values()}
    likely = [each for each in found["outputs"] if not each["readers"] or each["name"] in named]
    others = [each["name"] for each in found["outputs"] if each not in likely]
    parts = [
        f"{found['model']}: {found['kind']}",
        f"Inputs\n{_tensors(found['inputs'])}",
        f"Likely outputs (nothing else reads them, or a signature names them)\n{_tensors(likely)}",
    ]
    if others:
        parts.append(f"Other outputs: {', '.join(others)}")
    for name, signature in signatures.items():
        sides = (", ".join(f"{key}: {each}" for key, each in signature[side].items()) for side in ("inputs", "outputs"))
        parts.append(f"Signature {name}: {' → '.join(sides)}")
    return "\n\n".join(parts)


def _tensors(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [(each["name"], each["kind"], each["dtype"], _shape(each["shape"])) for each in found]
    return table(rows, ("name", "type", "numbers", "shape"))


def _shape(shape: Sequence[int | None] | None) -> str:
    return "?" if shape is None else f"({', '.join('N' if side is None else str(side) for side in shape)})"


def _values(values: Any) -> str:
    """Return the first numbers of an array."""
    flat = [values]
    while flat and isinstance(flat[0], list):
        flat = [each for part in flat for each in part]
    shown = " ".join(f"{value:.6g}" for value in flat[:_SHOWN_VALUES])
    return shown + (" …" if len(flat) > _SHOWN_VALUES else "")


def _said(name: str, value: Any) -> str:
    """Return one part of a prediction in a line: ``price 12.5``, ``cat 93.00 %``, ``size 28 x 28``."""
    if _is_table(value):
        return "  ".join(" ".join(_text(part) for key, part in row.items() if key != "number") for row in value)
    if isinstance(value, list):
        return f"{name} {' x '.join(_text(each) for each in value)}"
    return f"{name} {_text(value)}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)
