"""Settings of the documentation: ``make docs``."""

import dafh

project = "dafh"
author = "the dafh developers"
release = version = dafh.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
# Links to other projects need the web; the pages are complete without them.
intersphinx_mapping: dict[str, tuple[str, None]] = {}
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_heading_anchors = 3
# Docstrings inherited from scikit-learn point into its own pages.
suppress_warnings = ["ref.ref", "ref.term"]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
# Notebooks are stored without outputs and run at every build, so that a page shows what this version does. A cell that
# fails stops the build. They write files, which nobody wants in the sources.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_title = f"dafh {release}"
html_static_path = ["_static"]
html_css_files = ["notebooks.css"]
html_show_sourcelink = False
