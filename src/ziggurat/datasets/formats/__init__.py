"""Dataset formats, one package each: importer, exporter, and what they share."""
