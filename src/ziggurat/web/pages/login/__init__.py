"""The login page."""
