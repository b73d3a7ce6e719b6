r"""Formulas that were written for terminals, found in running text and written in TeX.

``|x - D w|^2``, ``(x'y)^4``, ``exp(-gamma d^2)`` and ``sum_i w_i phi(x_i)`` are formulas; words are
not. A formula is a run of terms (letters with subscripts, numbers, norms, brackets, Greek letters,
a few functions) joined by operators or standing side by side, in which something is *certain*: a
power, a norm, a transpose, a subscript, a function of letters.
"""

import re

GREEK = ("alpha", "beta", "gamma", "lambda", "mu", "phi", "sigma", "epsilon", "chi")
FUNCTIONS = ("exp", "tanh", "log", "max", "min", "tr", "sqrt", "sign", "cos", "soft")
#: Names of parameters and arrays that stand in formulas of docstrings.
WORDS = (
    "coef0", "degree", "power", "inner", "ridge", "coef", "anchors", "anchor", "weights",
    "fisher_weight", "l1_weight", "width", "landmarks", "atom",
)  # fmt: skip

_NAME = re.compile(
    r"(?:sum|prod)_[a-z](?![a-z])"
    rf"|(?:{'|'.join(GREEK)})(?:_\w\b)?(?![a-z])"
    rf"|(?:{'|'.join(WORDS)})(?!\w)"
    rf"|(?:{'|'.join(FUNCTIONS)})(?=\()"
    r"|[A-Za-z](?:_[A-Za-z0-9]{1,2}(?![A-Za-z0-9_]))?(?![A-Za-z0-9_])"
)
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?![A-Za-z_,.]?\d|[A-Za-z_])")
_OPERATOR = re.compile(r" ?(?:<=|>=|!=|=) ?| [-+*/] | ?[/] ?|[-+](?=[\w(|])")
_SUBSCRIPT = re.compile(r"_[A-Za-z0-9](?![A-Za-z0-9_])")
_POWER = re.compile(r"\^(?:-?\d+|[+]|[A-Za-z]+)")


class _Reader:
    """Reads one formula from the start of a text; ``sure`` counts what only formulas have."""

    def __init__(self, text):
        self.text, self.at, self.sure = text, 0, 0

    def peek(self, pattern):
        return pattern.match(self.text, self.at)

    def expression(self, closing=""):
        """Return TeX of terms and operators up to where they end, and where each term ended."""
        parts, ends = [], []
        signed = True  # a minus may stand at the beginning and after an operator
        while True:
            sign = "-" if signed and self.text.startswith("-", self.at) else ""
            back = self.at
            self.at += len(sign)
            sure = self.sure
            found = self.term()
            if found is None:
                self.at, self.sure = (ends[-1][0] if ends else back), sure
                break
            parts.append(sign + found)
            ends.append((self.at, self.sure, len(parts)))
            operator = self.peek(_OPERATOR)
            signed = operator is not None
            if operator:
                self.at = operator.end()
                parts.append(_operator(operator[0].strip()))
            elif self.text.startswith(" ", self.at):
                self.at += 1
                parts.append(r"\,")
            elif closing and self.text.startswith(", ", self.at):
                self.at += 2
                parts.append(", ")
            elif not (self.text.startswith(("(", "|", "["), self.at) or self.peek(_NAME)):
                break
        return "".join(parts[: ends[-1][2]]) if ends else ""

    def term(self):
        """Return TeX of one term with its subscripts, powers and transposes, or None."""
        for open_, close, left, right in (
            ("(", ")", "(", ")"), ("|", "|", r"\|", r"\|"), ("<", ">", r"\langle ", r" \rangle"),
            ("[", "]", "[", "]"),
        ):  # fmt: skip
            if self.text.startswith(open_, self.at):
                inside = self.enclosed(open_, close)
                if inside is None:
                    return None
                if open_ in "|<":
                    self.sure += 1
                return left + inside + right + self.suffixes()
        if number := self.peek(_NUMBER):
            self.at = number.end()
            return number[0].replace(",", r"{,}") + self.suffixes(transposed=False)
        if name := self.peek(_NAME):
            if self.at and (self.text[self.at - 1].isalnum() or self.text[self.at - 1] == "_"):
                return None
            self.at = name.end()
            if name[0] in FUNCTIONS:
                return self.function(name[0])
            self.sure += "_" in name[0] and name[0] not in WORDS
            if name[0] in ("phi", "k", "d") and (inside := self.enclosed("(", ")")):
                self.sure += 1
                return f"{_name(name[0])}({inside})" + self.suffixes()
            return _name(name[0]) + self.suffixes()
        return None

    def function(self, name):
        """Return TeX of a function of something that is a formula itself, or None."""
        inside = self.enclosed("(", ")")
        if inside is None:
            return None
        self.sure += 1
        tex = rf"\sqrt{{{inside}}}" if name == "sqrt" else f"{_name(name)}({inside})"
        return tex + self.suffixes()

    def enclosed(self, open_, close):
        back, sure = self.at, self.sure
        if not self.text.startswith(open_, self.at):
            return None
        self.at += 1
        if open_ == "|" and self.text.startswith(".|", self.at):
            self.at += 2
            return r"\cdot"
        inside = self.expression(closing=close)
        if inside and self.text.startswith(close, self.at):
            self.at += 1
            return inside
        self.at, self.sure = back, sure
        return None

    def suffixes(self, *, transposed=True):
        out = ""
        while True:
            if power := self.peek(_POWER):
                self.at, self.sure = power.end(), self.sure + 1
                out += "^{" + _word(power[0][1:]) + "}"
            elif self.text.startswith("^(", self.at):
                back = self.at
                self.at += 1
                inside = self.enclosed("(", ")")
                if inside is None:
                    self.at = back
                    return out
                self.sure += 1
                out += "^{" + inside + "}"
            elif subscript := self.peek(_SUBSCRIPT):
                self.at, self.sure = subscript.end(), self.sure + 1
                out += subscript[0]
            elif transposed and re.match(r"'(?![A-Za-z]{2}|s\b|\\)", self.text[self.at :]):
                self.at, self.sure = self.at + 1, self.sure + 1
                out += r"^\top "
            else:
                return out


