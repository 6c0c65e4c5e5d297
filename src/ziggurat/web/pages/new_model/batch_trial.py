"""Test batch on the new-model page: its start and cancellation, its figures, and the curve of learning rates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import Request, Response

from ziggurat.errors import MissingEntryError, ZigguratError
from ziggurat.formatting import as_bytes, as_count, as_duration, as_number, as_percent
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.new_model.kept import keep_draft
from ziggurat.web.pages.new_model.looks import preflight_look
from ziggurat.web.pages.new_model.request import Asked
from ziggurat.web.pages.new_model.routes import Sent, posted_form, read_form, whole_page
from ziggurat.web.rendering import is_part, part, see_other
from ziggurat.web.spread import spread_indices
from ziggurat.workspace.recipes import FEWEST_STEPS
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.batch_trials import CANCELED

__all__ = ["batch_look", "curve_picture", "router"]

router = new_router()

_FILLED: Final = {"learning_rate": float, "batch_size": int}
"""Field of the form that a button fills in → what its value must be."""

_WIDTH, _HEIGHT = 320, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 12, 40
_TABLE_ROWS: Final = 10
_HIGHEST: Final = 1.5
"""Times the first loss up to which the curve is drawn: what explodes at its end would flatten the rest."""


@router.post("/models/new/test-batch", include_in_schema=False)
def run(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Train some steps of what the form asks for, and return what was measured."""
    form = posted_form(studio, sent)
    asked = read_form(studio, form)
    shown: dict[str, Any]
    if asked.problems:
        shown = {"error": {"rule": "A test batch needs a complete form.", "advice": "Fix the marked fields."}}
    else:
        try:
            found = studio.training.test_batch(asked.request, ticket=_ticket(who.name))
            shown = batch_look(found)
        except ZigguratError as error:
            if error.details.get("reason") != CANCELED:
                shown = {"error": error.as_dict()}
            else:  # as was asked for
                shown = {"error": None, "is_canceled": True}
    if is_part(request):
        return part(request, "new_model/test_batch.html", test_batch=shown)
    return whole_page(request, studio, form, asked, draft=keep_draft(request, form), test_batch=shown)


@router.post("/models/new/test-batch/cancel", include_in_schema=False)
def cancel(studio: StudioDep, who: TrainerUser) -> Response:
    """End the test batch of this user; its own request then answers that it was canceled."""
    try:
        studio.training.test_batches.cancel(_ticket(who.name))
    except MissingEntryError:  # it ended meanwhile
        pass
    return Response(status_code=204)


@router.get("/models/new/test-batch/use", include_in_schema=False)
def come_back(request: Request, _who: TrainerUser) -> Response:
    """Send those who ask for the filled-in form by its address to the form."""
    return see_other(request, "/models/new")


