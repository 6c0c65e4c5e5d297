"""Class folders."""