def _operator(sign):
    return {"<=": r" \le ", ">=": r" \ge ", "!=": r" \ne ", "*": r" \cdot "}.get(sign, f" {sign} ")


def _word(text):
    return upright(text) if len(text) > 1 and text.isalpha() else text


def upright(word):
    return rf"\mathrm{{{word}}}"


def _name(name):
    base, _, sub = name.partition("_")
    if name in WORDS:
        return upright(name.replace("_", r"\_"))
    if base in (*GREEK, *FUNCTIONS, "sum", "prod"):
        base = upright(base) if base in ("tr", "sign", "soft") else "\\" + base
    return base + (f"_{{{sub}}}" if sub else " " if base.startswith("\\") else "")


_START = re.compile(r"(?<![\w`\\$'^-])(?=[A-Za-z0-9(|<-])")
_GREEK_WORD = re.compile(rf"(?<![\w`\\$-])({'|'.join(GREEK)})(_\d)?(?![\w-])")


def typeset(text, write, *, greek=False):
    r"""Return a text with its formulas in TeX, each as ``write`` writes it.

    Parameters
    ----------
    text : str
        Running text, without code.
    write : callable
        Makes of TeX what stands in the text.
    greek : bool
        Greek letters that are spelled out are formulas too; where they name parameters they are
        not.

    Examples
    --------
    >>> def show(text, **how):
    ...     print(typeset(text, "${}$".format, **how))
    >>> show("Minimises |x - D w|^2.")
    Minimises $\|x - D\,w\|^{2}$.
    >>> show("Under (x'y)^2, the paper's.")
    Under $(x^\top y)^{2}$, the paper's.
    >>> show("a weight mu of |w|_1, or exp(-gamma d^2)", greek=True)
    a weight $\mu$ of $\|w\|_1$, or $\exp (-\gamma \,d^{2})$
    >>> show("Rows x, whose phi(x) is a sum (of 3 x 4, at most).")
    Rows x, whose $\phi (x)$ is a sum (of 3 x 4, at most).
    >>> show("K's eigenvalues, X_train and n_atoms are words; w_i is not.")
    K's eigenvalues, X_train and n_atoms are words; $w_{i}$ is not.
    >>> show("fit takes k(train, train) and 1 / sqrt(energy)")
    fit takes k(train, train) and 1 / sqrt(energy)
    """
    out, at = [], 0
    while match := _START.search(text, at):
        start = match.start()
        out.append(text[at:start])
        reader = _Reader(text[start:])
        tex = reader.expression()
        article = re.match(r"(?:a|A|I) (?!=)", text[start:])
        if article or not reader.sure or not tex:
            alone = _GREEK_WORD.match(text, start) if greek else None
            if alone:
                out.append(write(_name(alone[0]).strip()))
                at = alone.end()
            else:
                word = re.compile(r"\w+ ?|.").match(text, start)
                out.append(word[0])
                at = word.end()
            continue
        out.append(write(tex.strip()))
        at = start + reader.at
    return "".join(out) + text[at:]
