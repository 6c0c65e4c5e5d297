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
html_static_path = ["_static"]
html_css_files = ["home.css"]
html_theme_options = {
    # The two colors of links and buttons are those of the studio.
    "light_css_variables": {"color-brand-primary": "#a63c06", "color-brand-content": "#a63c06"},
    "dark_css_variables": {"color-brand-primary": "#f0955c", "color-brand-content": "#f0955c"},
}
