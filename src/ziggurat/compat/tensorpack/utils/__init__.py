"""Helpers of Tensorpack's ``utils`` that have no counterpart in Ziggurat: small, and kept for its programs."""
