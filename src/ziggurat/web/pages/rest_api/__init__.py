"""The page of the REST API."""
