"""Owns the job of ``ziggurat demo``: small pictures of digits, learnt in seconds by the NumPy backend."""

from __future__ import annotations

from ziggurat.specs import TrainSpec

__all__ = ["demo_spec"]


def demo_spec(epochs: int = 20) -> TrainSpec:
    """Return the spec of the demo; it is trained in the ordinary way."""
    content = {
        "kind": "train",
        "version": 1,
        "name": "demo",
        "backend": "null",
        "network": "mlp",
        "data": "digits",
        "epochs": epochs,
        "batch_size": 32,
        "learning_rate": 0.1,
        "schedule": "cosine",
    }
    return TrainSpec.model_validate(content)
