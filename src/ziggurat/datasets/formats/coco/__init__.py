"""COCO annotations."""
