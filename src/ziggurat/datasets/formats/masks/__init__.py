"""Images with segmentation masks."""
