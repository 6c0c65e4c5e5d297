"""Spec of a job that computes features of every sample of a dataset, and a map of them, version 1."""

from __future__ import annotations

from typing import Literal

from ziggurat.specs.base import SpecModel, spec_field
from ziggurat.specs.evaluation import checkpoint_field, model_field

__all__ = ["EmbedSpec"]

_JOB, _FEATURES, _MAP = "Job", "Features", "Map"


class EmbedSpec(SpecModel):
    """What a map of a dataset was asked for: features of its samples, and where each stands by them."""

    kind: Literal["embed"] = "embed"
    version: Literal[1] = 1

    name: str = spec_field("", title="Name", help="Name of the job; any text.", group=_JOB, max_length=200)
    heartbeat_s: float = spec_field(
        1.0, title="Heartbeat", help="Seconds between heartbeats; typical: 1 to 5.", unit="s", group=_JOB,
        gt=0, le=10,
    )  # fmt: skip
    hung_after_s: float = spec_field(
        900.0, title="Hung after", help="Longest time for one batch before it is reported.", unit="s", group=_JOB,
        gt=0,
    )  # fmt: skip
    dataset: str = spec_field(title="Dataset", help="Folder of the dataset.", group=_JOB, min_length=1)
    features: Literal["backbone", "model", "own"] = spec_field(
        "backbone",
        title="Features",
        help="Of a pretrained backbone, of a trained model, or of the samples themselves.",
        group=_FEATURES,
    )
    backbone: str = spec_field(
        "efficientnet_lite0",
        title="Backbone",
        help="Entry of the list of public weights; default: the one that the extra `backbones` brings.",
        group=_FEATURES,
        min_length=1,
        max_length=200,
    )
    model: str = model_field("", group=_FEATURES)
    checkpoint: str = checkpoint_field(_FEATURES)
    batch_size: int = spec_field(
        32,
        title="Batch size",
        help="Samples that the network gets at once; typical: 16 to 128.",
        unit="samples",
        group=_FEATURES,
        ge=1,
    )
    limit: int = spec_field(
        50_000,
        title="Limit",
        help="Samples of the map, chosen at random where the dataset has more; 0 for all.",
        unit="samples",
        group=_MAP,
        ge=0,
    )
    tsne: bool = spec_field(
        True,
        title="t-SNE",
        help="Also place the samples by t-SNE; default: yes. It needs the extra `maps`.",
        group=_MAP,
    )
    perplexity: float = spec_field(
        30.0,
        title="Perplexity",
        help="Neighbors that t-SNE keeps beside each sample; default: 30, typical: 10 to 50.",
        group=_MAP,
        ge=2,
        le=500,
    )
    folds: int = spec_field(
        5,
        title="Folds",
        help="Parts in which classes are predicted by the other parts, to find label errors; 0 for no prediction.",
        group=_MAP,
        ge=0,
        le=20,
    )
    seed: int = spec_field(0, title="Seed", help="Seed of choices, folds and t-SNE.", group=_MAP, ge=0, lt=2**32)
