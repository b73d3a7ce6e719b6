r"""Formulas as MathML: drawn by the browser, without script, font or network.

The conversion is docutils' own. A formula that it cannot read is a warning, and so fails the build,
instead of a red box that only readers see.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

# Formulas in a line are not broken; one of more letters than these may be wider than a phone.
LONG = 40
BARS = re.compile(r"(?<!\\left)(?<!\\right)\\\|(.+?)(?<!\\left)(?<!\\right)\\\|", re.DOTALL)


def join_norms(tex):
    r"""Return the formula with the bars of norms in pairs, so that exponents stand beside both.

    >>> print(join_norms(r"\|w\|_0 + \left\|x\right\|"))
    \left\|w\right\|_0 + \left\|x\right\|
    """
    return BARS.sub(r"\\left\|\1\\right\|", tex)


def convert(tex, node, *, as_block):
    """Return MathML, or the formula as code and a warning."""
    try:
        return tex2mathml(join_norms(tex.strip()), as_block=as_block)
    except MathError as error:
        logger.warning("formula %r: %s", tex, error, location=node)
        return f"<code>{nodes.unescape(tex)}</code>"


def visit_inline(self, node):
    """Write a formula in a line."""
    kind = "math long" if len(node.astext()) > LONG else "math"
    self.body.append(f'<span class="{kind}">{convert(node.astext(), node, as_block=False)}</span>')
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a formula on lines of its own."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append(convert(node.astext(), node, as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Offer the renderer to Sphinx."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