@router.post("/models/new/test-batch/use", include_in_schema=False)
def use(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Return the form with a value of the test batch filled in."""
    form = posted_form(studio, sent)
    name, _, text = str(sent.get("use", "")).partition("=")
    if name in _FILLED and _is_value(name, text):
        form.values[name] = text
    asked, draft = read_form(studio, form), keep_draft(request, form)
    shown = _last_look(studio, who.name, asked)
    quick = preflight_look(studio, form, asked, whole=False)
    return whole_page(
        request, studio, form, asked, shows_problems=False, draft=draft, preflight=quick, test_batch=shown
    )


@router.post("/models/new/test-batch/figures", include_in_schema=False)
def figures(request: Request, studio: StudioDep, who: TrainerUser, sent: Sent) -> Response:
    """Return the figures of the last test batch for the form as it is now."""
    shown = _last_look(studio, who.name, read_form(studio, posted_form(studio, sent)))
    if shown is None or not is_part(request):  # the studio was started again
        return Response(status_code=204)
    return part(request, "new_model/test_batch_facts.html", found=shown)


def _last_look(studio: Studio, name: str, asked: Asked) -> dict[str, Any] | None:
    """Return what the page shows of a user's last test batch: with the times of the form as it is now if the figures
    hold for that, else as stale; None if there was none.
    """
    found = studio.training.test_batches.last(_ticket(name))
    if found is None:
        return None
    try:
        now = None if asked.problems else studio.training.measured(asked.request)
    except ZigguratError:
        now = None
    return {**batch_look({**found, **(now or {}), "rate": found["rate"]}), "is_stale": now is None}


def batch_look(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a test batch: ``facts`` (title, value), ``curve``, ``uses`` (field, value, text).

    Args:
        found: see ``ziggurat.workspace.studio.training.Training.test_batch``.
    """
    facts = [
        ("Whole training", as_duration(found["total_s"])),
        ("Epoch", _seconds(found["epoch_s"])),
        ("Step", f"{1000 * found['step_s']:.3g} ms"),
        ("Waiting for data", f"{as_percent(found['data_wait_share'], 0)} of the time"),
        ("Peak memory", as_bytes(found["memory_bytes"])),
    ]
    if found["device_memory_bytes"] is not None:
        facts.append(("Memory of the GPU", as_bytes(found["device_memory_bytes"])))
    uses: list[tuple[str, str, str]] = []
    largest, batch = found["largest_batch"], found["batch_size"]
    if largest is not None:
        facts.append(("Largest batch", f"{as_count(largest)}, about {as_bytes(found['largest_batch_bytes'])}"))
        offered = _useful_batch(largest, batch, found["sizes"]["train"])
        if offered != batch:
            uses.append(("batch_size", str(offered), f"Use batch {as_count(offered)}"))
    rate = found["rate"]
    if rate is None:
        return {"error": None, "facts": facts, "curve": None, "uses": uses, "warning": ""}
    suggested, finite = rate["suggested"], rate["largest_finite"]
    if suggested is not None:
        facts.append(("Suggested rate", as_number(suggested, 6)))
        uses.insert(0, ("learning_rate", f"{suggested:g}", f"Use {as_number(suggested, 6)}"))
    if finite is not None:
        facts.append(
            ("Largest finite rate", f"{'at least ' if rate['largest_is_bound'] else ''}{as_number(finite, 2)}")
        )
    own, warning = rate["own"], ""
    if not own["finite"]:
        warning = f"At the rate {as_number(own['rate'], 6)} the loss is not finite at step {own['step']}."
    return {"error": None, "facts": facts, "curve": curve_picture(rate), "uses": uses, "warning": warning}


def curve_picture(rate: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the curve of the smoothed loss over the learning rate, as numbers of an SVG; None for no curve.

    Args:
        rate: ``rates``, ``losses``, ``suggested`` and ``own``; see ``ziggurat.worker.commands.rate_finder``.
    """
    rates, losses = rate["rates"], rate["losses"]
    if len(rates) < 2:
        return None
    low, high = math.log10(rates[0]), math.log10(rates[-1])
    least = min(losses)
    most = max(least + 1e-12, min(max(losses), least + _HIGHEST * max(losses[0] - least, 0.1 * abs(losses[0]), 1e-12)))

    def across(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def down(loss: float) -> float:
        share = (min(loss, most) - least) / (most - least)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP), 1)

    decades = range(math.ceil(low), math.floor(high) + 1)
    every = max(1, math.ceil(len(decades) / 5))
    marks = [("suggested", rate["suggested"]), ("own", rate["own"]["rate"])]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "box": (_LEFT, _TOP, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM),
        "points": " ".join(f"{across(x)},{down(y)}" for x, y in zip(rates, losses, strict=True)),
        "ticks_x": [
            (across(10.0**power), as_number(10.0**power)) for power in decades if not (power - decades[0]) % every
        ],
        "ticks_y": [(down(value), f"{value:.3g}") for value in (least, (least + most) / 2, most)],
        "marks": [
            (name, across(value)) for name, value in marks if value is not None and rates[0] <= value <= rates[-1]
        ],
        "table": [
            (as_number(rates[row], 2), as_number(losses[row])) for row in spread_indices(len(rates), _TABLE_ROWS)
        ],
        "sentence": _sentence(rate, losses),
    }


def _sentence(rate: Mapping[str, Any], losses: Sequence[float]) -> str:
    suggested = rate["suggested"]
    start = f"The smoothed loss falls from {losses[0]:.3g} to {min(losses):.3g} while the rate rises."
    return start if suggested is None else f"{start} Suggested: {as_number(suggested, 6)}, {rate['rule']}."


def _useful_batch(largest: int, batch: int, train: int) -> int:
    """Return the largest batch that leaves enough steps in an epoch, and is no smaller than the one that was chosen."""
    while largest > batch and train // largest < FEWEST_STEPS:
        largest //= 2
    return max(batch, largest)


def _is_value(name: str, text: str) -> bool:
    try:
        return 0 < _FILLED[name](text) < math.inf
    except ValueError:
        return False


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else as_duration(seconds)


def _ticket(name: str) -> str:
    """Return the name under which the test batch of a user runs: only one at a time."""
    return f"page {name}"
