"""Names that a user's network file sees: TensorFlow with its version 1 API, slim, contrib, digits, Tower."""
