"""DIGITS-compatible routes and JSON, so that scripts written for DIGITS keep working."""
