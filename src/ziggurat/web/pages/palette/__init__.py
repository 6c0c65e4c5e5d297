"""Command palette: search over runs, datasets and models, and the commands of the studio."""
