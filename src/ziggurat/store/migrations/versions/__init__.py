"""Schema revisions, one file each; a released revision is never changed."""

__all__: list[str] = []
