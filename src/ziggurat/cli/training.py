"""Options ``--recipe``, ``--fine-tune`` and ``--test-batch`` of ``train``; training without any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields as fields_of
from typing import Any

from ziggurat.cli.application import Application
from ziggurat.cli.output import table
from ziggurat.errors import UsageError
from ziggurat.formatting import as_bytes, as_duration, as_percent
from ziggurat.specs import TrainSpec, assign, describe_fields, present_path, upgrade
from ziggurat.workspace.fine_tuning import FINE_TUNE_SUMMARY, fine_tune_fields
from ziggurat.workspace.recipe_fields import fill_recipe, local_recipe
from ziggurat.workspace.recipes import Recipe
from ziggurat.workspace.training_checks import DIGITS
from ziggurat.zoo.backends import AUTO

__all__ = [
    "check_says_something",
    "lacks_network",
    "local_recipe",
    "studio_recipe",
    "test_batch_text",
    "with_fine_tuning",
    "with_recipe",
]


def lacks_network(flags: Mapping[str, str], assignments: Iterable[str]) -> bool:
    """Return whether a command line names data and no network: the recommended recipe has one.

    Args:
        flags: field → text, from the command line.
        assignments: ``PATH=VALUE`` texts, from the command line.
    """
    texts = _texts(flags, assignments)
    return bool(_part(texts, {}, "data", "source")) and not any(path.partition(".")[0] == "network" for path in texts)


def check_says_something(flags: Mapping[str, str], assignments: Iterable[str]) -> None:
    """Refuse a command line without a file that names neither data nor a network.

    Raises:
        UsageError: if that is so; it shows the shortest training.
    """
    texts = _texts(flags, assignments)
    if not any(path.partition(".")[0] in ("data", "network") for path in texts):
        raise UsageError(
            "No data is given to train on.",
            advice="Name a folder, a dataset or the built-in digits, as in: ziggurat train --data digits.",
        )


def with_recipe(
    application: Application,
    base: Mapping[str, Any] | None,
    flags: Mapping[str, str],
    assignments: Iterable[str],
    recommended: Callable[[str, str | None], Recipe | None],
    *,
    is_asked: bool = True,
) -> dict[str, Any]:
    """Return the content of a spec, with the recommended recipe in the fields that were not given.

    Args:
        application: prints the recipe.
        base: decoded spec file; None if there is none.
        flags: field → text, from the command line.
        assignments: ``PATH=VALUE`` texts, from the command line.
        recommended: returns the recipe for a source and the chosen network (see ``recommend``).
        is_asked: whether it was asked for: its fields are printed then, else one line.

    Raises:
        UsageError: if the data is not named, or there is no recipe for it.
        DataError: if the data does not exist.
    """
    content: dict[str, Any] = dict(upgrade(base or {"kind": "train", "version": 1}))
    texts = _texts(flags, assignments)
    source = _part(texts, content, "data", "source")
    if not source:
        raise UsageError("`--recipe` is given without `--data`.", advice="Name the data: --data digits, or a folder.")
    recipe = recommended(source, _network(texts, content))
    if recipe is None:
        raise UsageError(
            f"There is no recipe for `{source}`: it is no finished dataset that networks are trained on.",
            advice="Choose network and options yourself.",
        )
    chosen = fill_recipe(content, texts, recipe)
    if not is_asked:
        application.output.note(f"No network is given: the recommended recipe is used. {recipe.summary}")
        return content
    application.output.note(f"Recipe: {recipe.summary} {recipe.reason}")
    application.output.note(table([(path, str(value)) for path, value in chosen.items()], ("field", "chosen")))
    return content


def with_fine_tuning(
    application: Application, base: Mapping[str, Any] | None, flags: Mapping[str, str], assignments: Iterable[str]
) -> dict[str, Any]:
    """Return the content of a spec, with the preset "Fine-tune" in the fields that were not given.

    Args:
        application: prints the fields.
        base: decoded spec file; None if there is none.
        flags: field → text, from the command line.
        assignments: ``PATH=VALUE`` texts, from the command line.
    """
    content: dict[str, Any] = dict(upgrade(base or {"kind": "train", "version": 1}))
    texts = _texts(flags, assignments)
    fields = {field.path: field for field in describe_fields(TrainSpec)}
    preset = fine_tune_fields(_part(texts, content, "optimizer", "name"))
    chosen = {path: value for path, value in preset.items() if not _is_given(path, texts, content)}
    for path, value in chosen.items():
        assign(content, path, value, fields)
    application.output.note(f"Fine-tune: {FINE_TUNE_SUMMARY}")
    application.output.note(table([(path, str(value)) for path, value in chosen.items()], ("field", "chosen")))
    return content


def _texts(flags: Mapping[str, str], assignments: Iterable[str]) -> dict[str, str]:
    """Return path in the spec → text of what a command line gives."""
    texts = {present_path(name): text for name, text in flags.items()}
    return texts | {present_path(path.strip()): text for path, _, text in (each.partition("=") for each in assignments)}


def _is_given(path: str, texts: Mapping[str, str], content: Mapping[str, Any]) -> bool:
    """Return whether a field is given: on its own or with its whole, but of fine-tuning each part counts for itself."""
    top, _, part = path.partition(".")
    if path in texts or top in texts:
        return True
    if top == "fine_tuning":
        known = content.get(top)
        return isinstance(known, Mapping) and part in known
    return top in content or any(each.startswith(f"{top}.") for each in texts)


def studio_recipe(client: Any, dataset: str | None) -> Callable[[str, str | None], Recipe | None]:
    """Return a function that requests the recipe of a dataset from a studio.

    Args:
        client: of the studio.
        dataset: its id; None if the spec names the data.
    """

    def recommended(source: str, network: str | None) -> Recipe | None:
        if dataset is None and source != DIGITS:
            raise UsageError(
                f"`{source}` is no dataset of the studio, so it has no recipe there.",
                advice="Create a dataset with `ziggurat job dataset`, and name its id: --dataset ID.",
            )
        found = client.previews.recipe(dataset or DIGITS, network=network)
        return None if found is None else Recipe(**{part.name: found[part.name] for part in fields_of(Recipe)})

    return recommended


def _part(texts: Mapping[str, str], content: Mapping[str, Any], name: str, part: str) -> str:
    """Return a part of a field as text, from the command line, else from a spec file, else empty."""
    given = texts.get(f"{name}.{part}") or texts.get(name)
    if given is not None:
        return given.strip()
    found = content.get(name)
    return str((found.get(part) if isinstance(found, Mapping) else found) or "")


def _network(texts: Mapping[str, str], content: Mapping[str, Any]) -> str | None:
    """Return the given network as ``recommend`` takes it; None if none was given."""
    backend = texts.get("backend") or str(content.get("backend") or AUTO)
    if not {"network", "network.name"} & texts.keys() and content.get("network") is None:
        return None if backend == AUTO else f"{backend}/"
    name = _part(texts, content, "network", "name")
    if not name or name.endswith(".py") or "/" in name:
        return ""
    return name if backend == AUTO else f"{backend}/{name}"


def test_batch_text(found: Mapping[str, Any]) -> str:
    """Return the result of a test batch as text."""
    rows = [
        ("time", f"{_seconds(found['total_s'])} in all, {_seconds(found['epoch_s'])} an epoch"),
        ("step", f"{1000 * found['step_s']:.3g} ms, {as_percent(found['data_wait_share'], 0)} of it waiting for data"),
        ("memory", as_bytes(found["memory_bytes"])),
    ]
    if found["device_memory_bytes"] is not None:
        rows.append(("GPU memory", as_bytes(found["device_memory_bytes"])))
    if found["largest_batch"] is not None:
        expected = as_bytes(found["largest_batch_bytes"])
        rows.append(("largest batch", f"{found['largest_batch']}, about {expected}"))
    rate = found["rate"]
    if rate is not None:
        own = rate["own"]
        held = "stays finite" if own["finite"] else f"is not finite at step {own['step']}"
        rows.append(("learning rate", f"the loss {held} at {own['rate']:g}"))
        if rate["suggested"] is not None:
            rows.append(("suggested rate", f"{rate['suggested']:g}, {rate['rule']}"))
        if rate["largest_finite"] is not None:
            least = "at least " if rate["largest_is_bound"] else ""
            rows.append(("largest finite rate", f"{least}{rate['largest_finite']:.2g}"))
    return "\n".join(f"{title:<21}{text}" for title, text in rows)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 9.95 else as_duration(seconds)
