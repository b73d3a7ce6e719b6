"""Counts that stay true: the role ``code-lines`` counts the lines of code in a file or function.

Write ``{code-lines}`farthest.py``` for a file beside the page, or ``{code-lines}`farthest.py
farthest_point``` for one function or class in it. Blank lines, comments and docstrings do not
count.
"""

import ast
import io
import tokenize
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def count_code_lines(source, name=None):
    r"""Return how many lines of a source, or of one function or class in it, hold code.

    >>> count_code_lines('"Doc."\nx = 1  # one\n\n# nothing\ndef f():\n    "Doc."\n    return x\n')
    3
    >>> count_code_lines('x = 1\ndef f():\n    "Doc."\n    return (\n        2\n    )\n', "f")
    4
    """
    tree = ast.parse(source)
    skipped = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        is_block = isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        if is_block and body and ast.get_docstring(node, clean=False) is not None:
            skipped.update(range(body[0].lineno, body[0].end_lineno + 1))
    first, last = 1, len(source.splitlines())
    if name is not None:
        (found,) = (node for node in tree.body if getattr(node, "name", None) == name)
        first, last = found.lineno, found.end_lineno
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len({line for line in lines - skipped if first <= line <= last})


class CodeLines(SphinxRole):
    """The role."""

    def run(self):
        """Return the number as text."""
        file, *name = self.text.split()
        path = Path(self.env.doc2path(self.env.docname)).parent / file
        self.env.note_dependency(str(path))
        number = count_code_lines(path.read_text(encoding="utf-8"), *name)
        return [nodes.Text(str(number))], []


def setup(app):
    """Offer the role to Sphinx."""
    app.add_role("code-lines", CodeLines())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
