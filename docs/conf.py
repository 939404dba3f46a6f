"""The build of the documentation: python -m sphinx -W -n docs site."""

import sys
from pathlib import Path

from edgeflare import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "EdgeFlare"
author = "the EdgeFlare developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "signatures"]
exclude_patterns = ["figures"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures; docstrings have no links
default_role = "code"
smartquotes = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = "EdgeFlare"
html_static_path: list[str] = []
copybutton_exclude = ".linenos, .gp, .go"
