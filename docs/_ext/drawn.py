"""Pictures of a page's own code: the directive ``drawn`` shows a figure that its examples made.

``{drawn} figure`` runs the examples (``>>>``) that stand above it on the page, those that were run
for an earlier picture not again, and shows the figure of that name as it is then, with the text of
the directive under it. ``docs/test_pages.py`` checks that the name is a figure.
"""

import contextlib
import doctest
import io
import os
import tempfile
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

# Beside the pages, since Sphinx takes pictures from there, and where nothing is kept.
FOLDER = Path("_build") / "drawn"

_namespaces = {}


class Drawn(SphinxDirective):
    """The directive."""

    required_arguments = 1
    has_content = True
    option_spec = {  # noqa: RUF012
        "alt": directives.unchanged_required,
        "width": directives.length_or_percentage_or_unitless,
    }

    def run(self):
        page = Path(self.env.doc2path(self.env.docname))
        names, done = _namespaces.setdefault(self.env.docname, ({}, []))
        above = "\n".join(page.read_text(encoding="utf-8").splitlines()[: self.lineno])
        examples = doctest.DocTestParser().get_examples(above.replace("```", ""))
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:  # examples may write files
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    for example in examples[len(done) :]:
                        exec(compile(example.source, str(page), "exec"), names)
                        done.append(example)
            finally:
                os.chdir(here)
        figure = names[self.arguments[0]]
        picture = FOLDER / f"{self.env.docname.replace('/', '-')}-{len(done)}.png"
        path = Path(self.env.srcdir) / picture
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200)
        image = nodes.image(
            uri=f"/{picture.as_posix()}", alt=self.options.get("alt", ""),
            width=self.options.get("width", "80%"),
        )  # fmt: skip
        shown = nodes.figure("", image)
        if self.content:
            inline, _ = self.state.inline_text(" ".join(self.content), self.lineno)
            shown += nodes.caption("", "", *inline)
        return [shown]


def on_read(app, doctree):
    """Forget a page's names when the page is read."""
    _namespaces.pop(app.env.docname, None)


def setup(app):
    """Offer the directive to Sphinx."""
    app.add_directive("drawn", Drawn)
    app.connect("doctree-read", on_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
