"""The page of an account and its API tokens."""
