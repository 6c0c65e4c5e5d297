"""Operations on pretrained weights: add, delete, restore, download, cancel; and on what they gave of samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ziggurat.operations.use_case import Call, use_case

__all__ = ["add", "cancel", "delete_features", "download", "remove", "restore"]


@use_case("weights.add")
def add(call: Call, file: Path, new: Any) -> Any:
    """Add a file of weights, after it was checked; one of PyTorch is converted, and none of its code is run."""
    made = call.studio.weights.add(file, new, added_by=call.who.name)
    call.note(made.name)
    call.studio.tell_of_weights()
    return made


@use_case("weights.delete")
def remove(call: Call, name: str, forever: bool = False) -> str:
    """Delete weights that no training needs now; they can be restored for some days. ``forever`` removes them from the
    disk at once, also those that are deleted already.
    """
    deleted_id = call.studio.weights.remove(name, forever=forever)
    further: dict[str, Any] = {"forever": True} if forever else {}
    call.note(name, **further)
    call.studio.tell_of_weights()
    return deleted_id


@use_case("weights.restore")
def restore(call: Call, name: str) -> Any:
    """Put deleted weights back, by their name or the id in the trash."""
    made = call.studio.weights.restore(name)
    call.note(made.name)
    call.studio.tell_of_weights()
    return made


@use_case("weights.download")
def download(call: Call, name: str) -> Any:
    """Download an entry of the list in the background, check it, and add it; one that runs is returned unchanged."""
    made = call.studio.weights_downloads.start(name, call.who.name)
    call.note(name)
    return made


@use_case("weights.cancel")
def cancel(call: Call, name: str) -> None:
    """End a download, or take one that failed out of the list."""
    call.studio.weights_downloads.cancel(name)
    call.note(name)


@use_case("features.delete")
def delete_features(call: Call) -> None:
    """Delete the stored features of samples by pretrained networks; they are computed again where they are needed."""
    call.note("features", size_bytes=call.studio.weights.delete_features())
