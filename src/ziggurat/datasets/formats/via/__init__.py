"""Files of the VGG Image Annotator."""
