"""The page of pretrained weights."""
