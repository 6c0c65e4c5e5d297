"""Network access: guarded addresses."""
