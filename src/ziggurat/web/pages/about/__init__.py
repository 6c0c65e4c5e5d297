"""The page about this installation."""
