"""Address of the page on which the next step after a result is taken."""

from __future__ import annotations

from typing import Any

from ziggurat.entities.next_step import NextStep

__all__ = ["next_path"]


def next_path(step: NextStep) -> tuple[str, dict[str, Any]]:
    """Return path and query of the page to which the button of a next step leads."""
    target, fields = step.target, dict(step.fields)
    match step.action:
        case "clone":
            return "/models/new", {"clone": target, **fields}
        case "train_on":  # the same settings, from the weights of the newest checkpoint
            return "/models/new", {"clone": target, "model": target, **fields}
        case "train":
            return "/models/new", {"dataset": target, **fields}
        case "evaluate":
            return f"/models/{target}/test", {"tab": "splits", **fields}
        case "errors":
            return f"/evaluations/{target}/samples", fields
        case "explore":
            return f"/datasets/{target}/explore", fields
        case "publish":
            return f"/models/{target}/take-away#publish", {"publish_checkpoint": fields.get("checkpoint")}
