"""Files of CVAT."""
