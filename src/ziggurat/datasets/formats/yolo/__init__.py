"""YOLO labels."""
