"""Owns how pages of the reference are made from code; ``tools.docs_reference`` lists the pages."""
