"""Owns the names that a user's network file sees: TensorFlow as version 1 had it, slim, contrib, digits, Tower."""
