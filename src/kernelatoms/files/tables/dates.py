"""Dates in common notations, recognised and counted in days.

``2024-12-31``, ``2024/12/31``, ``31.12.2024``, ``12/31/2024``, ``31/12/2024``, ``31-12-2024``, with
years of two digits, ``31 Dec 2024``, ``Dec 31, 2024``, each with or without a time (``14:30``,
``14:30:05``, ``2:30 PM``, a zone). The whole column decides which of two numbers is the day: one
above 12 is no month. With points the day comes first; if nothing else decides, the month does, and
a note says so.
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from kernelatoms.engine import Array

#: How a column writes its dates: what stands first, second and third.
ORDERS = ("ymd", "dmy", "mdy", "named")
DAY_SECONDS = 86_400.0

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = (
    r"(?:(?:[T ]|, ?)\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?:Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})" + _TIME)
_YEAR_LAST = re.compile(
    r"(?P<one>\d{1,2})(?P<by>[-/.])(?P<two>\d{1,2})(?P=by)(?P<year>\d{4}|\d{2})" + _TIME
)
_DAY_NAMED = re.compile(
    r"(?P<day>\d{1,2})[-. ]+(?P<name>[A-Za-z]{3,9})\.?[-, ]+(?P<year>\d{4})" + _TIME
)
_NAME_FIRST = re.compile(r"(?P<name>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})" + _TIME)


def date_order(values: Iterable[Any]) -> tuple[str, bool]:
    """Return how a column writes dates ("" if it holds others), and whether that is a guess."""
    values = list(values)
    if all(isinstance(value, date) for value in values):
        return "ymd", False
    if not all(isinstance(value, str) for value in values):
        return "", False
    if not values[0].strip()[:1].isalnum() or not any(sign.isdigit() for sign in values[0]):
        return "", False  # most columns of words end here
    texts = {value.strip() for value in values}
    if all(_YEAR_FIRST.fullmatch(text) for text in texts):
        return _if_all_are("ymd", texts), False
    if all(_DAY_NAMED.fullmatch(text) or _NAME_FIRST.fullmatch(text) for text in texts):
        return _if_all_are("named", texts), False
    found = [_YEAR_LAST.fullmatch(text) for text in texts]
    if not all(found):
        return "", False
    matches = list(filter(None, found))
    day_first = any(int(match["one"]) > 12 for match in matches)
    month_first = any(int(match["two"]) > 12 for match in matches)
    points = any(match["by"] == "." for match in matches)
    guessed = not (day_first or month_first or points)
    order = "dmy" if day_first or (points and not month_first) else "mdy"
    return _if_all_are(order, texts), guessed


def to_days(values: Array, order: str) -> Array:
    """Return days since 1970 of dates in one notation (``ORDERS``); NaN for anything else."""
    known: dict[Any, float] = {}
    for value in values:
        if value is not None and value not in known:
            moment = _moment(value, order)
            known[value] = np.nan if moment is None else _days(moment)
    return np.array([known.get(value, np.nan) for value in values], dtype=np.float64)


def day_text(days: float) -> str:
    """Return the date of days since 1970, with the time if there is one."""
    moment = datetime(1970, 1, 1) + timedelta(days=days)
    return f"{moment:%Y-%m-%d}" if days == int(days) else f"{moment:%Y-%m-%d %H:%M:%S}"


def _if_all_are(order: str, texts: set[str]) -> str:
    return order if all(_moment(text, order) is not None for text in texts) else ""


def _days(moment: datetime) -> float:
    return (moment - datetime(1970, 1, 1)).total_seconds() / DAY_SECONDS


def _moment(value: Any, order: str) -> datetime | None:
    """Return a date, without its zone in texts; None if it is no date."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    text = str(value).strip()
    if order == "ymd":
        match = _YEAR_FIRST.fullmatch(text)
        parts = match and (match["year"], match["month"], match["day"])
    elif order == "named":
        match = _DAY_NAMED.fullmatch(text) or _NAME_FIRST.fullmatch(text)
        name = match["name"].lower()[:3] if match else ""
        month = _MONTHS.index(name) + 1 if name in _MONTHS else 0
        parts = match and (match["year"], str(month), match["day"])
    else:
        match = _YEAR_LAST.fullmatch(text)
        two = ("two", "one") if order == "dmy" else ("one", "two")
        parts = match and (match["year"], match[two[0]], match[two[1]])
    if match is None or parts is None:
        return None
    year, month_number, day = (int(part) for part in parts)
    if len(parts[0]) == 2:
        year += 2000 if year < 69 else 1900
    hour = int(match["hour"] or 0)
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].lower().startswith("p") else 0)
    try:
        return datetime(
            year, month_number, day, hour, int(match["minute"] or 0), int(match["second"] or 0)
        )
    except ValueError:
        return None
