"""View model of the page of pretrained weights: those of the workspace, and the download list with its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities.pretrained_weights import PretrainedWeights, WeightsUser, preprocessing_text
from ziggurat.errors import ZigguratError
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.weights_downloads import WeightsDownload
from ziggurat.workspace.weights import WEIGHT_SUFFIXES, weight_networks
from ziggurat.zoo.public_weights import PublicWeights

__all__ = ["FIELDS", "PretrainedView", "PublicRow", "WeightsRow", "field_of", "pretrained_view"]

FIELDS: Final = ("name", "title", "network", "license", "source", "sha256", "classes", "mean", "std", "size", "color")
"""Fields of the form beside the file."""

_SHOWN_USERS: Final = 3
_SHOWN_CLASSES: Final = 200


@dataclass(frozen=True, kw_only=True)
class WeightsRow:
    """Weights of the workspace as they are shown.

    Args:
        entry: them.
        preprocessing: in words; empty if unknown.
        link: address of the source, if it is one; else empty.
        classes: the first names of the classes.
        users: the newest trainings that start from them.
        more_users: number of the other ones.
    """

    entry: PretrainedWeights
    preprocessing: str
    link: str
    classes: Sequence[str]
    users: Sequence[WeightsUser]
    more_users: int


@dataclass(frozen=True, kw_only=True)
class PublicRow:
    """An entry of the download list as it is shown.

    Args:
        public: it.
        preprocessing: in words.
        is_added: whether the workspace has weights of that name.
        download: that waits, runs or failed; None for none.
    """

    public: PublicWeights
    preprocessing: str
    is_added: bool
    download: WeightsDownload | None


@dataclass(frozen=True, kw_only=True)
class PretrainedView:
    """What the page shows.

    Args:
        rows: weights of the workspace.
        public: the download list.
        networks: value and text of each network that weights may be of.
        suffixes: ends of the names of files that are taken.
    """

    rows: Sequence[WeightsRow]
    public: Sequence[PublicRow]
    networks: Sequence[tuple[str, str]]
    suffixes: Sequence[str] = WEIGHT_SUFFIXES

    @property
    def is_busy(self) -> bool:
        """Whether a download waits or runs."""
        return any(row.download is not None and row.download.is_under_way for row in self.public)


def pretrained_view(studio: Studio) -> PretrainedView:
    """Return what the page shows now."""
    entries = studio.weights.all()
    there = {each.name for each in entries}
    downloads = {each.name: each for each in studio.weights_downloads.all()}
    public = [
        PublicRow(
            public=each,
            preprocessing=preprocessing_text(each.preprocessing),
            is_added=each.name in there,
            download=downloads.get(each.name),
        )
        for each in studio.weights.public
    ]
    networks = [("", "Not stated"), *((name, name) for name in weight_networks())]
    return PretrainedView(rows=[_row(studio, each) for each in entries], public=public, networks=networks)


def field_of(error: ZigguratError) -> str:
    """Return the field of the form that an error belongs to; empty if it is none of them."""
    details: Mapping[str, Any] = error.details
    if details.get("kind") == "standard network":
        return "network"
    named = str(details.get("field", ""))
    return named if named in (*FIELDS, "file") else ""


def _row(studio: Studio, entry: PretrainedWeights) -> WeightsRow:
    users = studio.weights.users(entry.name)
    return WeightsRow(
        entry=entry,
        preprocessing=preprocessing_text(entry.preprocessing),
        link=entry.source if entry.source.startswith(("https://", "http://")) and " " not in entry.source else "",
        classes=entry.classes[:_SHOWN_CLASSES],
        users=users[:_SHOWN_USERS],
        more_users=max(0, len(users) - _SHOWN_USERS),
    )
