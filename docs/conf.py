"""How the pages are built: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``.

Nothing is fetched: no inventories of other projects, no fonts, no scripts. Formulas become MathML
(``_ext/mathml.py``), which browsers draw themselves. Pictures are made by the gallery's examples;
none is stored.
"""

import logging
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import kernelatoms  # noqa: E402

project = "kernelatoms"
author = "The kernelatoms developers"
copyright = author
version = release = kernelatoms.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "gallery",
    "mathml",
    "docstrings",
    "counted",
    "drawn",
    "paper_pages",
    "terminal",
]

# Pages --------------------------------------------------------------------------------------------

root_doc = "index"
exclude_patterns = ["_build", "_*.md", "gallery/*.ipynb", "gallery/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "py:obj"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

# The API ------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
viewcode_follow_imported_members = True
viewcode_line_numbers = True

# The gallery --------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("kernelatoms",),
    "within_subsection_order": "gallery.Order",
    "image_scrapers": ("gallery.scrape_figures", "gallery.scrape_pyplot"),
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib", "gallery.reset"),
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}
# A first run compiles the inner loops and says so, which is no part of an example's output.
logging.getLogger("kernelatoms").setLevel(logging.ERROR)

# The look -----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "kernelatoms"
html_static_path = ["_static"]
html_css_files = ["kernelatoms.css"]
html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}  # the theme complains in the console if it is left open
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": "kernelatoms",
        "alt_text": "kernelatoms: home",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": [], "getting-started": [], "cli": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
