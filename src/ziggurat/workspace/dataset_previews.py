"""Previews of a source for the new-dataset form, each in a process of its own with a time limit."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.errors import ConfigurationError, DataError, NetworkCodeError, SpecError, UsageError
from ziggurat.specs import DatasetSpec, parse_spec
from ziggurat.workspace.new_dataset import stored_source
from ziggurat.workspace.tasks import Tasks

__all__ = ["MOST_SAMPLES", "MOST_SCANNED", "preview_dataset"]

MOST_SAMPLES: Final = 200
"""Samples that are shown at most."""

MOST_SCANNED: Final = 100_000
"""Samples and problems after which the walk through a source ends, unless another is given."""

_LONGEST_S: Final = 120.0
_GRACE_S: Final = 30.0
"""How long the process may go on after its time, for code that cannot be interrupted."""


def preview_dataset(
    tasks: Tasks,
    spec: Mapping[str, Any],
    *,
    samples: int = 24,
    time_limit_s: float = 10.0,
    at_most: int = MOST_SCANNED,
    offered: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return what is in a source, as far as it can be seen in a given time.

    Args:
        tasks: run the look.
        spec: decoded JSON of the spec of a dataset; all but ``source`` may be missing.
        samples: how many are shown.
        time_limit_s: how long to look.
        at_most: samples and problems after which the walk ends.
        offered: folders below which files may be read; None for all.

    Returns:
        What ``ziggurat.worker.commands.dataset_previews.preview_dataset`` returns.

    Raises:
        SpecError: where the spec, the format or an option is wrong; ``details["field"]`` names it.
        DataError: where the source is not there, is somewhere else, is not recognized, or takes too long to open.
        UsageError: where a number is out of its range.
    """
    _check("samples", samples, 0, MOST_SAMPLES)
    _check("time_limit_s", time_limit_s, 0.1, _LONGEST_S)
    _check("at_most", at_most, 1, 10_000_000)
    asked = parse_spec({"kind": "dataset", "version": 1, **spec}, source="the request")
    if not isinstance(asked, DatasetSpec):
        raise SpecError("A dataset has a spec of kind dataset.", received=asked.kind)
    content = asked.model_copy(update={"source": stored_source(asked.source)}).model_dump(mode="json")
    with tempfile.TemporaryDirectory(prefix="ziggurat-") as folder:
        request = {
            "spec": content,
            "samples": samples,
            "time_limit_s": time_limit_s,
            "at_most": at_most,
            "folder": folder,
            "offered": None if offered is None else list(offered),
        }
        try:
            return tasks.preview_dataset(request, time_limit_s=time_limit_s + _GRACE_S)
        except NetworkCodeError as error:  # the word of tasks for one that does not end
            raise DataError(
                "A source is looked at in the time that there is.",
                received=f"`{asked.source}`, which took more than {time_limit_s + _GRACE_S:g} s",
                advice="Make the dataset without a look at it, or name a part of the source.",
            ) from error
        except ConfigurationError as error:
            raise _as_spec_error(error) from None


def _as_spec_error(error: ConfigurationError) -> ConfigurationError:
    """Return the error of another process as what it was there: only its family comes across."""
    if error.code != SpecError.code:
        return error
    received = {} if error.received is None else {"received": error.received}
    return SpecError(error.rule, advice=error.advice, details=error.details, **received)


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise UsageError(f"`{name}` is from {least:g} to {most:g}.", received=f"{value:g}")
