"""Owns nothing itself: its modules are the serial stages; ``ziggurat.dataflow`` is the door to them."""
