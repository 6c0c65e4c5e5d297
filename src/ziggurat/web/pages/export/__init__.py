"""The page that exports a model."""
