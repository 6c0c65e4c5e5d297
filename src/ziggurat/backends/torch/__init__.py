"""PyTorch backend: so far only what is known of it, in ``info``."""
