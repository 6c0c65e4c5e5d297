"""Projects of Supervisely."""
