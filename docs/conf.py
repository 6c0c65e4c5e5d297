"""Owns how Sphinx builds the documentation: Markdown through MyST, the furo theme, nothing fetched from elsewhere."""

project = "Ziggurat"
author = "The Ziggurat authors"
copyright = "The Ziggurat authors"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# A reference page shows defaults and literals of every kind; what no lexer knows is shown plain.
highlight_language = "text"

html_theme = "furo"
html_title = "Ziggurat"
html_show_sourcelink = False
