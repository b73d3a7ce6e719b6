r"""Docstrings are written for terminals; on pages, |x - D w|^2 becomes a formula.

In reStructuredText, bars would be a substitution and ``n_iter_`` without quotes a link. Lines of
examples and what stands in backticks stay as they are.
"""

import re

import formulas

QUOTED = re.compile(r"(``.*?``|`.*?`)")
BARE_BAR = re.compile(r"(?<!\\)\|")
FITTED = re.compile(r"(?<=\w)_(?!\w)")


def typeset(text):
    r"""Return the text with norms as formulas and fitted names as words.

    >>> print(typeset("Minimises |x - D w|^2."))
    Minimises :math:`\|x - D\,w\|^{2}`.
    >>> print(typeset("Weight of |w|_1, above 0."))
    Weight of :math:`\|w\|_1`, above 0.
    >>> print(typeset("``a | b_`` or |K - F F'|_F"))
    ``a | b_`` or :math:`\|K - F\,F^\top \|_F`
    >>> print(typeset("components_ : array of shape (n_atoms_, n_features)"))
    components_ : array of shape (n_atoms\_, n_features)
    >>> print(typeset("n_atoms_, n_iter_ : int"))
    n_atoms\_, n_iter_ : int
    """
    # The last name before a colon is numpydoc's, which makes it safe itself.
    match = re.match(r"(\s*(?:\w+, )*)(\w+)( : .*)", text)
    if match:
        return typeset(match[1]) + match[2] + typeset(match[3])
    # A full stop would end the first sentence, which stands for the whole in tables.
    text = re.sub(r"\beq(s?)\. (?=\()", r"equation\1 ", text)
    parts = QUOTED.split(text)
    for i in range(0, len(parts), 2):
        found = QUOTED.split(formulas.typeset(parts[i], _role))
        for j in range(0, len(found), 2):
            found[j] = BARE_BAR.sub(r"\|", FITTED.sub(r"\_", found[j]))
        parts[i] = "".join(found)
    return "".join(parts)


def _role(tex):
    return f":math:`{tex}`"


def on_docstring(app, what, name, obj, options, lines):
    """Typeset a docstring before numpydoc reads it."""
    in_example = False  # up to the next empty line: what an example prints is no text
    for i, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if not in_example:
            lines[i] = typeset(line)


def on_member(app, what, name, obj, skip, options):
    """Leave out what is scikit-learn's: it is documented there."""
    home = getattr(obj, "__module__", None) or ""
    return True if home.startswith("sklearn") else None


def setup(app):
    """Listen to autodoc, before numpydoc does (500)."""
    app.connect("autodoc-process-docstring", on_docstring, priority=100)
    app.connect("autodoc-skip-member", on_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
