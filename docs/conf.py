"""Settings of the documentation: ``make docs``."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

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
# They run without the settings and start-up files of whoever builds the pages. Kernels listen to this machine only:
# that the connection is not encrypted is not worth a warning for each notebook.
_settings = TemporaryDirectory(prefix="dafh-docs-")
_profile = Path(_settings.name) / "profile_default"
_profile.mkdir()
(_profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 'ERROR'\n")
os.environ["IPYTHONDIR"] = _settings.name
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False, "header_links_before_dropdown": 4}
html_title = f"dafh {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
