"""Owns taking a model away: the files of each format, each proven to give what the session gave."""
