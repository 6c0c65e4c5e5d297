"""Exporters of datasets to third-party formats; one module per format."""
