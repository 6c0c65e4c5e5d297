"""Generator of reference pages from code; ``tools.docs_reference`` lists the pages."""
