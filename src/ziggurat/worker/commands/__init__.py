"""One-shot processes of the training half: evaluate, predict, export, describe, debug."""
