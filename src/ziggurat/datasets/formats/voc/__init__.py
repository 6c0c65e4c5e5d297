"""Pascal VOC annotations."""
