"""Login, and the pages of one's own account."""
