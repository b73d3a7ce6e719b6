"""An open compressed file: checked for consistency, decoded on demand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.blocks import (
    check_size,
    decode_block,
    decoded_size,
    map_in_order,
    n_values_of,
    parts_of,
)
from kernelatoms.codec.container.format import Entry, Reader
from kernelatoms.codec.container.header import Header
from kernelatoms.codec.limits import CodecError, DecodingBudget
from kernelatoms.codec.models.codec_model import CodecModel, ReadyModel
from kernelatoms.codec.models.predictors import decoding_cost, ready
from kernelatoms.codec.models.stored_models import read_models

Array = NDArray[Any]


@dataclass(frozen=True)
class DecodedBlock:
    """A decoded block."""

    start: int
    n_rows: int  # the number of rows (slices of a 3-d array)
    matrix: Array | None  # approximate numbers; slices are stacked
    exact: bytes  # everything else
    size: int = 0  # the bytes that it was decoded from


class Compressed:
    """A compressed file.

    ``model`` is the model that the file refers to, if it does not store it. ``budget`` counts what
    is decoded, which may not exceed ``max_size`` (by default, the limits).
    """

    def __init__(
        self, source: IO[bytes] | bytes, model: CodecModel | None = None,
        max_size: int | None = None,
    ) -> None:  # fmt: skip
        self.reader = Reader(source)
        self.budget = DecodingBudget(self.reader.size, max_size)
        tail = self.reader.tail
        self.header = Header.from_bytes(tail.header)
        self._given, self._given_digest = model, None if model is None else model.digest
        self.stored = read_models(tail.models, self.budget)
        self.digests = [digest.hex() for digest in tail.digests]
        n_models = len(self.stored) + len(self.digests)
        if any(part.model >= n_models for part in self.header.parts):
            raise CodecError("the header refers to a model that does not exist.")
        self._numbers = self._by_part()

    def n_rows(self, part: int = 0) -> int:
        """Return the rows of an array or table (slices of a 3-d array)."""
        return sum(self.reader.entries[i].n_rows for i in self._numbers[part])

    def entries(self, part: int = 0) -> list[Entry]:
        """Return the index entries of an array or table."""
        return [self.reader.entries[i] for i in self._numbers[part]]

    def model(self, part: int = 0) -> CodecModel | None:
        """Return the model of an array or table; None if it is exact."""
        number = self.header.parts[part].model
        if number < 0:
            return None
        if number < len(self.stored):
            return self.stored[number]
        wanted = self.digests[number - len(self.stored)]
        if self._given is None:
            raise CodecError(
                f"it was compressed with a model that it does not hold; give the model file with "
                f"the digest {wanted}."
            )
        if self._given_digest != wanted:
            raise CodecError(
                f"it was compressed with the model of the digest {wanted}, and the one given has "
                f"{self._given_digest}."
            )
        return self._given

    def known_model(self, part: int = 0) -> CodecModel | None:
        """Return the model of an array or table; None also if it is not stored or given."""
        number = self.header.parts[part].model
        if number >= len(self.stored):
            wanted = self.digests[number - len(self.stored)]
            if self._given_digest != wanted:
                return None
        return self.model(part)

    def blocks(
        self, part: int = 0, start: int = 0, stop: int | None = None
    ) -> Iterator[DecodedBlock]:
        """Yield the decoded blocks that hold these rows, in order."""
        numbers = self._numbers[part]
        entries = self.entries(part)
        starts = np.cumsum([0, *(entry.n_rows for entry in entries)]).tolist()
        model, dtype = self.model(part), self.header.parts[part].dtype
        wanted = parts_of(starts, start, starts[-1] if stop is None else stop)
        model = self._ready(model, dtype, [entries[i] for i in wanted])

        def read(i: int) -> tuple[int, Entry, bytes, bytes]:
            matrix, exact = self.reader.read(numbers[i])
            n_bytes = decoded_size(entries[i], exact, model, dtype)
            self.budget.take(n_bytes, entries[i].size)
            return starts[i], entries[i], matrix, exact

        def decode(item: tuple[int, Entry, bytes, bytes]) -> DecodedBlock:
            first, entry, matrix, exact = item
            decoded, rest = decode_block(entry, matrix, exact, model, dtype)
            return DecodedBlock(first, entry.n_rows, decoded, rest, entry.size)

        def size(item: tuple[int, Entry, bytes, bytes]) -> int:
            return decoded_size(item[1], item[3], model, dtype)

        # Read sequentially, decoded in parallel.
        return map_in_order(decode, map(read, wanted), size)

    def _ready(
        self, model: CodecModel | None, dtype: str, entries: list[Entry]
    ) -> ReadyModel | None:
        """Return the model of blocks, after checking what their decoding costs."""
        if model is None:
            return None
        for entry in entries:
            check_size(entry, model)
        n_values = sum(n_values_of(entry, model) for entry in entries)
        self.budget.check(n_values * np.dtype(dtype).itemsize)
        prepared = ready(model)
        self.budget.take_work(decoding_cost(prepared, n_values // model.n_columns, len(entries)))
        return prepared

    def check(self) -> None:
        """Compare all blocks with their checksums."""
        for i in range(len(self.reader.entries)):
            self.reader.read(i)

    def _by_part(self) -> list[list[int]]:
        """Return the block numbers of every part."""
        found: list[list[int]] = [[] for _ in self.header.parts]
        last = 0
        for i, entry in enumerate(self.reader.entries):
            if not last <= entry.part < len(found) or entry.n_rows == 0:
                raise CodecError(f"the index has an impossible block {i}.")
            last = entry.part
            found[last].append(i)
            number = self.header.parts[last].model
            if number < 0 and entry.matrix_size:
                raise CodecError("a block has numbers where no model is.")
            check_size(entry, self.stored[number] if 0 <= number < len(self.stored) else None)
        for numbers in found:
            if sum(self.reader.entries[i].n_rows for i in numbers) >= 1 << 62:
                raise CodecError("the index has more rows than any file.")
        return found
