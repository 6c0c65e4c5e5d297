"""Tables of boxes."""
