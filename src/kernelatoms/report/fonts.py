"""Which characters matplotlib's font can draw, and how wide those are that it cannot.

matplotlib draws what its font has, letter by letter. What it lacks (Chinese, Thai, emoji), and
what runs from right to left, is left to the reader's browser: see ``embedding``.
"""

import unicodedata
from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

# As wide as the square that a Chinese letter or an emoji fills; as wide as most other letters.
_SQUARE, _NARROW = "\u2014", "n"
_RIGHT_TO_LEFT = frozenset({"R", "AL"})
# Around a word from right to left, so that what stands beside it keeps its place.
_ISOLATE, _END = "\u2068", "\u2069"


def needs_browser(text: str) -> bool:
    """Return whether a text has letters that matplotlib cannot draw as they are written."""
    if text.isascii():
        return False
    known = _known_letters()
    return any(ord(letter) not in known for letter in text) or runs_leftward(text)


def runs_leftward(text: str) -> bool:
    """Return whether any letter belongs to a script that is written from right to left."""
    return any(unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT for letter in text)


def isolate(text: str) -> str:
    """Return a text that does not disturb the order of the words beside it.

    Examples
    --------
    >>> from kernelatoms.report.fonts import isolate
    >>> isolate("rose"), isolate("ורד") == "ורד"
    ('rose', False)
    """
    return f"{_ISOLATE}{text}{_END}" if runs_leftward(text) else text


def stand_in(text: str) -> str:
    """Return letters that matplotlib knows, about as wide as a text of any script.

    Examples
    --------
    >>> from kernelatoms.report.fonts import stand_in
    >>> stand_in("a中"), stand_in("กี")
    ('a—', 'n')
    """
    if text.isascii():
        return text
    known = _known_letters()
    return "".join(c if ord(c) in known else _SPACES.get(columns(c), _NARROW) for c in text)


def columns(letter: str) -> int:
    """Return how many columns of a terminal a letter takes: 0 for marks on others, 1 or 2."""
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


_SPACES = {0: "", 1: _NARROW, 2: _SQUARE}


@cache
def _known_letters() -> frozenset[int]:
    # A line end parts lines and is never drawn.
    return frozenset([*get_font(findfont(FontProperties())).get_charmap(), ord("\n")])
