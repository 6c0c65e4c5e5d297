"""Files of CreateML."""
