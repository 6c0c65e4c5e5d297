"""Command line: ``ziggurat VERB``; the verbs are thin wrappers around ``ziggurat.workspace``."""
