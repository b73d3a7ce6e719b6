"""The memory that a Parquet file needs, from the headers of its pages.

The sizes at the end of a file are not checked by any reader. The header of a page says its unpacked
size and its number of values, and readers keep to that. Values may still repeat a long text: the
page then bounds the length of each.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernelatoms.files.tables.arrow_sizes import Read

_TEXTS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_BY_DICTIONARY, _BY_PREFIX = (2, 8), (7,)
_DICTIONARY_PAGE = 2
_WINDOW, _MOST_HEADER, _DEEPEST = 1 << 12, 1 << 26, 8


@dataclass
class ParquetSizes:
    """What is known before a file is read."""

    n_bytes: int = 0  # unpacked pages and fixed-size values, all columns
    # bound by column: values that index a dictionary of texts
    by_number: Counter[str] = field(default_factory=Counter)
    # bound by column: values that share a prefix with the one before
    by_prefix: Counter[str] = field(default_factory=Counter)
    longest: int = 0  # bound of the prefix-coded values of one row, all columns


def parquet_sizes(file: Any, read: Read, size: int) -> ParquetSizes:
    """Return the sizes of a ``ParquetFile``; ValueError if its columns overlap."""
    metadata, found, seen = file.metadata, ParquetSizes(), 0
    schema = [metadata.schema.column(j) for j in range(metadata.num_columns)]
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j, column in enumerate(schema):
            chunk = group.column(j)
            places = [chunk.data_page_offset]
            if chunk.has_dictionary_page:
                places.append(chunk.dictionary_page_offset)
            # Offset 0, where the magic bytes are, means no page: a group without rows.
            start = min(filter(None, places), default=0)
            seen += chunk.total_compressed_size
            if start < 0 or chunk.total_compressed_size < 0 or seen > size:
                raise ValueError("its columns overlap")
            end = start + chunk.total_compressed_size
            width = max(8, column.length if chunk.physical_type == _TEXTS[1] else 0)
            _look_at(_pages(read, start, end), column, chunk.physical_type, found)
            found.n_bytes += width * group.num_rows
    return found


def _look_at(pages: Iterator[dict[int, Any]], column: Any, kind: str, found: ParquetSizes) -> None:
    """Add the pages of one column of one row group."""
    dictionary = 0
    for page in pages:
        n_bytes = _number(page, 2)
        found.n_bytes += n_bytes
        if page.get(1) == _DICTIONARY_PAGE:
            dictionary = max(dictionary, n_bytes)
            continue
        inside = page.get(5 if 5 in page else 8)
        if not isinstance(inside, dict):
            continue  # an index
        n_values, encoding = _number(inside, 1), _number(inside, 2 if 5 in page else 4)
        if column.max_repetition_level:
            found.n_bytes += 8 * n_values
        if kind not in _TEXTS or encoding not in (*_BY_DICTIONARY, *_BY_PREFIX):
            continue
        if encoding in _BY_PREFIX:
            found.by_prefix[column.path] += n_bytes * n_values
            found.longest += n_bytes
        else:
            found.by_number[column.path] += dictionary * n_values


def _pages(read: Read, start: int, end: int) -> Iterator[dict[int, Any]]:
    """Yield the headers of pages, as fields by number."""
    while start < end:
        window = _WINDOW
        while True:
            data = read(start, min(window, end - start))
            try:
                header, length = _structure(data, 0)
                break
            except IndexError:
                if window >= min(end - start, _MOST_HEADER):
                    raise ValueError("the header of a page is damaged") from None
                window *= 16
        yield header
        start += length + _number(header, 3)


def _number(fields: dict[int, Any], number: int) -> int:
    """Return a non-negative integer of a page header."""
    value = fields.get(number)
    if type(value) is not int or value < 0:
        raise ValueError("the header of a page is damaged")
    return value


def _structure(data: bytes, place: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Read a structure in Thrift's compact protocol; keep integers and structures."""
    if depth > _DEEPEST:
        raise ValueError("the header of a page is nested too deeply")
    found: dict[int, Any] = {}
    number = 0
    while kind := data[place]:
        place += 1
        if kind >> 4:
            number += kind >> 4
        else:
            number, place = _whole(data, place)
        value, place = _value(data, place, kind & 15, depth)
        found[number] = value
    return found, place + 1


def _value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true, false
        return kind == 1, place
    if kind == 3:
        return data[place], place + 1
    if kind in (4, 5, 6):
        return _whole(data, place)
    if kind in (7, 8):  # a number of eight bytes, or bytes
        length, place = (8, place) if kind == 7 else _plain(data, place)
        if place + length > len(data):
            raise IndexError("it ends too early")
        return None, place + length
    if kind == 12:
        return _structure(data, place, depth + 1)
    raise ValueError("the header of a page holds what no page has")


def _plain(data: bytes, place: int) -> tuple[int, int]:
    """Read an integer of seven bits per byte."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise ValueError("the header of a page holds a number too long")


def _whole(data: bytes, place: int) -> tuple[int, int]:
    value, place = _plain(data, place)
    return (value >> 1) ^ -(value & 1), place
