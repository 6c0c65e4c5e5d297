"""Files of Label Studio."""
