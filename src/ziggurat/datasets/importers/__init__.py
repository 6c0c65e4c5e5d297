"""Importers of datasets from third-party formats; one module per format."""
