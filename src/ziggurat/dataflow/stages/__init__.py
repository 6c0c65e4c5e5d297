"""Serial stages; import them from ``ziggurat.dataflow``."""
