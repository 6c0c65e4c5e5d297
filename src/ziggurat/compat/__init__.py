"""Doors for programs and scripts of other tools; nothing else of Ziggurat imports them."""
