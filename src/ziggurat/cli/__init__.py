"""Owns the shell face: ``ziggurat VERB``; each verb is thin, what it does stands in ``ziggurat.workspace``."""
