"""Exported models: manifest and signature, versions with aliases, and serving over HTTP without a framework."""
